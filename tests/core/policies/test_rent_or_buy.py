"""The policy rent-or-buy: bought when the rent paid reaches the price (docs/economics.md)."""

import pytest

from lowwater.core.decisions import Candidates, Compact, Decision, Keep, PricedPlan
from lowwater.core.policies.safety_rules import decide
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.decision_contexts import candidates, example_context, offer, priced_plan

ELIDE, WIDER, SUMMARY = offer("elide", 20_000), offer("elide", 30_000), offer("summarize", 50_000)
PRICE = 20_000_000


def decided(
    offered: Candidates | None, *, prompt: int = 70_000, settings: Settings | None = None
) -> Decision:
    now = example_context(prompt, ELIDE, SUMMARY, candidates=offered)
    return decide(now, settings or Settings(), policy="rent-or-buy")


@pytest.mark.parametrize(("rent", "buys"), [(PRICE - 1, False), (PRICE, True), (PRICE + 1, True)])
def test_a_plan_is_bought_when_the_rent_paid_reaches_its_price(rent: int, buys: bool) -> None:
    decision = decided(candidates(priced_plan(ELIDE, rent=rent, price=PRICE)))
    assert isinstance(decision, Compact) is buys


@pytest.mark.parametrize(
    ("rent", "should_buy_early"),
    [pytest.param(PRICE, False, id="rent paid"), pytest.param(0, True, id="in vain")],
)
def test_what_the_session_cannot_be_expected_to_pay_back_is_not_bought(
    rent: int, should_buy_early: bool
) -> None:
    young = priced_plan(ELIDE, rent=rent, should_buy_early=should_buy_early, price=PRICE, wait=12)
    decision = decided(candidates(young))
    assert isinstance(decision, Keep)
    assert decision.because.code == "too-young-to-pay"
    assert decision.because.facts["calls"] == 12
    other = decided(
        candidates(young, priced_plan(WIDER, rent=rent, should_buy_early=should_buy_early, price=PRICE))
    )
    assert isinstance(other, Compact)
    assert other.proposals == (WIDER,)


def test_a_cold_call_makes_the_price_negative_and_the_same_rule_buys() -> None:
    decision = decided(candidates(priced_plan(ELIDE, rent=0, price=-1), warm="cold"))
    assert isinstance(decision, Compact)
    assert decision.because.code == "free-now"
    assert decision.proposals == (ELIDE,)


def test_of_several_that_are_due_the_one_that_leaves_least_is_taken() -> None:
    offered = candidates(
        priced_plan(ELIDE, rent=PRICE + 5, price=PRICE),
        priced_plan(WIDER, rent=PRICE + 9, price=PRICE),
        priced_plan(SUMMARY, rent=PRICE - 1, price=PRICE),
    )
    decision = decided(offered)
    assert isinstance(decision, Compact)
    assert decision.proposals == (WIDER,)


def test_a_plan_that_waiting_cannot_make_cheaper_is_bought_before_its_rent_is_paid() -> None:
    decision = decided(
        candidates(priced_plan(ELIDE, rent=PRICE - 1, price=PRICE, saves=3_000_000, should_buy_early=True))
    )
    assert isinstance(decision, Compact)
    assert decision.because.code == "waiting-in-vain"
    assert decision.because.facts["saves"] == "$0.0030"


def test_of_several_that_are_due_the_one_that_is_worth_most_is_taken() -> None:
    offered = candidates(
        priced_plan(ELIDE, rent=PRICE, price=PRICE, worth=9),
        priced_plan(SUMMARY, rent=PRICE, price=PRICE, worth=8),
    )
    decision = decided(offered)
    assert isinstance(decision, Compact)
    assert decision.proposals == (ELIDE,)


def test_keeping_says_how_many_calls_are_left_at_this_rate() -> None:
    decision = decided(candidates(priced_plan(ELIDE, rent=PRICE - 5_000_000, saves=2_000_000)))
    assert isinstance(decision, Keep)
    assert decision.because.facts == {
        "prompt": 70_000,
        "removes": 20_000,
        "rent": "$0.0150",
        "price": "$0.0200",
        "warm": "warm",
        "calls": 3,
    }


def test_without_a_price_amounts_are_told_in_input_tokens_and_never_in_dollars() -> None:
    decision = decided(candidates(priced_plan(ELIDE, rent=5_000_000), currency="tokens"))
    assert decision.because.facts["rent"] == "5,000 input tokens"
    assert decision.because.facts["price"] == "20,000 input tokens"


@pytest.mark.parametrize(
    ("plan", "left"),
    [
        (priced_plan(ELIDE, rent=PRICE), 0),
        (priced_plan(ELIDE, rent=PRICE - 1, saves=1_000), 1),
        (priced_plan(ELIDE, rent=0, saves=PRICE // 10), 10),
        (priced_plan(ELIDE, rent=0, saves=0), None),
    ],
    ids=["due", "nearly", "ten", "never"],
)
def test_calls_left_are_rounded_up(plan: PricedPlan, left: int | None) -> None:
    assert plan.calls_left == left


def test_where_nothing_can_be_due_the_mechanisms_need_not_be_asked() -> None:
    assert decided(candidates(most_rent=9, least_price=10)).because.code == "rent-cannot-be-due"
    assert decided(candidates(most_rent=10, least_price=10)).because.code == "nothing-to-buy"


def test_without_candidates_it_prunes_with_runway() -> None:
    assert decided(None).because.code == "prune-suffices"


def test_the_ceiling_of_the_user_comes_before_the_rent() -> None:
    ceiling = Settings(compression=CompressionSettings(max_view_tokens=60_000))
    offered = candidates(priced_plan(ELIDE, rent=0))
    assert isinstance(decided(offered, settings=ceiling), Compact)
    assert isinstance(decided(offered), Keep)


def test_the_wall_comes_before_the_rent() -> None:
    assert decided(candidates(priced_plan(ELIDE, rent=0)), prompt=120_000).because.code == "wall"
