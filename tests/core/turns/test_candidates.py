"""Which summary is a candidate: the one that pays best, and none is asked for where one that is due was written already."""

import pytest
from msgspec.structs import replace

from lowwater.core.costs.losses import LOST_BEHIND_INDEX, LOST_BY_SUMMARY
from lowwater.core.costs.prices import nano_dollars
from lowwater.core.decisions import PricedPlan, scaled
from lowwater.core.messages import Span
from lowwater.core.proposals import Proposal
from lowwater.core.summary.index import expected_tokens
from lowwater.core.turns.candidates import best_summary, candidate_plans, cost_of_summary, index_of
from lowwater.core.turns.pricing import PricingContext, pricing_for
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import ModelSettings, Settings
from lowwater.testing.decision_contexts import offer, priced_plan


def summary(removes: int, *, rent: int, price: int, calls: int) -> PricedPlan:
    return priced_plan(replace(offer("summarize", removes), calls=calls), rent=rent, price=price)


READY = summary(100, rent=50, price=20, calls=0)


@pytest.mark.parametrize(
    ("other", "wins"),
    [
        (summary(120, rent=60, price=45, calls=1), False),
        (summary(120, rent=60, price=30, calls=1), False),
        (summary(300, rent=150, price=45, calls=1), True),
        (summary(300, rent=40, price=45, calls=1), False),
    ],
    ids=["due, for little more", "as good", "the rent on the rest has paid the difference", "not due"],
)
def test_a_summary_that_is_due_and_written_is_taken_unless_another_has_paid_for_what_it_costs_more(
    other: PricedPlan, wins: bool
) -> None:
    assert best_summary([other, READY]) is (other if wins else READY)


@pytest.mark.parametrize(
    "due", [summary(80, rent=50, price=45, calls=1), summary(300, rent=150, price=45, calls=1)]
)
def test_one_that_is_written_and_not_due_holds_nothing_back(due: PricedPlan) -> None:
    waiting = summary(100, rent=10, price=20, calls=0)
    assert best_summary([due, waiting]) is due


def test_rework_and_rewriting_cost_what_writes_for_the_lifetime_asked_for_cost() -> None:
    found = []
    for ttl in ("5m", "1h"):
        settings = Settings(model=ModelSettings(cache_ttl=ttl))
        session = Lowwater(model="claude-opus-5-5", store="memory:", settings=settings).session()
        session.prepare([{"role": "user", "content": "word " * 5_000}])
        shared = internals(session).shared
        found.append(pricing_for(shared.state, shared.setup, 0, 0.0))
    short, long = found
    prices = short.prices
    assert prices.cache_write_long is not None
    dearer = prices.cache_write_long - prices.cache_write
    assert dearer > 0
    assert long.rework(1.0, 1_000) - short.rework(1.0, 1_000) == dearer
    sent = [replace(pricing, sent=pricing.prompt) for pricing in (long, short)]
    risks = [pricing.risk(1, first_changed=0) for pricing in sent]
    assert risks[0] - risks[1] == nano_dollars(short.prompt * dearer)


def test_the_index_behind_a_summary_stays_in_the_prompt_and_is_no_output_of_the_summarizer() -> None:
    session = Lowwater(model="claude-opus-5-5", store="memory:", summarizer=()).session()
    session.prepare(
        [{"role": "user", "content": f"word {at} " * 2_000} for at in range(6)], offers_recall=True
    )
    shared = internals(session).shared
    pricing = pricing_for(shared.state, shared.setup, 6, 0.0)
    pricing = replace(pricing, summarizers=(pricing.model,))
    span = Span(start=1, stop=5)
    index = expected_tokens(pricing.items[1:5])
    assert pricing.offers_recall
    assert index > 500
    without = replace(offer("summarize", 10_000), span=span, calls=1)
    with_index = replace(without, removes=10_000 - index)
    starts = pricing.starts()
    assert index_of(with_index, pricing) == scaled(index, pricing.scale)
    assert cost_of_summary(with_index, pricing, starts) == cost_of_summary(
        without, replace(pricing, offers_recall=False), starts
    )
    assert index_of(replace(without, mechanism="native"), pricing) == 0
    first, later = (_rework(each, without) for each in (replace(pricing, offers_recall=False), pricing))
    assert later / first == pytest.approx(LOST_BEHIND_INDEX / LOST_BY_SUMMARY, rel=0.01)


def _rework(pricing: PricingContext, summary: Proposal) -> int:
    (plan,) = candidate_plans((), [summary], replace(pricing, prompt=100), lost={})
    return plan.rework


def test_a_token_pays_for_itself_later_the_longer_it_is_carried_and_the_cheaper_a_recall_is() -> None:
    session = Lowwater(model="claude-opus-5-5", store="memory:", summarizer=()).session()
    session.prepare([{"role": "user", "content": "word " * 50_000}])
    shared = internals(session).shared
    pricing = pricing_for(shared.state, shared.setup, 0, 0.0)
    young, old = (replace(pricing, calls=calls).break_even for calls in (10, 100))
    assert 0 < young < old < 1
    assert replace(pricing, prompt=pricing.prompt // 2).break_even > pricing.break_even


def test_without_any_there_is_none() -> None:
    assert best_summary([]) is None
