"""Anthropic usage with iterations: which call gave the answer, what was billed beside it, and at whose prices."""

import json

import pytest
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import UsageReport, decode_anthropic_report


def raw(**fields: object) -> bytes:
    return json.dumps(fields).encode()


LOOP = [
    {"type": "message", "input_tokens": 150_000, "output_tokens": 40},
    {"type": "compaction", "input_tokens": 160_000, "output_tokens": 900},
    {"type": "message", "input_tokens": 20, "cache_read_input_tokens": 9_000, "output_tokens": 60},
    {"type": "compaction", "input_tokens": 3},
]
ADVICE = {"type": "advisor_message", "model": "claude-opus-5-5", "input_tokens": 800, "output_tokens": 500}


@pytest.mark.parametrize(
    ("body", "report"),
    [
        pytest.param(
            raw(input_tokens=5, cache_read_input_tokens=7, output_tokens=1),
            UsageReport(usage=Usage(uncached=5, cache_read=7, output=1), prompt=12),
            id="one call",
        ),
        pytest.param(
            raw(
                input_tokens=5,
                cache_creation_input_tokens=9,
                cache_creation={"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 7},
                output_tokens=1,
            ),
            UsageReport(
                usage=Usage(uncached=5, cache_write=2, cache_write_long=7, output=1),
                prompt=14,
            ),
            id="writes are told apart by lifetime",
        ),
        pytest.param(
            raw(
                input_tokens=23_000,
                output_tokens=1_000,
                iterations=[
                    {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
                    {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
                ],
            ),
            UsageReport(
                usage=Usage(uncached=23_000, output=1_000),
                others=(Usage(uncached=180_000, output=3_500),),
                prompt=23_000,
            ),
            id="a compaction is a call of its own",
        ),
        pytest.param(
            raw(input_tokens=150_020, cache_read_input_tokens=9_000, output_tokens=100, iterations=LOOP),
            UsageReport(
                usage=Usage(uncached=20, cache_read=9_000, output=60),
                others=(
                    Usage(uncached=150_000, output=40),
                    Usage(uncached=160_000, output=900),
                    Usage(uncached=3),
                ),
                prompt=9_020,
            ),
            id="the last turn of a loop gave the answer",
        ),
        pytest.param(
            raw(input_tokens=150_021, cache_read_input_tokens=9_000, output_tokens=100, iterations=LOOP),
            UsageReport(
                usage=Usage(uncached=150_021, cache_read=9_000, output=100),
                others=(Usage(uncached=160_000, output=900), Usage(uncached=3)),
                prompt=9_020,
            ),
            id="turns that do not add up are not taken apart",
        ),
        pytest.param(
            raw(
                input_tokens=10,
                output_tokens=2,
                iterations=[{"type": "message", "input_tokens": 10, "output_tokens": 2}, ADVICE],
            ),
            UsageReport(
                usage=Usage(uncached=10, output=2),
                others=(Usage(uncached=800, output=500),),
                list_price=False,
                prompt=10,
            ),
            id="an advisor has its own price",
        ),
        pytest.param(
            raw(
                input_tokens=10,
                output_tokens=2,
                iterations=[
                    {"type": "message", "input_tokens": 0, "output_tokens": 0},
                    {"type": "fallback_message", "input_tokens": 10, "output_tokens": 2, "model": "claude-x"},
                ],
            ),
            UsageReport(usage=Usage(uncached=10, output=2), list_price=False, prompt=10),
            id="another model answered",
        ),
        pytest.param(
            raw(input_tokens=10, iterations=[{"type": "unheard_of", "input_tokens": 4}]),
            UsageReport(usage=Usage(uncached=10), list_price=False, prompt=10),
            id="a type nobody knows",
        ),
    ],
)
def test_anthropic_report(body, report):
    told = replace(report, reports_cache=b"cache_" in body, splits_writes=b'"cache_creation"' in body)
    assert decode_anthropic_report(body) == told


@pytest.mark.parametrize(
    ("fields", "standard"),
    [
        pytest.param({"service_tier": "standard", "speed": "standard"}, True, id="standard"),
        pytest.param({"service_tier": None, "inference_geo": "not_available"}, True, id="nothing said"),
        pytest.param({"service_tier": "batch"}, False, id="batch"),
        pytest.param({"speed": "fast"}, False, id="fast"),
        pytest.param({"inference_geo": "us"}, False, id="in one region"),
        pytest.param({"service_tier": {"name": "gold"}}, False, id="not a word"),
    ],
)
def test_only_the_standard_tier_has_the_list_price(fields, standard):
    report = decode_anthropic_report(raw(input_tokens=1, **fields))
    assert (report.list_price, report.usage) == (standard, Usage(uncached=1))
