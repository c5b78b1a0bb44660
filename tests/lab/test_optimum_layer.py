"""Layers of the search: which states they hold, and what lies outside."""

import numpy as np
import pytest

from lowwater.lab.course import CourseState
from lowwater.lab.optimum import NEVER, Layer


def layer(*rows: list[int], low: int = 0) -> Layer:
    return Layer(low=low, costs=np.array(rows, np.int64))


TWO = layer([5, 7], [NEVER, 9], low=3)


@pytest.mark.parametrize(
    ("state", "cost"),
    [
        pytest.param(CourseState(summarised=3, pruned=4), 7, id="held"),
        pytest.param(CourseState(summarised=2, pruned=4), NEVER, id="before the first edge"),
        pytest.param(CourseState(summarised=3, pruned=5), NEVER, id="behind the last edge"),
    ],
)
def test_a_state_outside_a_layer_cannot_be(state, cost):
    assert TWO.cost(state) == cost


def test_the_cheapest_state_counts_from_the_first_edge():
    assert TWO.cheapest() == CourseState(summarised=3, pruned=3)


def test_rows_in_which_nothing_can_be_go_with_their_columns():
    trimmed = layer([NEVER, NEVER], [NEVER, 9], low=3).trimmed()
    assert trimmed.low == 4
    assert trimmed.costs.tolist() == [[9]]


def test_a_layer_that_is_possible_from_the_start_is_kept():
    assert TWO.trimmed() is TWO


def test_a_layer_grows_by_states_that_were_never_reached():
    grown = TWO.reaching(5)
    assert grown.costs.shape == (3, 3)
    assert grown.cost(CourseState(summarised=3, pruned=4)) == 7
    assert grown.cost(CourseState(summarised=3, pruned=5)) == NEVER


def test_a_layer_never_shrinks():
    assert TWO.reaching(3) is TWO
