"""What a result is worth keeping for: its kind first, then its age and length."""

from itertools import pairwise

import pytest

from lowwater.core.mechanisms.reuse import chance_of_use, worth_per_token
from lowwater.core.tools import ToolClass

KINDS: list[ToolClass] = ["write", "shell", "search", "read", "agent"]


def test_the_kind_of_tool_orders_the_chance_of_use() -> None:
    chances = [chance_of_use(kind, 3_000, 10) for kind in KINDS]
    assert chances == sorted(chances)
    assert all(low < high for low, high in pairwise(chances))


@pytest.mark.parametrize(
    ("kind", "chars", "measured"),
    [
        ("read", 1_200, 0.092),
        ("read", 3_500, 0.199),
        ("read", 35_000, 0.714),
        ("shell", 1_200, 0.027),
        ("shell", 10_000, 0.110),
        ("search", 3_500, 0.144),
        ("search", 10_000, 0.294),
    ],
)
def test_the_chance_is_near_what_was_measured_five_calls_later(
    kind: ToolClass, chars: int, measured: float
) -> None:
    assert chance_of_use(kind, chars, 5) == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize("kind", KINDS)
def test_it_falls_with_age_and_rises_with_length(kind: ToolClass) -> None:
    ages = [chance_of_use(kind, 3_000, age) for age in (5, 20, 80, 400)]
    assert ages == sorted(ages, reverse=True)
    lengths = [chance_of_use(kind, chars, 20) for chars in (0, 600, 6_000, 60_000, 10**9)]
    assert lengths == sorted(lengths)
    assert 0 <= lengths[0] <= lengths[-1] <= 1


def test_per_token_a_long_result_is_not_worth_more_than_two_half_as_long() -> None:
    whole, half = (worth_per_token("read", chars, chars // 4, 20) for chars in (20_000, 10_000))
    assert whole < half


def test_a_result_without_tokens_is_no_division_by_zero() -> None:
    assert worth_per_token("other", 0, 0, 0) == 0
