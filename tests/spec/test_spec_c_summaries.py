"""Specification C: summaries again and again, focus, failing summarisers, reset, and what is printed."""

import logging
from typing import Any

import pytest
from msgspec.structs import replace

from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.summary.template import Section, parse
from lowwater.core.summary.transcript import transcript_for
from lowwater.errors import SummaryFailed
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import ScriptedClock, ScriptedSummarizer, WordTokenizer, fail, lie, refuse
from lowwater.testing.views import Script

DOWN = fail(RuntimeError("out of order"))
TINY = CompressionSettings(weak_summaries="refuse", summary_min_tokens=0, summary_max_tokens=40)
"""So little room that nothing good can be written."""


def parsed(summary: Any) -> Any:
    return parse(summary.message.text)


# Again and again


@pytest.fixture
def updated(opened, loop, told, summaries) -> Any:
    """Two summaries of one session, one after the other: first this conversation, then that."""

    def run(first: Script, then: Script, **options: Any) -> tuple[Any, Any]:
        first = loop(40, script=first).says("So far so good.").user("Go on.")
        session = opened(first, policy="threshold", **options)
        assert session.compress() is not None
        (one,) = summaries(session)
        session.append(told(loop(40, script=then)))
        assert session.compress() is not None
        (two,) = summaries(session)
        return one, two

    return run


def opening(*asks: str) -> Script:
    script = Script().system("Be brief.").user("Hello.").says("Hello yourself.")
    for ask in asks:
        script.user(ask)
    return script


def test_c_the_next_compaction_updates_the_previous_summary(updated, faithful) -> None:
    summarizer = ScriptedSummarizer(faithful)
    one, two = updated(opening("Look at target 3."), Script().user("Now target 4."), summarizer=summarizer)
    first, second = summarizer.requests
    assert first.previous == ""
    assert second.previous == one.message.text.partition("turns -----\n")[2].partition("\n----- end")[0]
    assert two.sources[0].first == one.sources[0].first
    assert two.sources[-1].last > one.sources[-1].last


def test_c_done_items_move_and_obsolete_ones_go(updated) -> None:
    todo = {"todos": [{"content": "Write the parser", "status": "in_progress"}]}
    done = {"todos": [{"content": "Write the parser", "status": "completed"}]}
    first = opening("Write the parser and its docs.").calls("todo_write", todo, "ok")
    then = Script().user("How is it going?").calls("todo_write", done, "ok").says("The parser is written.")
    one, two = (parsed(summary) for summary in updated(first, then.user("Good.")))
    assert any("Write the parser" in item for item in one.of(Section.IN_PROGRESS))
    assert any("Write the parser" in item for item in two.of(Section.DONE))
    assert not any("Write the parser" in item for item in two.of(Section.IN_PROGRESS))


def test_c_files_and_constraints_accumulate(updated) -> None:
    edit = {"old_string": "a", "new_string": "b"}
    first = opening("Never touch src/legacy.py.").calls("edit", {"path": "src/one.py", **edit}, "edited")
    then = Script().user("Always run the linter.").calls("edit", {"path": "src/two.py", **edit}, "edited")
    _, two = (parsed(summary) for summary in updated(first, then.says("Edited.").user("Go on.")))
    files, bounds = "\n".join(two.of(Section.FILES)), "\n".join(two.of(Section.CONSTRAINTS))
    assert "src/one.py" in files
    assert "src/two.py" in files
    assert "Never touch src/legacy.py." in bounds
    assert "Always run the linter." in bounds


def test_c_what_is_in_the_summary_is_not_sent_to_the_summariser_again(updated, faithful) -> None:
    summarizer = ScriptedSummarizer(faithful)
    updated(opening("Look at target 3."), Script().user("Now target 4."), summarizer=summarizer)
    first, second = (set(request.numbers) for request in summarizer.requests)
    assert first
    assert second
    assert not first & second


def test_c_nor_are_near_duplicates_of_it(updated, faithful) -> None:
    said = "The cache of the login service must be cleared by hand after each deployment of the web tier."

    def saying(request: SummaryRequest) -> Written:
        told: Written = faithful(request)
        return replace(told, text=f"{told.text}\n- {said}\n")

    summarizer = ScriptedSummarizer(saying)
    then = Script().user("Now target 4.").says(said.replace("by hand ", "")).says("Something else entirely.")
    updated(opening("Look at target 3."), then, summarizer=summarizer)
    shown = transcript_for(summarizer.requests[-1], WordTokenizer(), max_tokens=10**9)
    assert "Something else entirely." in shown
    assert "cache of the login service" not in shown


# Focus


def test_c_a_focus_named_by_hand_is_kept_in_more_detail(opened, loop, summaries) -> None:
    settings = Settings(compression=CompressionSettings(summary_min_tokens=300, summary_max_tokens=300))
    kept = {}
    for focus in ("billing", "search"):
        script = opening("Look at everything.")
        for number in range(30):
            script.says(f"The billing service rounds invoice {number} down at src/billing/round_{number}.py.")
            script.says(f"The search service ranks query {number} too low at src/search/rank_{number}.py.")
        session = opened(loop(40, script=script), policy="threshold", settings=settings)
        session.compress(focus)
        text = summaries(session)[0].message.text
        kept[focus] = (text.count("src/billing/"), text.count("src/search/"))
    assert kept["billing"][0] > kept["search"][0]
    assert kept["search"][1] > kept["billing"][1]


