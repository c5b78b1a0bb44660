"""Defects measured in Hermes 0.19, at the level of the library; those of decisions alone are in tests/core/policies."""

import json

import pytest

import lowwater
from lowwater import Lowwater
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.summary.transcript import transcript_for
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import ScriptedSummarizer, fail, refuse, write

QUIET = Settings(output=OutputSettings(quiet=True))
O200K = tokenizer_for("o200k")
SUMMARIZING = pytest.mark.parametrize("policy", ["threshold", "runway", "hermes-classic", "hygiene"])
MEGABYTE = "## Goal\n" + "- Everything that was ever said matters, so here it is once more.\n" * 16_000


def test_when_pruning_alone_is_enough_no_model_is_called(opened, tool_loop):
    """Pruning reached 46K against a threshold of 96K, and the model was called all the same."""
    summarizer = ScriptedSummarizer(fail(AssertionError("the model was called")))
    session = opened(tool_loop(60, lines=60), summarizer)
    before = session.status()
    assert before.prompt > before.threshold
    session.prepare()
    after = session.status()
    assert (after.last_mode, after.totals.summaries, summarizer.requests) == ("prune", 0, [])
    assert after.prompt < 0.85 * after.threshold


@SUMMARIZING
def test_the_summarizer_sees_tool_results_as_they_were(opened, coding, policy):
    """Pruning ran first there, and no result of more than 123 characters reached the summariser."""
    summarizer = ScriptedSummarizer(refuse)
    messages = coding(50_000)
    session = opened(messages, summarizer, policy=policy)
    assert session.compress() is not None
    originals = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    seen = {result.call_id: result.text for m in summarizer.requests[0].messages for result in m.results}
    assert len(seen) > 30
    assert max(map(len, seen.values())) > 3_000
    assert all(originals[call] == text for call, text in seen.items())


def test_what_was_pruned_earlier_is_summarised_from_the_original(opened, tool_loop):
    """A placeholder in the view is not what a later summary is made of."""
    summarizer = ScriptedSummarizer(refuse)
    messages = tool_loop(60, lines=60)
    session = opened(messages, summarizer)
    session.prepare()
    assert session.status().last_mode == "prune"
    assert any("elided" in m["content"] for m in session.view() if m["role"] == "tool")
    session.compress()
    texts = [result.text for m in summarizer.requests[0].messages for result in m.results]
    assert len(texts) > 30
    assert not any("elided" in text for text in texts)


@SUMMARIZING
def test_the_protected_head_and_everything_before_the_cut_stay_byte_for_byte(opened, step, tool_loop, policy):
    """A result in the head was pruned too; only 0 to 2 leading messages stayed identical."""
    loop = tool_loop(60, lines=60)
    first = step(900, "terminal", {"command": "cat NOTES"}, "a note that must stay\n" * 300)
    messages = [*loop[:2], *first, *loop[2:]]
    session = opened(messages, policy=policy)
    event = session.compress()
    assert event is not None
    view, start = session.view(), 1 if policy == "hermes-classic" else 0
    assert json.dumps(view[start:4]) == json.dumps(messages[start:4]), "system, request, call and its result"
    assert event.first_changed == (0 if policy == "hermes-classic" else 4)


def test_hermes_classic_changes_the_system_prompt_on_the_first_compaction_only(opened, tool_loop):
    """Its own note goes there; the second compaction leaves the prompt's start alone."""
    session = opened(tool_loop(60, lines=60), policy="hermes-classic")
    session.compress()
    once = session.view()[0]
    session.append(
        [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "I will. " * 9_000}]
    )
    session.append([{"role": "user", "content": f"Question {n}?" + " please" * 40} for n in range(25)])
    assert session.compress() is not None
    assert session.view()[0] == once


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("I'm sorry, but I can't help with summarizing this conversation. " * 3, id="a refusal"),
        pytest.param("## Goal\n- Fix the flaky test in packages/auth. The cause is that the", id="a stump"),
    ],
)
def test_what_was_cut_off_by_length_is_no_summary(opened, tool_loop, shown, answer):
    """A refusal with finish_reason=length was accepted as the summary."""

    def cut(_: SummaryRequest) -> Written:
        return Written(text=answer.ljust(200, "."), by="cut", cut_off=True)

    session = opened(tool_loop(60, lines=60), ScriptedSummarizer(cut))
    event = session.compress()
    assert event is not None
    assert event.summarizer == "extractive"
    assert answer not in shown(session.view())


@SUMMARIZING
def test_a_megabyte_of_summary_is_not_committed(opened, coding, shown, policy):
    """110K tokens became 280K there."""
    session = opened(coding(50_000), ScriptedSummarizer(write(MEGABYTE)), policy=policy)
    before = session.status().prompt
    event = session.compress()
    assert event is not None
    assert event.summarizer != "scripted"
    assert session.status().prompt < before
    assert MEGABYTE[:100] not in shown(session.view())


