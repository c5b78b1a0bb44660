"""Specification C: the first three phases: eliding, the boundaries, the summary."""

import json
from typing import Any

import pytest

from lowwater.core.messages import texts_of
from lowwater.core.summary.template import PROGRESS, Section
from lowwater.core.summary.transcript import transcript_for
from lowwater.core.view import Edited, Summary
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import ScriptedSummarizer, WordTokenizer
from lowwater.testing.views import Script

SMALL = 24_000
"""A window that keeps the tests short: wall 18,000, threshold 17,100, tail 3,420."""


def changed(session: Any) -> list[int]:
    return [at for at, item in enumerate(internals(session).ledger.view.items) if isinstance(item, Edited)]


# 1. Elide old tool results


def test_c1_results_over_200_characters_outside_head_and_tail_become_placeholders(opened, loop, told) -> None:
    script = loop(60, lines=90)
    session = opened(script, policy="prune-naive")
    session.prepare()
    before, after = told(script), session.view()
    assert changed(session), session.explain()
    for at in changed(session):
        assert (before[at]["role"], len(before[at]["content"]) > 200) == ("tool", True)
        assert after[at]["content"].startswith("[terminal · make -C src/part_")
        assert 4 <= at < len(before) - 20
    untouched = set(range(len(before))) - set(changed(session))
    assert all(after[at] == before[at] for at in untouched)


def test_c1_results_of_200_characters_stay(opened, loop, told) -> None:
    script = loop(3)
    for number in range(12):
        script.calls("terminal", {"command": f"echo {number}"}, f"{number:04}" * 50)
    session = opened(loop(60, lines=90, script=script), policy="prune-naive")
    session.prepare()
    small = [at for at, message in enumerate(told(script)) if len(message["content"] or "") == 200]
    assert len(small) == 12
    assert min(changed(session)) < small[0] < small[-1] < max(changed(session))
    assert not set(small) & set(changed(session))


def test_c1_no_model_is_called(opened, loop, faithful, compacted) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(60, lines=90), policy="prune-naive", summarizer=summarizer)
    session.prepare()
    assert (compacted(session).mode, summarizer.requests) == ("prune", [])


# 2. Find the boundaries


def summarised(
    opened: Any, faithful: Any, script: Script, **options: Any
) -> tuple[list[Any], list[Any], int]:
    """Return a conversation before and after a summary by hand, and where that stands."""
    session = opened(script, policy="summary-only", summarizer=ScriptedSummarizer(faithful), **options)
    session.compress()
    items = list(internals(session).ledger.view.items)
    return session.history(), session.view(), next(at for at, i in enumerate(items) if isinstance(i, Summary))


def protecting(first: int, last: int, **more: Any) -> Settings:
    return Settings(compression=CompressionSettings(protect_first_n=first, protect_last_n=last, **more))


@pytest.mark.parametrize(("first", "head"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 4), (5, 6)], ids=str)
def test_c2_the_head_is_the_first_messages_and_grows_to_whole_groups(
    opened, loop, faithful, first, head
) -> None:
    before, after, at = summarised(opened, faithful, loop(60), settings=protecting(first, 20))
    assert at == head
    assert after[:head] == before[:head]


def test_c2_a_system_prompt_beside_the_messages_counts_as_the_first(opened, loop, faithful) -> None:
    session = opened(policy="summary-only", summarizer=ScriptedSummarizer(faithful))
    script = loop(60, script=Script("anthropic").user("Go.").says("Gone.").user("Now for real."))
    session.sync_messages([json.loads(m.wire.raw) for m in script.messages() if m.wire], system="Be brief.")
    session.compress()
    items = list(internals(session).ledger.view.items)
    assert isinstance(items[2], Summary), "system prompt and first exchange"


@pytest.mark.parametrize(("last", "kept"), [(20, 20), (21, 22), (1, 14), (14, 14)])
def test_c2_the_tail_is_what_its_budget_pays_for_but_at_least_the_last_messages_in_whole_groups(
    opened, loop, faithful, last, kept
) -> None:
    # 12,800 tokens pay for seven groups of 1,700.
    settings = protecting(3, last)
    before, after, at = summarised(opened, faithful, loop(34, lines=125), settings=settings)
    assert after[at + 2 :] == before[-kept:]


@pytest.mark.parametrize(("ratio", "tokens"), [(0.1, 6_400), (0.4, 25_600)])
def test_c2_the_tails_budget_is_a_share_of_the_threshold(opened, loop, faithful, ratio, tokens) -> None:
    settings = protecting(3, 1, target_ratio=ratio)
    session = opened(
        loop(80), policy="summary-only", settings=settings, summarizer=ScriptedSummarizer(faithful)
    )
    session.compress()
    items = list(internals(session).ledger.view.items)
    at = next(at for at, item in enumerate(items) if isinstance(item, Summary))
    paid = sum(item.tokens for item in items[at + 3 :])  # without the call that alignment may have added
    assert tokens - 1_200 < paid <= tokens