# When the summariser fails


def by_whom(opened: Any, loop: Any, *acts: Any, **options: Any) -> tuple[str, list[int]]:
    """Return who wrote the summary of a session, and how often each summarizer was asked."""
    asked = [ScriptedSummarizer(*each) for each in acts]
    session = opened(loop(60), policy="threshold", summarizer=asked, **options)
    event = session.compress()
    return event.summarizer if event else "", [len(each.requests) for each in asked]


def test_c_a_failed_summariser_is_asked_again(opened, loop, faithful) -> None:
    assert by_whom(opened, loop, [DOWN, faithful]) == ("faithful", [2])


@pytest.mark.parametrize("act", [DOWN, refuse], ids=["fails", "refuses"])
def test_c_then_another_model_is_asked(opened, loop, faithful, act) -> None:
    by, asked = by_whom(opened, loop, [act], [faithful])
    assert (by, asked[1]) == ("faithful", 1)


def test_c_then_the_extractive_summariser_writes_it(opened, loop) -> None:
    assert by_whom(opened, loop, [DOWN], [DOWN]) == ("extractive", [2, 2])


def test_c_then_a_static_marker_says_what_was_left_out_and_how_to_recall_it(opened, loop, summaries) -> None:
    session = opened(
        loop(60, lines=40),
        policy="runway",
        window=24_000,
        settings=Settings(compression=TINY),
        summarizer=ScriptedSummarizer(DOWN),
    )
    request = session.prepare(offers_recall=True)
    assert request.tokens < session.status().wall
    text = summaries(session)[-1].message.text
    assert "were left out without a summary" in text
    assert "recall any of them by its handle, lw:" in text


@pytest.mark.parametrize("kind", ["auth", "network"])
def test_c_an_auth_or_network_failure_never_drops_text(opened, loop, told, kind) -> None:
    script = loop(60, lines=40)
    session = opened(
        script,
        policy="threshold",
        window=24_000,
        settings=Settings(compression=TINY),
        summarizer=ScriptedSummarizer(fail(SummaryFailed("not now", kind))),
    )
    sent = session.prepare().as_openai()["messages"]
    assert "left out without a summary" not in str(sent)
    assert len(sent) == len(told(script)), "every message still stands there, if only in short"


def test_c_after_failures_there_is_a_cool_down_that_ends_by_time(opened, loop, told) -> None:
    clock, failing = ScriptedClock(0.0), ScriptedSummarizer(DOWN)
    session = opened(loop(60, lines=90), policy="threshold", summarizer=failing, clock=clock)
    session.prepare()
    asked = len(failing.requests)
    session.append(told(loop(60, lines=90, script=Script().user("On."))))
    session.prepare()
    assert (len(failing.requests), session.status().decision.because.code) == (asked, "cooling-down")
    clock.advance(61.0)
    session.prepare()
    assert len(failing.requests) > asked > 0


def test_c_repeatedly_low_scores_switch_to_the_next_strategy(opened, loop, told, faithful) -> None:
    low, next_one = ScriptedSummarizer(lie), ScriptedSummarizer(faithful)
    session = opened(loop(40), policy="threshold", summarizer=[low, next_one], clock=ScriptedClock(0.0))
    for turn in range(5):
        session.compress()
        session.append(told(loop(40, script=Script().user(f"Now look at src/part_{turn}/main.py."))))
    assert (len(low.requests), len(next_one.requests)) == (3, 5)


# Reset


def test_c_a_reset_clears_summary_counters_and_warned_levels(opened, loop, told, summaries) -> None:
    warned: list[str] = []
    script = loop(60, lines=90)
    session = opened(script, policy="never", on_warning=lambda warning: warned.append(warning.level))
    session.prepare()
    first = list(warned)
    assert first
    session.compress()
    assert (len(summaries(session)), session.status().compaction_count) == (1, 1)
    internals(session).reset()
    assert (summaries(session), session.status().compaction_count, session.status().decision) == (
        [],
        0,
        None,
    )
    assert session.view() == told(script)
    session.prepare()
    assert warned == first * 2


def test_c_after_a_reset_the_summariser_is_asked_for_a_new_summary(opened, loop, faithful) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(60), policy="threshold", summarizer=summarizer)
    session.compress()
    internals(session).reset()
    session.compress()
    assert [request.previous for request in summarizer.requests] == ["", ""]


# Output


@pytest.mark.parametrize("policy", ["runway", "threshold", "prune-naive"])
def test_c_each_event_prints_what_triggered_it_each_phase_and_the_count(
    opened, loop, caplog, compacted, policy
) -> None:
    session = opened(loop(60, lines=90), policy=policy, settings=Settings())
    with caplog.at_level(logging.INFO, "lowwater"):
        session.prepare()
    (line,) = [r.getMessage() for r in caplog.records if "compaction 1" in r.getMessage()]
    event = compacted(session)
    assert f"({event.because.code})" in line
    assert [f"{phase.mechanism} −{phase.removed:,}" in line for phase in event.phases] == [True] * len(
        event.phases
    )
    assert f"{event.before:,} → {event.after:,} tokens" in line


def test_c_quiet_prints_nothing(opened, loop, caplog) -> None:
    with caplog.at_level(logging.DEBUG):
        opened(loop(60, lines=90), policy="prune-naive").prepare()
    assert caplog.text == ""
