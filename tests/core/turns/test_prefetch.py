"""Prefetched summaries: written in idle time if they will be needed, and published without a call."""

from typing import Any

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.costs.prices import cost_of
from lowwater.core.decisions import Compact
from lowwater.core.entries import Compacted
from lowwater.core.turns.candidates import suffices
from lowwater.core.turns.decision_context import DecisionInputs
from lowwater.errors import SummaryFailed
from lowwater.session.internals import internals
from lowwater.testing.decision_contexts import example_context, offer
from lowwater.testing.fakes import Act, fail, grow, refuse, write
from lowwater.testing.views import asked
from tests.core.turns.session_player import MODEL, NEAR, SPENT, WINDOW, Talk


def test_prefetching_asks_once_and_changes_neither_ledger_nor_view() -> None:
    talk = Talk().turns(NEAR)
    ledger, view = internals(talk.session).ledger, talk.session.view()
    assert talk.session.prefetch_summary()
    assert talk.session.prefetch_summary(), "it is still ready"
    assert talk.asked == 1
    assert internals(talk.session).ledger is ledger
    assert talk.session.view() == view


def test_over_a_warm_cache_it_is_asked_for_by_extending_the_request_sent_last() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.prefetch_summary()
    riding = talk.model.requests[0].cached_prefix
    assert riding is not None
    assert len(riding.since) == 1, "the answer came after it"


@pytest.mark.parametrize(
    ("policy", "turns", "options"),
    [
        ("threshold", 20, {}),
        ("rent-or-buy", 10, {"context": None}),
        ("never", NEAR, {"context": None}),
        ("threshold", NEAR, {"enabled": False}),
    ],
    ids=["far from the threshold", "little rent paid", "far from the wall", "switched off"],
)
def test_what_cannot_be_expected_to_be_used_is_not_asked_for(
    policy: str, turns: int, options: dict[str, Any]
) -> None:
    talk = Talk(policy=policy, **options).turns(turns)
    assert not talk.session.prefetch_summary()
    assert talk.asked == 0


def test_at_its_threshold_a_session_publishes_what_is_prefetched_and_asks_nobody() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.prefetch_summary()
    talk.until_compacted()
    (event,) = talk.sink.compactions
    assert (event.mode, event.summarizer, talk.asked) == ("summary", "model", 1)
    assert event.after < talk.session.status().threshold
    entries = [entry for entry in internals(talk.session).ledger.entries if isinstance(entry, Compacted)]
    assert len(entries) == 1, "summary and edits in one entry"


@pytest.mark.parametrize(
    ("policy", "options", "codes"),
    [
        ("never", {"context": 40_000}, {"wall"}),
        ("never", {"context": None, "max_view_tokens": 30_000}, {"prune-falls-short", "prune-too-small"}),
    ],
    ids=["wall", "ceiling"],
)
def test_under_pressure_no_model_is_waited_for(policy: str, options: dict[str, Any], codes: set[str]) -> None:
    talk = Talk(policy=policy, **options).until_parked()
    talk.until_compacted()
    event = talk.sink.compactions[-1]
    assert event.because.code in codes
    assert (event.summarizer, talk.asked) == ("model", 1)


def test_over_a_warm_cache_it_is_published_once_the_rent_has_reached_what_is_left_of_its_price() -> None:
    talk = Talk(policy="rent-or-buy", context=None).until_parked()
    before = len(talk.sink.compactions)
    talk.until_compacted()
    event = talk.sink.compactions[before]
    assert (event.because.code, event.summarizer, talk.asked) == ("rent-paid", "model", 1)
    assert event.cost == cost_of(SPENT, load_registry().find(MODEL)), "its bill has what was written ahead"


def test_a_cold_call_publishes_it() -> None:
    talk = Talk(policy="rent-or-buy", context=None).until_parked()
    before = len(talk.sink.compactions)
    talk.clock.advance(3_601)
    talk.turn()
    event = talk.sink.compactions[before]
    assert event.because.code == "free-now"
    assert (event.summarizer, talk.asked) == ("model", 1)


def test_what_a_prefetched_summary_cost_is_billed_when_it_is_written() -> None:
    talk = Talk().turns(NEAR)
    cost = cost_of(SPENT, load_registry().find(MODEL))
    assert cost is not None
    before = talk.session.status().totals
    talk.session.prefetch_summary()
    after = talk.session.status().totals
    assert (before.summary_cost, after.summary_cost) == (0, cost)
    talk.until_compacted()
    assert talk.session.status().totals.summary_cost == cost, "and not again when it is published"
    assert sum(event.cost or 0 for event in talk.sink.compactions) == cost, "as the events tell"


