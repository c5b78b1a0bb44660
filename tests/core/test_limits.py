"""The sizes a window is managed by (specification A, B, D)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.limits import Limits, derive_limits
from lowwater.settings import CompressionSettings

DEFAULT = CompressionSettings()


def limits(context: int, **options: int | bool | None) -> Limits:
    return derive_limits(context, DEFAULT, **options)  # type: ignore[arg-type]  # the tests' own options


@pytest.mark.parametrize(
    ("options", "wall"),
    [
        ({}, 184_000),
        ({"max_output": 8_000}, 192_000),
        ({"max_output": 64_000}, 184_000),
        ({"max_tokens": 32_000, "max_output": 64_000}, 168_000),
        ({"max_tokens": 190_000}, 150_000),
        ({"max_tokens": -5}, 184_000),
    ],
    ids=["default", "small output", "large output", "asked for", "a quarter at most", "nonsense"],
)
def test_a_wall_is_context_less_reserve(options: dict[str, int], wall: int) -> None:
    assert limits(200_000, **options).wall == wall


def test_a_hygiene_is_85_percent_or_the_wall() -> None:
    assert limits(200_000).hygiene == 170_000
    assert limits(64_000).hygiene == 48_000 == limits(64_000).wall


@pytest.mark.parametrize(
    ("context", "threshold"),
    [(1_000_000, 500_000), (200_000, 100_000), (128_000, 64_000), (100_000, 64_000), (65_536, 47_059)],
)
def test_a_threshold_is_half_the_context_at_least_64000_and_below_hygiene(
    context: int, threshold: int
) -> None:
    assert limits(context).threshold == threshold


def test_a_hermes_classic_has_no_64000_floor() -> None:
    assert limits(100_000, floor=False).threshold == 50_000


def test_b_numbers_of_a_200k_model() -> None:
    at = limits(200_000)
    assert (at.threshold, at.tail, at.summary) == (100_000, 20_000, 10_000)


@pytest.mark.parametrize(
    ("context", "protected"),
    [
        (1_000_000, 100_000),
        (500_000, 100_000),
        (499_999, 40_000),
        (128_000, 40_000),
        (127_999, 20_000),
        (64_000, 20_000),
        (63_999, 10_000),
    ],
)
def test_d_protected_tool_output_by_context(context: int, protected: int) -> None:
    assert limits(context).protected_tool_output == protected


def test_d_worked_example_at_128k() -> None:
    at = limits(128_000)
    assert (at.threshold, at.minimum_prune, at.runway, at.target) == (64_000, 6_400, 9_600, 54_400)


def test_d_a_prune_of_a_small_window_counts_from_5000() -> None:
    assert limits(65_536).minimum_prune == 5_000


def test_a_ceiling_below_the_threshold_takes_its_place_and_shrinks_what_is_sized_by_it() -> None:
    at = derive_limits(1_000_000, CompressionSettings(max_view_tokens=80_000))
    assert (at.threshold, at.minimum_prune, at.runway, at.target) == (80_000, 8_000, 12_000, 68_000)
    assert at.tail == 16_000


def test_a_ceiling_above_the_threshold_changes_nothing() -> None:
    at = derive_limits(200_000, CompressionSettings(max_view_tokens=150_000))
    assert replace(at, ceiling=None) == limits(200_000)


@pytest.mark.parametrize(
    ("ceiling", "growth", "unsure", "most", "roomy"),
    [
        pytest.param(None, 0, 0, 183_999, 183_999, id="the wall"),
        pytest.param(60_000, 0, 0, 60_000, 60_000, id="the ceiling"),
        pytest.param(60_000, 2_000, 0, 60_000, 50_000, id="five turns of growth"),
        pytest.param(60_000, 20_000, 0, 60_000, 12_000, id="at least a fifth"),
        pytest.param(60_000, 0, 1_000, 59_000, 59_000, id="what an estimate may miss"),
        pytest.param(60_000, 0, 90_000, 54_000, 54_000, id="of which a tenth is believed"),
        pytest.param(190_000, 0, 0, 183_999, 183_999, id="a ceiling above the wall"),
    ],
)
def test_what_may_be_sent_and_what_leaves_room(
    ceiling: int | None, growth: int, unsure: int, most: int, roomy: int
) -> None:
    at = replace(limits(200_000), ceiling=ceiling, growth=growth, unsure=unsure)
    assert (at.most, at.roomy) == (most, roomy)


@given(
    st.integers(1, 3_000_000),
    st.floats(0, 1) | st.just("auto"),
    st.none() | st.integers(-10, 3_000_000),
    st.none() | st.integers(1, 3_000_000),
    st.none() | st.integers(0, 3_000_000),
    st.booleans(),
)
def test_a_hygiene_stays_above_the_threshold_and_nothing_is_negative(
    context: int,
    threshold: float | str,
    max_tokens: int | None,
    max_output: int | None,
    auto: int | None,
    floor: bool,
) -> None:
    compression = CompressionSettings(threshold=threshold)  # type: ignore[arg-type]  # "auto" or a share
    at = derive_limits(
        context, compression, max_tokens=max_tokens, max_output=max_output, auto_threshold=auto, floor=floor
    )
    assert 0 <= at.target <= at.threshold <= at.hygiene <= at.wall <= at.context
    assert at.wall >= context - context // 4
    assert at.runway >= at.minimum_prune >= 5_000
    assert at.threshold < at.hygiene or at.hygiene <= 1
