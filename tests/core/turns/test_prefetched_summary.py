"""A prefetched summary: what it stands for, when it may be published, and what it offers."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.decisions import Reason
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import summarize
from lowwater.core.mechanisms.elide import apply as elide
from lowwater.core.mechanisms.spans import replace_span, request_for
from lowwater.core.messages import Span
from lowwater.core.summary.request import Judged, Verdict, Written
from lowwater.core.turns.prefetch import PrefetchOutcome, settle
from lowwater.core.turns.state import PrefetchedSummary, RecheckBackoff, Route, State
from lowwater.core.view import Edited, Item
from lowwater.session.factories import calibration_for
from lowwater.testing.views import Script, asked, lines, making, offer_of

FIRST, LAST, TURNS = 1, 4, 10


def conversation(turns: int = TURNS) -> list[Item]:
    return script_of(turns).items()


def script_of(turns: int) -> Script:
    script = Script("openai_chat").user("Fix the tests.")
    for turn in range(turns):
        script.calls("bash", {"command": f"step {turn}"}, lines(60, f"word{turn}"))
    return script


def prefetched_for(items: Sequence[Item], span: Span, *, tokens: int = 60) -> PrefetchedSummary:
    request = request_for(items, span, max_tokens=100, focus="", recall=False)
    verdict = Verdict(accepted=True, because=Reason(code="accepted", facts={}), score=1.0)
    return PrefetchedSummary(
        span=span,
        numbers=request.numbers,
        previous=request.previous,
        recall=request.recall,
        tokens=tokens,
        judged=Judged(written=Written(text="## Goal\n- Fix the tests.", by="model"), verdict=verdict),
    )


ITEMS = conversation()
SPAN = Span(start=1, stop=len(ITEMS) - LAST)
PREFETCHED = prefetched_for(ITEMS, SPAN)


def without(items: Sequence[Item], at: int) -> list[Item]:
    return [item for index, item in enumerate(items) if index != at]


@pytest.mark.parametrize(
    ("items", "fits"),
    [
        (ITEMS, True),
        (conversation(TURNS + 5), True),
        (without(ITEMS, SPAN.stop), True),
        (without(ITEMS, SPAN.stop - 1), False),
        (without(ITEMS, 0), False),
        (ITEMS[: SPAN.stop - 1], False),
        (replace_span(ITEMS, Span(start=1, stop=5), "## Goal\n- Other.", making()), False),
    ],
    ids=["same", "more", "less behind", "less inside", "less ahead", "cut off", "summarised in part"],
)
def test_it_fits_as_long_as_its_span_holds_what_it_stands_for(items: Sequence[Item], fits: bool) -> None:
    assert PREFETCHED.fits(items) == fits


def test_placeholders_inside_its_span_leave_it_as_it_is() -> None:
    question = asked(ITEMS, first=FIRST, last=LAST)
    offer = offer_of("elide", question)
    assert offer is not None
    shorter = elide(ITEMS, offer, question.context)
    assert any(isinstance(item, Edited) for item in shorter[SPAN.start : SPAN.stop])
    assert PREFETCHED.fits(shorter)


def test_another_summary_before_its_messages_makes_it_stale() -> None:
    summarised = replace_span(ITEMS, Span(start=1, stop=5), "## Goal\n- Other.", making())
    prefetched = prefetched_for(summarised, Span(start=1, stop=10))
    assert prefetched.previous == "## Goal\n- Other."
    assert prefetched.fits(summarised)
    assert not prefetched.fits(replace_span(ITEMS, Span(start=1, stop=5), "## Goal\n- This one.", making()))


@pytest.mark.parametrize(
    ("prefetched", "last", "ready"),
    [
        (PREFETCHED, LAST, True),
        (PREFETCHED, LAST - 2, True),
        (PREFETCHED, LAST + 2, False),
        (prefetched_for(ITEMS, Span(start=0, stop=9)), LAST, False),
        (prefetched_for(ITEMS, Span(start=1, stop=10)), LAST, False),
        (replace(PREFETCHED, recall=True), LAST, False),
        (replace(PREFETCHED, tokens=1_000_000), LAST, False),
    ],
    ids=["yes", "shorter tail", "in the tail", "in the head", "splits a group", "other reader", "too long"],
)
def test_it_is_ready_between_head_and_tail_for_the_same_reader_and_if_it_is_not_too_long(
    prefetched: PrefetchedSummary, last: int, ready: bool
) -> None:
    assert prefetched.is_ready(asked(ITEMS, first=FIRST, last=last)) == ready


def test_publishing_it_takes_no_call_and_removes_what_its_text_leaves() -> None:
    offer = PREFETCHED.offer(ITEMS)
    assert offer is not None
    assert (offer.mechanism, offer.span, offer.calls) == (summarize.NAME, SPAN, 0)
    gone = sum(item.tokens for item in ITEMS[SPAN.start : SPAN.stop])
    assert gone - PREFETCHED.tokens - 20 < offer.removes < gone - PREFETCHED.tokens + 1, (
        "but the user's repeated words"
    )
    assert replace(PREFETCHED, tokens=gone).offer(ITEMS) is None


def session(ledger: Ledger) -> State:
    """A session that need not look for something to buy for a while."""
    name = "claude-haiku-4-5"
    return State(
        ledger=ledger,
        route=Route(model=name),
        model=load_registry().find(name),
        calibration=calibration_for(name),
        recheck_backoff=RecheckBackoff(until=10, prompt=1_000),
    )


@pytest.mark.parametrize("turns", [TURNS, TURNS + 3], ids=["at rest", "gone on"])
def test_a_session_takes_what_was_prepared_for_it_and_looks_for_candidates(turns: int) -> None:
    outcome = PrefetchOutcome(at=5.0, prefetched_summary=PREFETCHED, cost=7, failed_at=None, low=False)
    settled = settle(session(script_of(turns).ledger()), outcome)
    assert settled.prefetched_summary is PREFETCHED
    assert settled.recheck_backoff is None
    assert settled.totals.summary_cost == 7


def test_what_is_stale_before_it_is_there_is_paid_and_not_prefetched() -> None:
    settled = settle(
        session(Ledger()),
        PrefetchOutcome(at=5.0, prefetched_summary=PREFETCHED, cost=7, failed_at=None, low=False),
    )
    assert settled.prefetched_summary is None
    assert settled.totals.summary_cost == 7


def test_a_failure_is_remembered_for_the_cool_down() -> None:
    before = session(Ledger())
    settled = settle(
        before, PrefetchOutcome(at=5.0, prefetched_summary=None, cost=None, failed_at=6.0, low=None)
    )
    assert (settled.past.failures, settled.past.failed_at) == (1, 6.0)
    assert settled.totals.summary_cost is None, "nobody knows what it cost"
    assert settled.recheck_backoff is before.recheck_backoff
