"""The simple payback calculator reproduces the figures it is known by (SPEC E)."""

import pytest

from lowwater.decide.payback import SimplePayback, simple_payback
from lowwater.values.model import Prices


def prices(dollars: int, cents_read: int) -> Prices:
    """Return prices of so many dollars per million tokens, and so many cents per million cached."""
    whole = dollars * 1_000_000
    return Prices(input=whole, cache_read=cents_read * 10_000, cache_write=whole, output=5 * whole)


@pytest.mark.parametrize(("saved", "turns"), [(10_000, 13.5), (5_000, 27.0)])
def test_e_150k_cached_pay_back_after_so_many_turns(saved: int, turns: float) -> None:
    assert simple_payback(prices(5, 50), cached=150_000, saved=saved).turns == turns


@pytest.mark.parametrize(
    ("dollars", "cents_read", "nanodollars", "shown"),
    [(5, 50, 675_000_000, "$0.68"), (3, 30, 405_000_000, "$0.41"), (1, 10, 135_000_000, "$0.14")],
)
def test_e_a_miss_on_150k_costs_this(dollars: int, cents_read: int, nanodollars: int, shown: str) -> None:
    found = simple_payback(prices(dollars, cents_read), cached=150_000, saved=10_000)
    assert found.miss_cost == nanodollars
    cents = (nanodollars + 5_000_000) // 10_000_000
    assert f"${cents / 100:.2f}" == shown


def test_saving_nothing_never_pays() -> None:
    assert simple_payback(prices(5, 50), cached=150_000, saved=0).turns is None


def test_what_was_not_cached_costs_no_miss() -> None:
    assert simple_payback(prices(5, 50), cached=0, saved=10) == SimplePayback(miss_cost=0, turns=0.0)


def test_half_a_nanodollar_is_rounded_up() -> None:
    tiny = Prices(input=600, cache_read=100, cache_write=600, output=600)
    assert simple_payback(tiny, cached=1, saved=1).miss_cost == 1
    assert simple_payback(tiny, cached=1, saved=1).turns == pytest.approx(500 / 600)
