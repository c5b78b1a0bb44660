"""The meter of rents and the choice among offers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.costs.prices import Meter, Offer, choose

READ = 400_000


def offer(name: str, *, rent: int, price: int, after: int = 0) -> Offer:
    return Offer(name=name, rent=rent, price=price, after=after)


def test_a_message_pays_from_the_call_after_it_left_the_tail():
    meter = Meter().advance(READ).left_tail(3).advance(READ).advance(READ)
    assert meter.rent(3, 10_000) == 2 * READ * 10


def test_a_message_in_the_tail_has_paid_nothing():
    assert Meter().left_tail(3).advance(READ).rent(4, 10_000) == 0


def test_messages_that_left_later_have_paid_less():
    meter = Meter().left_tail(1).advance(READ).left_tail(5).advance(READ)
    assert [meter.paid(number) for number in (0, 1, 2, 5, 6)] == [2 * READ, 2 * READ, READ, READ, 0]


def test_the_tail_never_takes_messages_back():
    meter = Meter().left_tail(5).advance(READ)
    assert meter.left_tail(2) == meter


def test_messages_that_leave_between_the_same_calls_share_a_run():
    assert Meter().left_tail(2).left_tail(7) == Meter().left_tail(7)


def test_forgotten_messages_take_their_runs_along():
    meter = Meter().left_tail(1).advance(READ).left_tail(5).advance(READ).forget(1)
    assert meter.numbers == (5,)
    assert meter.paid(5) == READ


def test_a_message_of_a_run_that_is_not_wholly_forgotten_keeps_its_reading():
    meter = Meter().left_tail(5).advance(READ)
    assert meter.forget(4).paid(5) == READ


def test_rent_is_divided_once():
    assert Meter().left_tail(1).advance(1).advance(1).rent(1, 500) == 1


turns = st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 4)), max_size=40)


@given(turns=turns, tokens=st.lists(st.integers(0, 10**5), min_size=1, max_size=200))
def test_no_rent_is_above_the_most(turns, tokens):
    meter, last = Meter(), 0
    for price, more in turns:
        last += more
        meter = meter.left_tail(last).advance(price)
    outside = tokens[: last + 1]
    paid = sum(meter.rent(number, size) for number, size in enumerate(outside))
    assert paid <= meter.most_rent(sum(outside))


@given(turns=turns)
def test_a_meter_remembers_what_a_table_of_all_messages_would(turns):
    starts: dict[int, int] = {}
    meter, last, total = Meter(), -1, 0
    for price, more in turns:
        if more:
            starts |= dict.fromkeys(range(last + 1, last + more + 1), total)
            last += more
            meter = meter.left_tail(last)
        meter, total = meter.advance(price), total + price
    assert [meter.paid(number) for number in starts] == [total - start for start in starts.values()]


@pytest.mark.parametrize(
    ("rent", "price", "due"),
    [
        pytest.param(99, 100, False, id="rent below the price"),
        pytest.param(100, 100, True, id="rent has reached the price"),
        pytest.param(0, -1, True, id="a cold call that pays for itself"),
    ],
)
def test_an_offer_is_due_when_its_rent_has_reached_its_price(rent, price, due):
    assert (choose([offer("prune", rent=rent, price=price)]) is not None) is due


def test_of_several_due_the_one_that_leaves_the_lowest_cost_is_taken():
    prune = offer("prune", rent=900, price=100, after=70)
    summary = offer("summary", rent=300, price=200, after=40)
    assert choose([prune, summary]) == summary


def test_of_equals_the_larger_surplus_is_taken():
    small, large = offer("a", rent=5, price=5, after=7), offer("b", rent=9, price=5, after=7)
    assert choose([small, large]) == large


def test_an_offer_that_is_not_due_is_not_taken_for_its_low_cost():
    prune = offer("prune", rent=900, price=100, after=70)
    assert choose([offer("summary", rent=1, price=200, after=1), prune]) == prune


def test_an_offer_is_due_before_its_rent_has_reached_its_price_if_waiting_is_in_vain():
    ripe = Offer(name="prune", rent=1, price=100, after=7, should_buy_early=True)
    assert choose([ripe, offer("summary", rent=99, price=100, after=1)]) == ripe


def test_without_offers_nothing_is_bought():
    assert choose([]) is None
