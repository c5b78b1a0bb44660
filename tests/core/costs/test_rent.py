"""The meter of rents."""

from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.costs.prices import Meter

READ = 400_000


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