@pytest.mark.parametrize("most", [4_000, 30_000])
def test_the_summarizers_prompt_is_bounded(opened, coding, most):
    """It had 316K tokens there."""
    summarizer = ScriptedSummarizer(refuse)
    opened(coding(150_000), summarizer).compress()
    request = summarizer.requests[0]
    whole = sum(O200K.count(result.text) for m in request.messages for result in m.results)
    assert whole > 70_000
    assert most / 2 < O200K.count(transcript_for(request, O200K, max_tokens=most)) <= most


@pytest.mark.parametrize("policy", ["runway", "guarded", "hermes-classic"])
def test_a_threshold_survives_fallback_and_restore(policy):
    """Lowered for a small model, it was lost there on fallback and on the way back."""
    keeper = Lowwater(model="claude-opus-4-6", fallbacks=["gpt-4o"], policy=policy, settings=QUIET)
    session = keeper.session()
    session.append({"role": "user", "content": "hello"})
    at_first = session.status().threshold
    session.use("gpt-4o")
    on_fallback = session.status().threshold
    session.use("claude-opus-4-6")
    assert session.status().threshold == at_first
    # Half of the smaller window, or three quarters of it, where `guarded` acts.
    point = 96_000 if policy == "guarded" else 64_000
    assert (at_first, on_fallback) == (point, point), "planned for the smaller of both from the start"


def test_a_threshold_follows_the_model_in_use():
    """Without a chain to plan for, a switch re-derives it at once and the way back restores it."""
    session = Lowwater(model="claude-opus-4-6", policy="runway", settings=QUIET).session()
    session.append({"role": "user", "content": "hello"})
    large = session.status().threshold
    session.use("claude-haiku-4-5")
    assert session.status().context == 200_000
    session.use("claude-opus-4-6")
    assert session.status().threshold == large == 500_000


@pytest.mark.parametrize(
    ("text", "least"),
    [
        pytest.param("重构认证模块并修复失败的测试用例。", 0.5, id="Chinese"),
        pytest.param("認証モジュールを修正してください。", 0.5, id="Japanese"),
        pytest.param("인증 모듈을 수정하고 테스트를 실행하세요.", 0.4, id="Korean"),
        pytest.param("9f86d081884c7d659a2feaa0c55ad015 ", 0.5, id="hashes"),
    ],
)
def test_text_of_few_characters_a_token_is_counted_as_such(text, least):
    """CJK was counted at four characters a token; tool output of hashes is no better."""
    session = Lowwater(model="gpt-4o", settings=QUIET).session()
    session.append({"role": "user", "content": text * 1_000})
    characters = 1_000 * len(text)
    assert session.status().prompt > least * characters
    assert session.status().prompt == pytest.approx(O200K.count(text * 1_000), abs=10)


def test_a_chinese_session_is_compacted_before_it_fills_the_window(opened):
    """By characters ÷ 4 it would seem to fill a third of the threshold."""
    said = "请检查认证模块，然后修复失败的测试，并说明原因。" * 20
    talk = [{"role": role, "content": f"{n}：{said}"} for n in range(150) for role in ("user", "assistant")]
    session = opened([*talk, {"role": "user", "content": "继续"}], window=None)
    assert sum(len(m["content"]) for m in talk) / 4 < session.status().threshold
    session.prepare()
    assert session.status().compaction_count == 1


@SUMMARIZING
def test_reported_savings_are_those_that_were_made(opened, coding, policy):
    """48.5 % were reported where 71.4 % were saved."""
    session = opened(coding(50_000), policy=policy)
    event = session.compress()
    assert event is not None
    again = opened(session.view()).status().prompt
    assert event.after == session.status().prompt == again
    assert event.reclaimed == event.before - again == session.status().totals.reclaimed
    assert event.ratio == again / event.before


def test_near_duplicates_are_found(step, tool_loop, shown):
    """Only exact copies were; a test run that differs in its timing was kept again and again."""
    run = [f"tests/unit/test_{n}.py::test_case_{n} PASSED" for n in range(220)]
    runs = [
        message
        for at in range(30)
        for message in step(500 + at, "terminal", {"command": "pytest -v"}, "\n".join([*run, f"in {at}.3 s"]))
    ]
    rest = tool_loop(25, lines=5)
    pruned = lowwater.compress([*rest[:2], *runs, *rest[2:]], model="gpt-4o", policy="prune-naive")
    assert pruned.event is not None
    assert "dedupe" in pruned.event.mechanisms
    assert shown(pruned.messages).count("almost the same in lw:") >= 25
    assert shown(pruned.messages).count(run[0]) <= 5, "the first, in the head, and the newest"
