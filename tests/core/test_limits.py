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
