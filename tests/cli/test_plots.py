"""Plots of block characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.cli.tables import Plot, bar, draw_plot


def drawn(plot: Plot, *, width: int = 40, height: int = 4) -> list[str]:
    return [line.plain for line in draw_plot(plot, width=width, height=height)]


def test_the_highest_value_fills_its_column_and_half_of_it_half() -> None:
    rows = drawn(Plot(values=[100, 50, 25]))
    columns = [row[7:] for row in rows[:4]]
    assert [row[0] for row in columns] == ["█", "█", "█", "█"]
    assert [row[4:5] for row in columns] == [" ", " ", "█", "█"]
    assert [row[8:9] for row in columns] == [" ", " ", " ", "█"]


def test_values_that_share_a_column_show_the_highest() -> None:
    values = [1] * 300
    values[150] = 1_000
    rows = drawn(Plot(values=values), width=37)
    assert rows[0][7:].strip() == "█"
    assert rows[0][7:].index("█") == 15


def test_marks_stand_below_what_they_mark() -> None:
    rows = drawn(Plot(values=[10, 20, 5, 8], marked=[2]))
    assert rows[4].index("▲") == 7 + 2 * 4


def test_a_mark_behind_the_last_value_stands_below_it() -> None:
    assert drawn(Plot(values=[10, 20], marked=[2]))[4].index("▲") == 7 + 4


def test_the_line_is_drawn_where_values_do_not_reach_it() -> None:
    rows = drawn(Plot(values=[100, 10], line=60))
    (line,) = [row for row in rows if "┄" in row]
    assert line.startswith("    60 ████┄┄┄┄")


def test_a_line_far_above_all_values_is_left_out() -> None:
    rows = drawn(Plot(values=[100, 10], line=1_000))
    assert not any("┄" in row for row in rows)
    assert rows[0].startswith("   100 █")


def test_an_unknown_value_is_a_gap() -> None:
    assert drawn(Plot(values=[5, None, 5]))[0][7:] == "████    ████"


@given(
    st.lists(st.none() | st.integers(0, 2_000_000), min_size=1, max_size=300),
    st.sets(st.integers(0, 300), max_size=9),
    st.none() | st.integers(1, 1_000_000),
    st.integers(30, 130),
)
def test_a_plot_never_leaves_its_width(
    values: list[int | None], marked: set[int], line: int | None, width: int
) -> None:
    rows = drawn(Plot(values=values, marked=marked, line=line), width=width, height=5)
    assert len(rows) == 7
    assert max(map(len, rows)) <= width
    assert rows[5].count("▲") <= len(marked)


@pytest.mark.parametrize(
    ("part", "whole", "cells"), [(1, 2, 5), (0, 2, 0), (1, 1_000, 1), (3, 2, 10), (0, 0, 0)]
)
def test_a_bar_fills_its_share(part: float, whole: float, cells: int) -> None:
    assert len(bar(part, whole, 10)) == cells
