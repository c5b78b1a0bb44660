"""Usage of both formats into figures that do not overlap."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.api_calls import Usage, together
from lowwater.core.formats.usage import decode_anthropic_usage as anthropic
from lowwater.core.formats.usage import decode_openai_usage as chat
from lowwater.errors import BadInput

DECODERS = [pytest.param(anthropic, id="anthropic"), pytest.param(chat, id="openai_chat")]


def raw(**fields: object) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        pytest.param(raw(input_tokens=12, output_tokens=3), Usage(uncached=12, output=3), id="plain"),
        pytest.param(
            raw(
                input_tokens=4,
                cache_read_input_tokens=900,
                cache_creation_input_tokens=100,
                output_tokens=7,
                service_tier="standard",
            ),
            Usage(uncached=4, cache_read=900, cache_write=100, output=7),
            id="cache",
        ),
        pytest.param(
            raw(
                input_tokens=4,
                cache_creation_input_tokens=100,
                cache_creation={"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70},
            ),
            Usage(uncached=4, cache_write=30, cache_write_long=70),
            id="two lifetimes",
        ),
        pytest.param(
            raw(input_tokens=4, cache_creation={"ephemeral_5m_input_tokens": 30}),
            Usage(uncached=4, cache_write=30),
            id="only the split",
        ),
        pytest.param(
            raw(
                input_tokens=10,
                output_tokens=5,
                iterations=[
                    {
                        "type": "compaction",
                        "input_tokens": 1_000,
                        "cache_read_input_tokens": 50,
                        "output_tokens": 90,
                    },
                    {"type": "message", "input_tokens": 10, "output_tokens": 5},
                ],
            ),
            Usage(uncached=10, output=5),
            id="compaction by the provider",
        ),
        pytest.param(
            raw(input_tokens=4, output_tokens=None, cache_creation=None, iterations=None),
            Usage(uncached=4),
            id="null",
        ),
    ],
)
def test_anthropic_usage(body, usage):
    assert anthropic(body) == usage


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        pytest.param(
            raw(prompt_tokens=100, completion_tokens=9, total_tokens=109),
            Usage(uncached=100, output=9),
            id="plain",
        ),
        pytest.param(
            raw(prompt_tokens=100, prompt_tokens_details={"cached_tokens": 64, "audio_tokens": 0}),
            Usage(uncached=36, cache_read=64),
            id="cached",
        ),
        pytest.param(
            raw(prompt_tokens=100, prompt_tokens_details={"cached_tokens": 60, "cache_write_tokens": 30}),
            Usage(uncached=10, cache_read=60, cache_write=30),
            id="written",
        ),
        pytest.param(
            raw(prompt_tokens=100, prompt_tokens_details={"cache_creation_input_tokens": 30}),
            Usage(uncached=70, cache_write=30),
            id="qwen",
        ),
        pytest.param(
            raw(
                prompt_tokens=100,
                prompt_cache_hit_tokens=80,
                prompt_cache_miss_tokens=20,
                completion_tokens=1,
            ),
            Usage(uncached=20, cache_read=80, output=1),
            id="deepseek",
        ),
        pytest.param(
            raw(prompt_cache_hit_tokens=80, prompt_cache_miss_tokens=20),
            Usage(uncached=20, cache_read=80),
            id="deepseek without a total",
        ),
        pytest.param(raw(prompt_tokens=100, cached_tokens=40), Usage(uncached=60, cache_read=40), id="kimi"),
        pytest.param(
            raw(
                input_tokens=100,
                output_tokens=9,
                input_tokens_details={
                    "cached_tokens": 50,
                    "cache_write_tokens": 40,
                    "cache_write_tokens_details": {"ttl_30m_tokens": 15, "ttl_12h_tokens": 25},
                },
            ),
            Usage(uncached=10, cache_read=50, cache_write=15, cache_write_long=25, output=9),
            id="responses",
        ),
        pytest.param(
            raw(input_tokens=100, cached_input_tokens=70, output_tokens=9, reasoning_output_tokens=4),
            Usage(uncached=30, cache_read=70, output=9),
            id="codex",
        ),
        pytest.param(
            raw(prompt_tokens=100, prompt_tokens_details={"cached_tokens": 900, "cache_write_tokens": 5}),
            Usage(cache_read=100),
            id="more cached than there was",
        ),
        pytest.param(
            raw(prompt_tokens=None, completion_tokens=None, prompt_tokens_details=None), Usage(), id="null"
        ),
    ],
)
def test_chat_usage(body, usage):
    assert chat(body) == usage


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("nothing", [b"", b"null", b" null\n", b"{}"], ids=repr)
def test_no_usage_is_zero(decode, nothing):
    assert decode(nothing) == Usage()


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "garbage",
    [
        b"{",
        b"[]",
        b'"many"',
        b'{"input_tokens": "many"}',
        b'{"input_tokens": -1}',
        b"\xff",
        b"NaN",
        b"[" * 3_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_garbage_is_one_sentence(decode, garbage):
    with pytest.raises(BadInput) as caught:
        decode(garbage)
    said = str(caught.value)
    assert said.startswith("the usage cannot be read: ")
    assert "\n" not in said


def test_the_sum_of_calls_adds_every_figure():
    one = Usage(uncached=1, cache_read=20, cache_write=300, cache_write_long=4_000, output=50_000)
    assert together([one, one, Usage(output=1)]) == Usage(
        uncached=2, cache_read=40, cache_write=600, cache_write_long=8_000, output=100_001
    )
    assert together([]) == Usage()


tokens = st.one_of(st.none(), st.integers(0, 10**7))


@given(prompt=tokens, cached=tokens, written=tokens)
def test_a_chat_prompt_is_the_sum_of_its_parts(prompt, cached, written):
    usage = chat(
        raw(
            prompt_tokens=prompt,
            prompt_tokens_details={"cached_tokens": cached, "cache_write_tokens": written},
        )
    )
    assert usage.prompt == (prompt or 0)
    assert min(usage.uncached, usage.cache_read, usage.cache_write) >= 0
