"""Specification L: placeholders that help."""

import json
import re
from typing import Any

import pytest

from lowwater.core.policies.registry import policy_named
from lowwater.session.factories import counter_for
from lowwater.settings import CompressionSettings, Settings, ToolResultSettings

O200K = counter_for("gpt-4o")


@pytest.fixture
def elided(opened, loop, reported) -> Any:
    """What stands in the view for old results of these calls after a prune: their texts, in order."""

    def run(*calls: Any, policy: str = "prune-naive", recall: bool = True, **results: Any) -> list[str]:
        script = loop(1, lines=4)
        for tool, arguments, output in calls:
            script.calls(tool, arguments, output)
        compression = CompressionSettings(protect_last_n=1, target_ratio=0.1)
        settings = Settings(compression=compression, tool_results=ToolResultSettings(**results))
        script = loop(50, lines=90, script=script, start=100)
        session = opened(script, policy=policy, settings=settings)
        reported(session, 68_000)
        session.prepare(offers_recall=recall)
        return [message["content"] for message in session.view()[5 : 5 + 2 * len(calls) : 2]]

    return run


RUN = "\n".join(
    [
        *(f"tests/auth/test_login.py::test_login_{n} PASSED" for n in range(300)),
        "FAILED test_login - KeyError: 'sid'",
    ]
)
CALL = ("terminal", {"command": "pytest tests/auth -q"}, RUN)


def test_l_a_placeholder_names_tool_argument_size_preview_and_how_to_get_it_back(elided) -> None:
    (text,) = elided(CALL, policy="runway")
    assert re.fullmatch(
        rf"\[terminal · pytest tests/auth -q · {len(RUN):,} chars elided · FAILED test_login .* · recall lw:6\]",
        text,
    )


def test_l_the_preview_is_the_first_line_where_there_is_no_error(elided) -> None:
    listing = "\n".join(f"src/module_{number}.py" for number in range(400))
    (text,) = elided(("terminal", {"command": "ls src"}, listing), policy="runway")
    assert "· src/module_0.py ·" in text


def test_l_a_line_that_a_logger_marks_as_error_is_an_error(elided) -> None:
    rows = [f"2026-11-15 12:{n % 60:02}:01 INFO worker-{n % 7} handled order {n}" for n in range(150)]
    rows.insert(70, "2026-11-15 12:59:59 ERROR worker-3 quota exceeded for tenant acme-42")
    (text,) = elided(("terminal", {"command": "cat app.log"}, "\n".join(rows)), policy="runway")
    assert "quota exceeded for tenant acme-42" in text


@pytest.mark.parametrize(
    ("recall", "tool", "back"),
    [(True, "terminal", "recall lw:6"), (False, "terminal", "run again"), (False, "grep", "run again")],
)
def test_l_it_says_recall_when_the_request_offers_it_and_otherwise_run_again(
    elided, recall, tool, back
) -> None:
    (text,) = elided((tool, {"command": "make"}, RUN), policy="runway", recall=recall)
    assert back in text
    assert ("recall" in text) is recall
    assert "lw:6" in text


def test_l_deduplicated_results_name_the_message_they_repeat(elided) -> None:
    again = ("terminal", {"command": "git log"}, "\n".join(f"commit {n:040x} by somebody" for n in range(60)))
    first, _, _ = elided(again, CALL, again, policy="runway")
    assert "repeated in lw:10" in first


# Digests


KINDS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "code": (
        "terminal",
        {"command": "cat src/pay.py"},
        "\n".join(
            f'def settle_invoice_{n}(amount: int) -> int:\n    """Settle it."""\n    return amount + {n}\n'
            for n in range(60)
        ),
        "settle_invoice_",
    ),
    "log": (
        "terminal",
        {"command": "tail app.log"},
        "\n".join(
            f"2026-11-15 12:{n % 60:02}:01 INFO worker-{n % 7} handled /api/orders/{n}" for n in range(150)
        )
        + "\n2026-11-15 13:00:01 worker-3 QuotaError: tenant acme-42 has used up 9100",
        "QuotaError: tenant acme-42",
    ),
    "diff": (
        "terminal",
        {"command": "git diff"},
        "\n".join(
            f"diff --git a/lib/piece_{n}.py b/lib/piece_{n}.py\n--- a/lib/piece_{n}.py\n+++ b/lib/piece_{n}.py\n"
            f"@@ -1,3 +1,3 @@\n-old_value_{n} = 1\n+new_value_{n} = 2"
            for n in range(40)
        ),
        "lib/piece_7.py",
    ),
    "search": (
        "grep",
        {"pattern": "resolve"},
        "\n".join(
            f"src/tenants/resolver_{n % 9}.py:{n}: call resolve_tenant_{n}(request)" for n in range(120)
        ),
        "src/tenants/resolver_",
    ),
    "JSON": (
        "terminal",
        {"command": "curl api"},
        json.dumps(
            [{"tenant_key": f"acme-{n}", "quota_left": n * 17, "region_code": "eu-1"} for n in range(120)]
        ),
        "quota_left",
    ),
    "table": (
        "terminal",
        {"command": "psql -c query"},
        "customer_code | open_balance | last_order\n"
        + "\n".join(f"CUST-{n:05} | {n * 13}.50 | ORD-{n * 7:06}" for n in range(150)),
        "customer_code",
    ),
    "prose": (
        "web_fetch",
        {"url": "https://example.org/notes"},
        "\n\n".join(
            f"In release {n}.2 the scheduler called kestrel replaces the earlier one. It reads config_{n}.toml first."
            for n in range(60)
        ),
        "config_7.toml",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_l_a_large_result_leaves_a_digest_of_its_kind_within_15_percent(elided, kind) -> None:
    tool, arguments, output, expected = KINDS[kind]
    (text,) = elided((tool, arguments, output))
    line, _, digest = text.partition("\n")
    assert line.endswith("recall lw:6]")
    assert digest
    assert expected in text
    assert O200K.count(text) <= 0.16 * O200K.count(output)


@pytest.mark.parametrize(
    ("ratio", "least", "most"), [(0.05, 0.0, 0.06), (0.15, 0.06, 0.16), (0.30, 0.16, 0.31)]
)
def test_l_the_digests_share_is_settable(elided, ratio, least, most) -> None:
    tool, arguments, output, _ = KINDS["code"]
    (text,) = elided((tool, arguments, output), digest_ratio=ratio)
    assert least < O200K.count(text) / O200K.count(output) <= most


def test_l_a_share_of_0_is_off(elided) -> None:
    tool, arguments, output, _ = KINDS["code"]
    (text,) = elided((tool, arguments, output), digest_ratio=0.0)
    assert "\n" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_l_runway_keeps_the_plain_one_liner(elided, kind) -> None:
    tool, arguments, output, _ = KINDS[kind]
    (text,) = elided((tool, arguments, output), policy="runway")
    assert text.startswith(f"[{tool} · ")
    assert text.count("\n") == 0


def test_l_so_does_hermes_classic() -> None:
    assert policy_named("hermes-classic").preset.plain_placeholders
    assert not policy_named("hygiene").preset.plain_placeholders
