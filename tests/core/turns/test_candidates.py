"""Which summary is a candidate: the one that pays best, and none is asked for where one that is due was written already."""

import pytest
from msgspec.structs import replace

from lowwater.core.decisions import PricedPlan
from lowwater.core.turns.candidates import best_summary
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


def test_without_any_there_is_none() -> None:
    assert best_summary([]) is None
