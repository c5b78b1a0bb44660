"""Shares of token counts come out in whole tokens, whatever binary fractions do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.limits import least_reaching, share_of


@pytest.mark.parametrize(
    ("whole", "shares", "down", "up"),
    [
        (100_000, (0.57,), 57_000, 57_000),
        (200_000, (0.8, 0.75), 120_000, 120_000),
        (548_000, (0.05,), 27_400, 27_400),
        (49_536, (0.95,), 47_059, 47_060),
        (7, (), 7, 7),
        (0, (0.5,), 0, 0),
    ],
    ids=["noise below", "noise above", "the guard's share", "a real fraction", "no share", "of nothing"],
)
def test_noise_is_dropped_and_real_fractions_are_rounded(
    whole: int, shares: tuple[float, ...], down: int, up: int
) -> None:
    assert share_of(whole, *shares) == down
    assert least_reaching(whole, *shares) == up


@given(st.integers(0, 2_000_000), st.integers(0, 100))
def test_percentages_are_exact(whole: int, percent: int) -> None:
    assert share_of(whole, percent / 100) == whole * percent // 100
    assert least_reaching(whole, percent / 100) == -(-whole * percent // 100)