def test_c2_at_the_wall_the_tail_shrinks_to_the_newest_group_and_user_message(opened, loop, told) -> None:
    script = loop(12, lines=125)
    session = opened(script, policy="runway", window=SMALL)
    session.prepare()
    before = told(script)
    request = session.prepare()
    sent = request.as_openai()["messages"]
    assert request.tokens < session.status().wall
    assert len(sent) < 20
    assert sent[-2] == before[-2]
    assert before[1] in sent, "what the user asked, word for word"


def test_c2_at_the_wall_outputs_inside_the_tail_are_shortened(opened, loop, told) -> None:
    script = loop(3, lines=4)
    script = loop(1, lines=2_000, script=script)
    session = opened(script, policy="runway", window=SMALL)
    request = session.prepare()
    sent, before = request.as_openai()["messages"], told(script)
    assert request.tokens < session.status().wall
    assert sent[:-1] == before[:-1]
    assert sent[-1]["content"][:40] == before[-1]["content"][:40]
    assert sent[-1]["content"][-20:] == before[-1]["content"][-20:]
    assert len(sent[-1]["content"]) < len(before[-1]["content"]) / 4


# 3. Summarise the middle


def test_c3_the_template_has_the_sections_of_the_spec_in_their_order() -> None:
    spelled = (
        "Goal · Constraints & Preferences · Done / In Progress / Blocked · Key Decisions · Resolved Questions · "
        "Pending User Asks · Relevant Files · Remaining Work / Next Steps · Critical Context · Tools & Patterns"
    )
    assert PROGRESS == "Progress"
    assert (
        " · ".join(Section).replace("Done · In Progress · Blocked", "Done / In Progress / Blocked") == spelled
    )


def test_c3_the_summary_without_a_model_fills_the_template(opened, loop, summaries) -> None:
    script = Script().system("Be brief.").user("Hello.").says("Hello yourself.")
    script.user("Make src/auth/login.py accept passkeys. Do not change the schema.")
    script.calls("read_file", {"path": "src/auth/login.py"}, "def login(): ...\n" * 60)
    script.calls("edit", {"path": "src/auth/login.py", "old_string": "a", "new_string": "b"}, "edited")
    script.calls(
        "terminal", {"command": "pytest tests/auth"}, "FAILED tests/auth/test_login.py::test_passkey"
    )
    session = opened(loop(40, script=script).says("It works.").user("Go on."), policy="summary-only")
    session.compress()
    (summary,) = summaries(session)
    headings = [line.strip("# ") for line in summary.message.text.splitlines() if line.startswith("##")]
    order = ["Goal", "Constraints & Preferences", "Progress", *map(str, list(Section)[2:])]
    assert [heading for heading in order if heading in headings] == headings
    assert {"Goal", "Constraints & Preferences", "Progress", "Relevant Files"} <= set(headings)
    assert "Do not change the schema." in summary.message.text
    assert "src/auth/login.py" in summary.message.text


@pytest.mark.parametrize(("kind", "limit"), [("result", 3_000), ("argument", 400), ("text", 3_000)])
def test_c3_the_summariser_is_shown_head_and_tail_of_what_is_long(
    opened, loop, faithful, kind, limit
) -> None:
    long = "HEAD " + " ".join(f"word{number}" for number in range(2_000)) + " TAIL"
    script = Script().system("Be brief.").user("Go.").says("Going.").user("Really go.")
    match kind:
        case "result":
            script.calls("terminal", {"command": "make"}, long)
        case "argument":
            script.calls("terminal", {"command": long}, "ok")
        case _:
            script.says(long)
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(40, script=script), policy="summary-only", summarizer=summarizer)
    session.compress()
    shown = transcript_for(summarizer.requests[0], WordTokenizer(), max_tokens=10**9)
    (piece,) = [piece for piece in shown.split("\n\n[") if "HEAD" in piece]
    text = piece.partition("]\n")[2]
    assert 0.8 * limit < len(text) <= limit
    assert "TAIL" in text


@pytest.mark.parametrize("bound", [4_000, 400])
def test_c3_the_whole_input_is_bounded_too(opened, loop, faithful, bound) -> None:
    summarizer = ScriptedSummarizer(faithful)
    opened(loop(60), policy="summary-only", summarizer=summarizer).compress()
    words = WordTokenizer()
    assert words.count(transcript_for(summarizer.requests[0], words, max_tokens=10**9)) > bound
    assert words.count(transcript_for(summarizer.requests[0], words, max_tokens=bound)) <= bound


def test_c3_originals_are_summarised_and_not_placeholders(opened, loop, told, faithful) -> None:
    script, summarizer = loop(60, lines=90), ScriptedSummarizer(faithful)
    session = opened(script, policy="prune-naive", summarizer=summarizer)
    session.prepare()
    elided = set(changed(session))
    session.compress()
    (request,) = summarizer.requests
    assert elided & {number - 1 for number in request.numbers}
    before = told(script)
    for number, message in zip(request.numbers, request.messages, strict=True):
        content = before[number - 1]["content"]
        assert content is None or content in "\n".join(texts_of(message))
