"""Specification M: large outputs are truncated on arrival."""

from typing import Any

import pytest

from lowwater.settings import Settings, ToolResultSettings
from lowwater.testing.views import Script

ERROR = "ValueError: no such step: deploy_to_moon"
ROWS = [f"step {number} of module_{number}.build ran for {number * 7} ms" for number in range(1_400)]
LOG = "\n".join([*ROWS[:700], ERROR, *ROWS[700:]])


def asked(output: str, tool: str = "bash") -> Script:
    return Script().system("Be brief.").user("Build it.").calls(tool, {"command": "make all"}, output)


def shown(request: Any) -> str:
    return str(request.as_openai()["messages"][3]["content"])


def limited(**limits: Any) -> Settings:
    return Settings(tool_results=ToolResultSettings(**limits))


@pytest.mark.parametrize(
    ("model", "limit"), [("gpt-4o", 12_800), ("gpt-4.1", 25_000)], ids=["10 % of 128K", "at most 25,000"]
)
def test_m_a_result_above_the_insertion_limit_is_shortened_before_it_enters_the_prompt(
    opened, sink, model, limit
) -> None:
    for tokens in (limit, limit + 1):
        output = " word" * tokens
        session = opened(asked(output), policy="runway", model=model)
        request = session.prepare(offers_recall=True)
        assert (shown(request) == output) == (tokens == limit)
    assert request.tokens <= limit + 100
    assert [event.mode for event in sink.compactions] == ["shorten"]


def test_m_head_tail_errors_digest_what_was_cut_and_the_handle_remain(opened) -> None:
    text = shown(opened(asked(LOG), policy="runway").prepare(offers_recall=True))
    assert text.startswith(ROWS[0])
    assert text.endswith(ROWS[-1])
    assert ERROR in text
    assert f"of {len(LOG):,} characters" in text
    assert "recall lw:4" in text
    cut = [name for name in (f"module_{number}.build" for number in range(400, 1_200)) if name in text]
    assert cut, "a digest of what was cut"


def test_m_no_later_rewrite_is_needed(opened, sink) -> None:
    session = opened(asked(LOG), policy="runway")
    first = session.prepare(offers_recall=True).as_openai()["messages"]
    assert sink.compactions[0].disturbed == 0
    for turn in range(3):
        session.append([{"role": "assistant", "content": "ok"}, {"role": "user", "content": f"go on {turn}"}])
        assert session.prepare(offers_recall=True).as_openai()["messages"][:4] == first
    assert len(sink.compactions) == 1


def test_m_the_original_is_in_the_ledger(opened) -> None:
    session = opened(asked(LOG), policy="runway")
    session.prepare(offers_recall=True)
    assert session.recall("lw:4")[0].text == LOG
    assert session.history()[3]["content"] == LOG


def test_m_without_recall_what_fits_stays_whole(opened, sink) -> None:
    assert shown(opened(asked(LOG), policy="runway").prepare(offers_recall=False)) == LOG
    assert sink.compactions == []


def test_m_without_recall_what_would_not_fit_is_shortened(opened) -> None:
    session = opened(asked(LOG), policy="runway", window=20_000)
    request = session.prepare(offers_recall=False)
    assert request.tokens < session.status().wall
    assert shown(request) != LOG
    assert "recall" not in shown(request)
    assert "run again" in shown(request)


@pytest.mark.parametrize("tool", ["memory", "TodoWrite", "skill_view", "clarify", "read_file"])
def test_m_it_is_off_for_never_prune_tools(opened, tool) -> None:
    assert shown(opened(asked(LOG, tool), policy="runway").prepare(offers_recall=True)) == LOG


def test_m_a_file_may_be_shortened_outside_the_seed_presets(opened) -> None:
    assert shown(opened(asked(LOG, "read_file"), policy="hygiene").prepare(offers_recall=True)) != LOG


@pytest.mark.parametrize("limit", ["insertion_limit_tokens", "insertion_limit_ratio"])
def test_m_a_limit_of_0_switches_it_off(opened, limit) -> None:
    session = opened(asked(LOG), policy="runway", settings=limited(**{limit: 0}))
    assert shown(session.prepare(offers_recall=True)) == LOG


def test_m_the_limit_is_settable(opened) -> None:
    session = opened(asked(LOG), policy="runway", settings=limited(insertion_limit_tokens=1_000))
    assert session.prepare(offers_recall=True).tokens < 1_200


def test_m_what_the_model_has_seen_is_no_longer_truncated_on_arrival(opened) -> None:
    session = opened(asked(LOG), policy="runway")
    session.prepare(offers_recall=False)
    session.append([{"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}])
    assert shown(session.prepare(offers_recall=True)) == LOG
