"""Warnings on the way to the threshold (specification I)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.limits import LEVELS, Warned, level_of, warn
from lowwater.settings import WarningLevels

DEFAULT = WarningLevels()
NONE: frozenset[str] = frozenset()


def said(tokens: int, warned: frozenset[str] = NONE, *, levels: WarningLevels = DEFAULT) -> Warned:
    return warn(levels, warned, tokens, 100_000)


def names(found: Warned) -> list[str]:
    return [warning.level for warning in found.warnings]


def test_i_a_jump_says_every_level_it_passed_mildest_first() -> None:
    assert names(said(90_000)) == ["info", "notice", "warning"]


def test_i_without_a_threshold_there_is_nothing_to_warn_of() -> None:
    assert warn(DEFAULT, frozenset({"info"}), 50_000, 0) == Warned(warnings=(), warned=frozenset())


@given(st.lists(st.integers(0, 300_000)), st.integers(1, 200_000))
def test_i_between_two_warnings_of_a_level_usage_was_below_it(sizes: list[int], threshold: int) -> None:
    warned = NONE
    armed = dict.fromkeys(LEVELS, True)
    shares = {"info": 60, "notice": 75, "warning": 85, "critical": 95}
    for tokens in sizes:
        found = warn(DEFAULT, warned, tokens, threshold)
        warned = found.warned
        for level, percent in shares.items():
            reached = tokens * 100 >= percent * threshold
            assert (level in names(found)) is (reached and armed[level])  # type: ignore[index]  # the levels' names
            armed[level] = not reached  # type: ignore[index]  # the levels' names


def test_i_the_percentage_is_never_rounded_up() -> None:
    (*_, critical) = warn(DEFAULT, NONE, 63_999, 64_000).warnings
    assert (critical.level, critical.percent) == ("critical", 99)


@pytest.mark.parametrize(
    ("tokens", "level"),
    [(0, None), (38_399, None), (38_400, "info"), (54_400, "warning"), (90_000, "critical")],
)
def test_i_the_level_of_a_size_is_the_most_urgent_it_has_reached(tokens: int, level: str | None) -> None:
    assert level_of(DEFAULT, tokens, 64_000) == level
