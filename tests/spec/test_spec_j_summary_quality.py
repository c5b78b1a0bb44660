"""Specification J: is the summary any good?"""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.summary.validation import validate
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import ScriptedSummarizer, WordTokenizer, cut_off, grow, lie, refuse, write
from lowwater.testing.views import Script

WORDS = WordTokenizer()
LONG_ERROR = (
    "OperationalError: could not connect to the primary of shard 17, retried 5 times with back-off: "
    + "x9" * 40
)
LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore. "
    * 5
)
WEAK = "Some files were looked at, some commands were run, and a few things were changed here and there. " * 2


@pytest.fixture
def talk(loop: Callable[..., Script]) -> Script:
    """A conversation whose middle has something of everything that is critical."""
    script = Script().system("Be brief.").user("Hello.").says("Hello yourself.")
    script.user("Migrate src/orders/store.py to the new schema, but never drop the column legacy_ref.")
    script.calls(
        "terminal", {"command": "python -m migrate --plan plan_4711"}, f"starting\n{LONG_ERROR}\nexit 1"
    )
    script.calls(
        "terminal",
        {"command": "cat logs/app.log"},
        "Traceback (most recent call last):\n  File \"x.py\"\nKeyError: 'tenant_id'\n"
        + "\n".join(f"13:{row:02} served 58{row:03} bytes to client-{row}" for row in range(40)),
    )
    script.says("The culprit is `resolve_tenant` in src/tenants/resolver.py; the batch size must be 4096.")
    return loop(45, lines=30, script=script).says("So far so good.").user("Go on.")


@pytest.fixture
def summarised(opened, talk) -> Any:
    """A session compacted by hand with these summarizers, its event and the summary's text."""

    def run(*acts: Any, **compression: Any) -> tuple[Any, str, list[SummaryRequest]]:
        summarizers = [ScriptedSummarizer(act) for act in acts]
        settings = Settings(compression=CompressionSettings(**compression))
        session = opened(talk, policy="threshold", summarizer=summarizers, settings=settings)
        event = session.compress()
        texts = [str(message["content"]) for message in session.view()]
        framed = next((text for text in texts if "summary of earlier turns" in text), "")
        return event, framed, [request for each in summarizers for request in each.requests]

    return run


# Critical references


@pytest.fixture
def wanted(summarised) -> dict[str, set[str]]:
    """The critical references of that middle, by kind."""
    _, _, (request,) = summarised(lambda request: Written(text=_all(request), by="all"))
    found: dict[str, set[str]] = {}
    for reference in critical_references(request):
        found.setdefault(reference.kind, set()).add(reference.text)
    return found


def _all(request: SummaryRequest) -> str:
    return "## Critical Context\n" + "\n".join(
        f"- {reference.text}" for reference in critical_references(request)
    )


def _written(text: str) -> Written:
    return Written(text=text, by="somebody")


def test_j_error_and_traceback_lines_are_critical(wanted) -> None:
    assert any(line.startswith("OperationalError: could not connect") for line in wanted["error"])
    assert any("KeyError: 'tenant_id'" in line for line in wanted["error"])


def test_j_errors_are_compared_by_their_first_100_characters(summarised) -> None:
    assert len(LONG_ERROR) > 150
    _, _, (request,) = summarised(lambda request: Written(text=_all(request), by="all"))
    (error,) = [r for r in critical_references(request) if r.text.startswith("OperationalError")]
    assert 90 <= len(error.text) <= 100
    assert LONG_ERROR.startswith(error.text)
    others = _all(request).replace(error.text, "")
    kept = {
        length: error
        not in validate(_written(f"{others}\n- {LONG_ERROR[:length]}"), request, WORDS, 10**6).missing
        for length in (60, 100, len(LONG_ERROR))
    }
    assert kept == {60: False, 100: True, len(LONG_ERROR): True}


