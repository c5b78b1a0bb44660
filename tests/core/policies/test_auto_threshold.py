"""`threshold: auto` (specification B)."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.limits import derive_limits
from lowwater.core.policies.at_threshold import auto_threshold
from lowwater.settings import CompressionSettings

AUTO = CompressionSettings(threshold="auto")


def measured(
    growth: float, *, context: int = 1_000_000, turns: int = 30, tool_share: float = 0.5
) -> int | None:
    return auto_threshold(AUTO, context=context, growth=growth, turns=turns, tool_share=tool_share)


@pytest.mark.parametrize(
    ("tool_share", "threshold"),
    [
        (0.5, (12_000 + 40 * 3_000) / 0.8),
        (0.0, (12_000 + 60 * 3_000) / 0.8),
        (1.0, (12_000 + 20 * 3_000) / 0.8),
    ],
    ids=["half and half", "all text", "all tool output"],
)
def test_it_is_what_survives_and_a_number_of_turns_of_growth(tool_share: float, threshold: float) -> None:
    assert measured(3_000, tool_share=tool_share) == threshold


def test_what_no_compaction_removes_comes_on_top() -> None:
    found = auto_threshold(AUTO, context=1_000_000, growth=3_000, turns=30, tool_share=0.5, head=20_000)
    assert found == (12_000 + 120_000 + 20_000) / 0.8


def test_it_leaves_exactly_that_many_turns() -> None:
    limits = derive_limits(1_000_000, AUTO, auto_threshold=measured(3_000))
    assert limits.threshold - limits.tail - limits.summary == 40 * 3_000


@pytest.mark.parametrize("turns", [0, 9])
def test_before_enough_turns_it_is_the_default_of_half_the_context(turns: int) -> None:
    assert measured(3_000, turns=turns) is None
    assert derive_limits(1_000_000, AUTO, auto_threshold=None).threshold == 500_000


@pytest.mark.parametrize("growth", [0, -5, nan, inf, -inf])
def test_growth_that_is_none_measures_nothing(growth: float) -> None:
    assert measured(growth) is None


def test_a_threshold_that_was_set_is_not_measured() -> None:
    fixed = CompressionSettings(threshold=0.7)
    assert auto_threshold(fixed, context=200_000, growth=3_000, turns=99, tool_share=0.5) is None


@pytest.mark.parametrize(("growth", "threshold"), [(10, 64_000), (50_000, 161_500)], ids=["slow", "fast"])
def test_it_is_clamped_like_any_threshold(growth: float, threshold: int) -> None:
    limits = derive_limits(200_000, AUTO, auto_threshold=measured(growth, context=200_000))
    assert limits.threshold == threshold


@given(
    st.floats(min_value=0.001),
    st.floats(min_value=0.001),
    st.floats(0, 1),
    st.integers(1, 2_000_000),
)
def test_faster_growth_never_means_an_earlier_threshold(
    one: float, other: float, share: float, context: int
) -> None:
    slow, fast = sorted((one, other))
    assert (measured(slow, context=context, tool_share=share) or 0) <= (
        measured(fast, context=context, tool_share=share) or context
    )


def test_ten_turns_are_enough() -> None:
    assert measured(3_000, turns=10) is not None


def test_slow_growth_is_growth() -> None:
    assert measured(0.5) == round((12_000 + 20) / 0.8)


def test_a_share_beyond_all_counts_as_all() -> None:
    assert measured(3_000, tool_share=1.4) == measured(3_000, tool_share=1.0)
    assert measured(3_000, tool_share=-0.4) == measured(3_000, tool_share=0.0)
    assert measured(3_000, tool_share=nan) is None