def test_by_hand_it_is_used_where_it_is_what_would_be_asked_for() -> None:
    prefetched, plain = Talk().turns(NEAR), Talk().turns(NEAR)
    assert prefetched.session.prefetch_summary()
    assert prefetched.session.compress() is not None
    assert plain.session.compress() is not None
    assert (prefetched.asked, plain.asked) == (1, 1)
    assert prefetched.session.view() == plain.session.view(), "the same bytes, prefetched or not"


@pytest.mark.parametrize("policy", ["threshold", "never", "runway", "hermes-classic"])
def test_at_the_moment_of_need_the_same_bytes_come_out_prefetched_or_not(policy: str) -> None:
    """Prefetched at the last moment, so that the span is the same."""
    requests = []
    for prefetches in (True, False):
        talk = Talk(policy=policy)
        talk.hear()
        while not isinstance(internals(talk.session).dry_run(), Compact):
            talk.answer(talk.session.prepare())
            talk.hear()
        if prefetches:
            assert talk.session.prefetch_summary()
        asked = talk.asked
        requests.append(talk.session.prepare().as_anthropic())
        assert talk.sink.compactions[-1].summarizer == "model"
        assert talk.asked == (asked if prefetches else asked + 1)
    assert requests[0] == requests[1]


def test_by_hand_as_much_is_summarised_as_can_be() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.prefetch_summary()
    talk.turns(3)
    assert talk.session.compress() is not None
    prefetched, asked = talk.model.requests
    assert prefetched.numbers == asked.numbers[: len(prefetched.numbers)]
    assert len(asked.numbers) > len(prefetched.numbers)


def test_a_focus_asks_for_another_summary() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.prefetch_summary()
    assert talk.session.compress("the failing tests") is not None
    assert [request.focus for request in talk.model.requests] == ["", "the failing tests"]


@pytest.mark.parametrize(
    "act",
    [fail(RuntimeError("no")), fail(SummaryFailed("no", "auth")), refuse, write(""), grow],
    ids=["raises", "has no key", "refuses", "says nothing", "grows"],
)
def test_a_failing_summarizer_prefetches_nothing_loses_nothing_and_pauses(act: Act) -> None:
    talk = Talk(act).turns(NEAR)
    ledger = internals(talk.session).ledger
    assert not talk.session.prefetch_summary()
    tried = talk.asked
    assert tried > 0
    assert not talk.session.prefetch_summary(), "the summarizer cools down"
    assert talk.asked == tried
    assert internals(talk.session).ledger is ledger
    talk.clock.advance(61)
    talk.session.prefetch_summary()
    assert talk.asked > tried


def test_one_that_was_refused_is_reported_with_the_compaction_that_had_to_do_without() -> None:
    talk = Talk(refuse).turns(NEAR)
    assert not talk.session.prefetch_summary()
    talk.until_compacted()
    (event,) = talk.sink.compactions
    told = [each.code for each in event.rejected if each.by == "refusing"]
    assert told == ["refusal"] * talk.asked


def test_a_reset_forgets_it() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.prefetch_summary()
    internals(talk.session).reset()
    assert talk.session.compress() is not None
    assert talk.asked == 2


@pytest.mark.parametrize("policy", ["rent-or-buy", "threshold", "runway", "never"])
def test_the_invariants_hold_when_every_pause_is_used_for_prefetching(policy: str) -> None:
    talk = Talk(policy=policy, context=None if policy == "rent-or-buy" else WINDOW)
    for _ in range(79):
        talk.turn()
        talk.session.prefetch_summary()
    summaries = [event for event in talk.sink.compactions if event.mode == "summary"]
    assert summaries
    assert {event.summarizer for event in summaries} == {"model"}
    assert {event.cost for event in summaries} == {cost_of(SPENT, load_registry().find(MODEL))}, "each once"


@pytest.mark.parametrize(
    ("fields", "enough"),
    [
        ({}, True),
        ({"removes": 1_000}, False),
        ({"cliff": 62_000}, False),
        ({"forced": True}, False),
    ],
    ids=["below the target", "above the target", "too near to the cliff", "by hand"],
)
def test_it_does_where_it_gets_the_prompt_low_enough(fields: dict[str, Any], enough: bool) -> None:
    summary = offer("summarize", fields.pop("removes", 12_000))
    now = example_context(65_000, **fields)
    assert now.limits.target > 53_000 > 62_000 - now.limits.runway
    assert suffices(DecisionInputs(now=now, request=asked([])), summary) == enough