def test_j_what_the_user_asked_and_forbade_is_critical(wanted) -> None:
    assert any("Migrate src/orders/store.py" in ask for ask in wanted["ask"])
    assert any("never drop the column legacy_ref" in bound for bound in wanted["forbidden"])


def test_j_paths_ids_and_values_that_the_assistant_named_are_critical(wanted) -> None:
    named = wanted["path"] | wanted["identifier"] | wanted["value"]
    assert {
        "src/tenants/resolver.py",
        "resolve_tenant",
        "4096",
        "plan_4711",
        "logs/app.log",
    } <= named


def test_j_not_every_number_in_every_log_is(wanted) -> None:
    everything = "\n".join(text for texts in wanted.values() for text in texts)
    assert "58007" not in everything
    assert "client-7" not in everything
    assert "took" not in everything


# What is not accepted


@pytest.mark.parametrize(
    "act",
    [write("Migrated the store; resolve_tenant was the culprit."), refuse, cut_off, grow],
    ids=["under 100 characters", "a refusal", "cut off by length", "larger than what it replaces"],
)
def test_j_this_is_no_summary_and_the_next_summariser_is_asked(summarised, faithful, act) -> None:
    event, _, _ = summarised(act, faithful)
    assert event.summarizer == "faithful"


@pytest.mark.parametrize(("kept", "accepted"), [(10, True), (9, False)], ids=["half", "less"])
def test_j_missing_more_than_half_of_the_references_is_not_accepted(summarised, kept, accepted) -> None:
    _, _, (request,) = summarised(lambda request: Written(text=_all(request), by="all"))
    paths = [reference for reference in critical_references(request) if reference.kind == "path"][-20:]
    text = "The files that were touched, in the order of time:\n" + "\n".join(
        each.text for each in paths[:kept]
    )
    verdict = validate(_written(text), request, WORDS, 10**6, wanted=paths)
    assert verdict.accepted is accepted
    assert accepted or verdict.because.code == "references_missing"


def test_j_the_first_five_missing_are_reported(summarised) -> None:
    _, _, (request,) = summarised(lie)
    verdict = validate(lie(request), request, WORDS, 10**6)
    assert len(verdict.missing) > 5
    assert verdict.first_missing == tuple(reference.text for reference in critical_references(request)[:5])


@pytest.mark.parametrize("choice", ["accept", "refuse"])
def test_j_the_first_five_missing_reach_whoever_listens(opened, talk, sink, caplog, choice) -> None:
    tiny = CompressionSettings(summary_min_tokens=0, summary_max_tokens=60, weak_summaries=choice)
    session = opened(talk, policy="threshold", summarizer=[], settings=Settings(compression=tiny))
    with caplog.at_level(logging.DEBUG, "lowwater"):
        event = session.compress()
    assert (event is not None) is (choice == "accept")
    ((_, heard),) = sink.events
    (rejected,) = heard.rejected
    assert (rejected.by, rejected.code) == ("extractive", "references_missing")
    assert len(rejected.first_missing) == 5 < rejected.missing
    assert "src/tenants/resolver.py" in rejected.first_missing or "legacy_ref" in str(rejected.first_missing)
    for text in rejected.first_missing:
        assert text in session.explain()
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"extractive (references_missing, {rejected.missing:,} references missing)" in line
    assert not any(text in line for text in rejected.first_missing)


def test_j_what_was_missing_before_a_repair_or_from_one_passed_over_is_told_too(summarised, faithful) -> None:
    repaired, _, _ = summarised(write(WEAK, by="weak"))
    passed, _, _ = summarised(refuse, faithful)
    kept, _, _ = summarised(faithful)
    assert [each.by for each in repaired.rejected] == ["weak"]
    assert [each.code for each in passed.rejected] == ["refusal"]
    assert kept.rejected == ()


def nearly(request: SummaryRequest) -> Written:
    wanted = critical_references(request)
    kept = [each for each in wanted if each.kind != "forbidden"][: round(0.35 * len(wanted))]
    return Written(text="## Critical Context\n" + "\n".join(f"- {each.text}" for each in kept), by="nearly")


