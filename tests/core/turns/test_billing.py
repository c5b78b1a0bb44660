"""What a session's calls cost: answers with all that was billed for them, summaries at their own model's prices."""

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Response, Usage
from lowwater.core.cache.belief import Layout, expected_usage
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message
from lowwater.core.models.model import Cliff, Period, Prices
from lowwater.core.models.registry import Registry
from lowwater.core.summary.request import Written
from lowwater.core.turns.cache import finish_call
from lowwater.core.turns.costs import cost_of_answer, cost_of_written, turn_record
from lowwater.core.turns.reported_usage import learn
from lowwater.core.turns.state import PendingCall, Route, State, Totals
from lowwater.session.factories import calibration_for
from tests.core.cache.layouts import layout_of

FOUND = load_registry().find("claude-haiku-4-5")
LOW = Prices(input=1_000_000, cache_read=100_000, cache_write=1_250_000, output=5_000_000)
HIGH = Prices(input=2_000_000, cache_read=200_000, cache_write=2_500_000, output=7_500_000)
MODEL = replace(FOUND, prices=LOW, cliffs=(Cliff(above=200_000, prices=HIGH),), periods=())
UNPRICED = replace(MODEL, name="homemade", aliases=(), prices=None, cliffs=())
STATE = State(
    ledger=Ledger(),
    route=Route(model=MODEL.name),
    model=MODEL,
    calibration=calibration_for(MODEL.name),
)
OWN = Usage(uncached=1_000, cache_read=100_000, cache_write=2_000, output=300)
OWN_COST = 1_000_000 + 10_000_000 + 2_500_000 + 1_500_000
BESIDE = Usage(uncached=150_000, output=1_000)
BESIDE_COST = 150_000_000 + 5_000_000
LAYOUT = layout_of([5_000, 3_000], marks={0: "short", 1: "short"})


def response(usage: Usage | None = OWN, **fields: object) -> Response:
    prompt = usage.prompt if usage else 0
    return replace(
        Response(message=Message(role="assistant", parts=()), usage=usage, prompt=prompt), **fields
    )


UNTOUCHED_WARM, UNTOUCHED_COLD = 40_000 * 100, 40_000 * 1_250
"""What 40,000 tokens cost in nano-dollars, read from the cache or written to it."""


@pytest.mark.parametrize(
    ("used", "more"),
    [
        (Usage(cache_read=8_000, cache_write=400), UNTOUCHED_WARM),
        (Usage(cache_read=5_000, cache_write=3_400), UNTOUCHED_COLD),
        (Usage(cache_write=8_400), UNTOUCHED_COLD),
    ],
    ids=["read beyond it", "the cache is lost behind the tools", "all of the cache is lost"],
)
def test_what_was_removed_would_have_been_lost_with_the_cache(used: Usage, more: int) -> None:
    """Behind a long pause some providers still read the tools and the system prompt, and nothing of the messages."""
    state = calling(0.0)
    assert state.call is not None
    call = replace(state.call, removed=40_000, removed_before=40_000, removed_behind=5_000)
    record = turn_record(replace(state, call=call), response(used), 0.0)
    assert record.cost is not None
    assert record.untouched == record.cost + more


def test_a_cache_that_is_lost_right_behind_a_compaction_may_be_lost_because_of_it() -> None:
    """So what was removed counts as read: the bill must not claim what the compaction itself has cost."""
    state = calling(0.0)
    assert state.call is not None
    call = replace(
        state.call,
        removed=40_000,
        removed_before=40_000,
        removed_behind=5_000,
        is_settled=False,
    )
    record = turn_record(replace(state, call=call), response(Usage(cache_read=5_000, cache_write=3_400)), 0.0)
    assert record.cost is not None
    assert record.untouched == record.cost + UNTOUCHED_WARM


@pytest.mark.parametrize(
    ("removed_before", "surcharge"),
    [(40_000, 0), (15_000, 60_000_000)],
    ids=["the call after it", "the first call with it"],
)
def test_a_cache_that_is_lost_before_what_a_compaction_has_changed_is_not_lost_because_of_it(
    removed_before: int, surcharge: int
) -> None:
    """All that was removed would have been written again, too."""
    state = calling(0.0)
    assert state.call is not None
    call = replace(
        state.call,
        expected=Usage(cache_read=8_000, cache_write=400),
        removed=40_000,
        removed_before=removed_before,
        removed_behind=5_000,
        compaction_surcharge=surcharge,
        is_settled=False,
    )
    record = turn_record(replace(state, call=call), response(Usage(cache_read=500, cache_write=7_900)), 0.0)
    assert record.cost is not None
    assert record.untouched == record.cost + UNTOUCHED_COLD


@pytest.mark.parametrize("used", [Usage(cache_read=5_000, cache_write=3_400), Usage(cache_write=8_400)])
def test_behind_a_compaction_that_was_paid_for_what_was_removed_earlier_would_have_been_read(
    used: Usage,
) -> None:
    state = calling(0.0)
    assert state.call is not None
    call = replace(
        state.call,
        removed=40_000,
        removed_before=40_000,
        removed_behind=5_000,
        compaction_surcharge=1,
    )
    record = turn_record(replace(state, call=call), response(used), 0.0)
    assert record.cost is not None
    assert record.untouched == record.cost - 1 + UNTOUCHED_WARM


