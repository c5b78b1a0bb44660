"""The rule that buys: the closed form for waiting against counting, what it promises of steady sessions, and what it makes of an offer."""

from math import exp, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.buy_rule import Offer, Outlook, weighed

money = st.integers(1, 10**12)


def expected_cost(period: int, *, price: int, growth: int, calls: int) -> float:
    """Return what is paid from a purchase on, if one is made every so many calls and each call may be the last."""
    goes_on = exp(-log(2) / calls)
    carried = sum(goes_on**call * growth * call for call in range(1, period))
    return (carried + goes_on**period * price) / (1 - goes_on**period)


@pytest.mark.parametrize("calls", [20, 100, 1_000], ids=lambda calls: f"after {calls} calls")
@pytest.mark.parametrize(("price", "growth"), [(40_000, 100), (40_000, 1_000), (5_000, 20)])
def test_patience_is_where_the_expected_cost_is_least(price: int, growth: int, calls: int) -> None:
    wanted = Outlook(calls=calls, growth=growth).patience(price) / growth
    costs = {
        period: expected_cost(period, price=price, growth=growth, calls=calls) for period in range(1, 2_000)
    }
    cheapest = min(costs.values())
    assert costs[max(1, round(wanted))] <= 1.01 * cheapest


@given(price=money, growth=money)
def test_a_session_that_never_ends_follows_the_square_root_law(price: int, growth: int) -> None:
    assert Outlook(calls=10**15, growth=growth).patience(price) == pytest.approx(
        sqrt(2 * price * growth), rel=1e-3
    )


@given(price=money, growth=money, calls=st.integers(1, 10**4))
def test_that_it_may_end_makes_one_wait_longer(price: int, growth: int, calls: int) -> None:
    young, old = Outlook(calls=calls, growth=growth), Outlook(calls=2 * calls, growth=growth)
    assert young.patience(price) >= old.patience(price) * (1 - 1e-9)
    assert old.patience(price) >= sqrt(2 * price * growth) * (1 - 1e-6)


@given(price=money, more=money, growth=money, calls=st.integers(0, 10**4), saves=money)
def test_what_is_ripe_at_its_usual_price_is_ripe_below_it(
    price: int, more: int, growth: int, calls: int, saves: int
) -> None:
    outlook = Outlook(calls=calls, growth=growth)
    usual = price + more
    if outlook.should_buy_early(saves=saves, price=usual, usual=usual):
        assert outlook.should_buy_early(saves=saves, price=price, usual=usual)


@given(prices=st.tuples(money, money), above=money, growth=money, calls=st.integers(0, 10**4), saves=money)
def test_a_lower_price_is_never_less_ripe(
    prices: tuple[int, int], above: int, growth: int, calls: int, saves: int
) -> None:
    """So that a bound on all prices tells whether anything can be ripe."""
    outlook, (low, high) = Outlook(calls=calls, growth=growth), sorted(prices)
    if outlook.should_buy_early(saves=saves, price=high, usual=high + above):
        assert outlook.should_buy_early(saves=saves, price=low, usual=low + above)


def test_half_of_the_usual_price_is_taken_from_three_tenths_of_the_patience_on() -> None:
    outlook = Outlook(calls=100, growth=100)
    patience = outlook.patience(40_000)
    assert not outlook.should_buy_early(saves=round(0.29 * patience), price=20_000, usual=40_000)
    assert outlook.should_buy_early(saves=round(0.30 * patience), price=20_000, usual=40_000)


def test_what_costs_nothing_is_ripe_at_once() -> None:
    assert Outlook(calls=0, growth=0).should_buy_early(saves=0, price=0, usual=0)


def test_nothing_grows_and_it_is_bought_once_the_calls_to_come_are_likely_to_pay_for_it() -> None:
    outlook = Outlook(calls=70, growth=0)
    assert outlook.should_buy_early(saves=1_000_000, price=100_000_000, usual=100_000_000)
    assert not outlook.should_buy_early(saves=980_000, price=100_000_000, usual=100_000_000)


@pytest.mark.parametrize(
    ("calls", "payback", "wait"),
    [
        pytest.param(76, 128, 180, id="277K written to remove 54K, late in a session of 90 calls"),
        pytest.param(255, 128, 1, id="nearly old enough"),
        pytest.param(256, 128, 0, id="old enough"),
        pytest.param(8, 4, 0, id="young and cheap"),
        pytest.param(0, 1, 2, id="before the first call"),
    ],
)
def test_what_takes_longer_to_pay_than_half_of_the_calls_so_far_has_to_wait(calls, payback, wait) -> None:
    assert Outlook(calls=calls, growth=100).wait(saves=1_000, price=1_000 * payback) == wait


@given(calls=st.integers(0, 10**4), saves=st.integers(0, 10**9), price=st.integers(-(10**12), 10**12))
def test_a_purchase_pays_within_half_of_the_calls_so_far_or_waits_until_it_does(calls, saves, price) -> None:
    wait = Outlook(calls=calls, growth=1).wait(saves=saves, price=price)
    assert wait >= 0
    assert (wait == 0) == (price <= 0 or 2 * price <= saves * calls)
    if saves and wait:
        assert Outlook(calls=calls + wait, growth=1).wait(saves=saves, price=price) == 0


OFFER = Offer(removes=10, rent=5, price=1_000, saves=100)


@pytest.mark.parametrize(("saves", "worth", "early", "wait"), [(100, 500, True, 17), (50, -250, False, 49)])
def test_an_offer_is_weighed_by_what_the_session_can_be_expected_to_last(
    saves: int, worth: int, early: bool, wait: int
) -> None:
    offer = replace(OFFER, saves=saves)
    found = weighed(offer, Outlook(calls=15, growth=1), usual=1_000, worst=1_600)
    assert (found.worth, found.should_buy_early, found.wait) == (worth, early, wait)


def test_before_the_first_call_only_the_rent_counts() -> None:
    found = weighed(OFFER, None, usual=1_000, worst=1_600)
    assert (found.worth, found.is_worth_it, found.wait) == (-1_000, False, 0)