def test_j_a_summary_that_is_nearly_good_is_repaired_by_appending_what_is_missing(summarised) -> None:
    event, text, (request,) = summarised(nearly)
    assert event.summarizer == "nearly"
    assert nearly(request).text in text
    assert "never drop the column legacy_ref" in text
    assert 0.4 <= event.score < 0.5, "what is recorded is the score of what was written"
    assert len(validate(_written(text), request, WORDS, 10**6).missing) < event.rejected[0].missing


@pytest.mark.parametrize("poor", [WEAK, LOREM], ids=["generalities", "Lorem ipsum"])
@pytest.mark.parametrize("choice", ["accept", "refuse"])
def test_j_what_has_little_to_repair_is_passed_over(summarised, faithful, poor, choice) -> None:
    event, text, requests = summarised(write(poor), faithful, weak_summaries=choice)
    assert (event.summarizer, event.score, len(requests)) == ("faithful", 1.0, 2)
    alone, text, _ = summarised(write(poor), weak_summaries=choice)
    assert alone.summarizer == "extractive"
    assert poor.strip() not in text
    best, _, _ = summarised(write(poor), faithful, competing_summaries=True, weak_summaries=choice)
    assert best.summarizer == "faithful"


def test_j_if_there_is_no_room_to_repair_it_the_next_summariser_is_asked(summarised, faithful) -> None:
    def long(request: SummaryRequest) -> Written:
        return Written(text=nearly(request).text + "\n" + WEAK * 60, by="long")

    event, _, requests = summarised(long, faithful)
    assert event.summarizer == "faithful"
    assert len(requests) == 2


def test_j_what_the_user_forbade_is_put_back_word_for_word(summarised) -> None:
    def without(request: SummaryRequest) -> Written:
        kept = [each for each in critical_references(request) if "legacy_ref" not in each.text]
        return _written("## Critical Context\n" + "\n".join(f"- {each.text}" for each in kept))

    event, text, _ = summarised(without)
    assert event.summarizer == "somebody"
    assert event.score > 0.7
    assert event.repaired_score > event.score, "and so is the score of what was repaired"
    assert "Migrate src/orders/store.py to the new schema, but never drop the column legacy_ref." in text


# Competition, score, the setting


def some(request: SummaryRequest) -> Written:
    kept = critical_references(request)[: round(0.6 * len(critical_references(request)))]
    return Written(text="## Critical Context\n" + "\n".join(f"- {each.text}" for each in kept), by="some")


def test_j_the_extractive_summary_competes_too(summarised) -> None:
    event, _, requests = summarised(some, competing_summaries=True)
    assert (event.summarizer, len(requests)) == ("extractive", 1)


@pytest.mark.parametrize(("competing", "by", "asked"), [(True, "faithful", 3), (False, "some", 1)])
def test_j_several_summarisers_may_compete_and_the_best_wins(
    summarised, faithful, competing, by, asked
) -> None:
    event, _, requests = summarised(some, faithful, refuse, competing_summaries=competing)
    assert (event.summarizer, len(requests)) == (by, asked)


def test_j_the_score_is_recorded(summarised, faithful, sink) -> None:
    best, _, _ = summarised(faithful)
    worse, _, _ = summarised(some)
    assert best.score == 1.0
    assert 0.5 <= worse.score < 0.8
    assert [event.score for event in sink.compactions] == [best.score, worse.score]


@pytest.mark.parametrize("choice", ["accept", "refuse"])
def test_j_a_setting_chooses_between_the_best_there_is_and_refusing(summarised, choice) -> None:
    event, text, _ = summarised(weak_summaries=choice, summary_min_tokens=0, summary_max_tokens=60)
    if choice == "accept":
        assert event.score < 0.5
        assert text
    else:
        assert (event, text) == (None, "")