@pytest.mark.parametrize(
    ("used", "more"),
    [
        (Usage(cache_read=3_400, cache_write=5_000), UNTOUCHED_COLD),
        (Usage(cache_read=5_000, cache_write=3_400), UNTOUCHED_WARM),
    ],
    ids=["only the tools were still cached", "the cache was kept against expectation"],
)
def test_behind_a_compaction_over_a_cold_cache_what_was_removed_earlier_would_have_been_written_again(
    used: Usage, more: int
) -> None:
    """Such a compaction costs less than nothing: what it removes is not written."""
    state = calling(0.0)
    assert state.call is not None
    call = replace(
        state.call,
        expected=Usage(cache_write=8_400),
        removed=60_000,
        removed_before=40_000,
        removed_behind=5_000,
        compaction_surcharge=-25_000_000,
        is_settled=False,
    )
    record = turn_record(replace(state, call=call), response(used), 0.0)
    assert record.cost is not None
    assert record.untouched == record.cost + 25_000_000 + more


def calling(at: float, layout: Layout = LAYOUT, state: State = STATE) -> State:
    expected = expected_usage(state.belief, layout, state.model, at)
    call = PendingCall(
        at=at,
        layout=layout,
        expected=expected,
        newest_outside_tail=0,
        model=state.model,
        counted=layout.total,
        removed=0,
        removed_before=0,
        compaction_surcharge=0,
    )
    return replace(state, call=call)


def test_every_call_that_was_billed_counts_at_the_price_of_its_own_size() -> None:
    assert OWN.prompt + BESIDE.prompt > 200_000, "together they would cross the cliff"
    told = learn(STATE, response(others=(BESIDE,)))
    assert told.totals == Totals(
        turns=1, prompt=253_000, cache_read=100_000, output=1_300, cost=OWN_COST + BESIDE_COST
    )
    assert told.reported_prompt == 103_000, "the prompt that gave the answer"


def test_the_moment_of_the_call_decides_the_price() -> None:
    night = Period(prices=HIGH, hours=((0, 6),))
    model = replace(MODEL, prices=LOW, periods=(night,))
    by_night, by_day = (calling(hour * 3_600.0, state=replace(STATE, model=model)) for hour in (2, 12))
    assert cost_of_answer(by_day, response()) == OWN_COST
    assert cost_of_answer(by_night, response()) == 2_000_000 + 20_000_000 + 5_000_000 + 2_250_000


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        pytest.param(replace(STATE, model=UNPRICED), response(), id="a model without a price"),
        pytest.param(STATE, response(None), id="no usage"),
        pytest.param(STATE, response(Usage()), id="empty usage"),
        pytest.param(STATE, response(list_price=False), id="another price"),
    ],
)
def test_one_unknown_price_leaves_the_total_unknown(state: State, answer: Response) -> None:
    unknown = learn(state, answer)
    assert unknown.totals.cost is None
    again = learn(replace(unknown, model=MODEL), response())
    assert (again.totals.cost, again.totals.turns) == (None, 2)
    assert again.totals.summary_cost == 0, "summaries have their own sum"


def test_what_summaries_cost_is_part_of_what_the_session_cost() -> None:
    totals = Totals().paid(5).paid(7, for_summaries=True)
    assert (totals.cost, totals.summary_cost) == (12, 7)
    unknown = totals.paid(None, for_summaries=True).paid(1, for_summaries=True)
    assert (unknown.cost, unknown.summary_cost) == (None, None)


WROTE = Written(text="So far.", by="x", model="claude-haiku-4-5-20251001", usage=OWN)


@pytest.mark.parametrize(
    ("summaries", "cost"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([Written(text="So far.", by="extractive")], 0, id="without a model"),
        pytest.param([WROTE, WROTE], 2 * OWN_COST, id="by a known model, dated"),
        pytest.param([WROTE, replace(WROTE, usage=None)], None, id="one without usage"),
        pytest.param([replace(WROTE, model="somebody-else")], None, id="by a model nobody knows"),
        pytest.param([replace(WROTE, model="homemade")], None, id="by a model without a price"),
        pytest.param([replace(WROTE, model="")], None, id="usage of nobody"),
    ],
)
def test_a_summary_costs_what_its_model_charges(summaries: list[Written], cost: int | None) -> None:
    assert cost_of_written(summaries, Registry([MODEL, UNPRICED]), at=0.0) == cost


def test_a_reason_for_a_miss_reaches_the_belief() -> None:
    warm = finish_call(calling(0.0), response(None))
    longer = layout_of([5_000, 3_000, 400], marks={0: "short", 2: "short"})
    plain, moved = (
        finish_call(calling(1.0, longer, warm), response(None, miss_reason=reason)).belief.boundaries
        for reason in ("", "tools_changed")
    )
    kept, fresh = ({boundary.tokens for boundary in each} for each in (plain, moved))
    assert kept == {5_000, 8_000, 8_400}
    assert fresh == {5_000, 8_400}, "only what this call wrote itself"
