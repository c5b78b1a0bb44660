"""The dynamic program against every schedule there is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.lab.course import (
    Course,
    CourseAction,
    CoursePrune,
    CourseState,
    CourseTurn,
    Summarise,
    after,
)
from lowwater.lab.optimum import optimum
from lowwater.lab.schedules import Tally
from tests.lab.drawn_courses import SHEET, drawn_courses

START = CourseState()


def cheapest(tally: Tally, turn: int = 0, state: CourseState = START) -> int | None:
    """Return what the best of all schedules from a turn on costs, undivided; None if no prompt fits."""
    if turn == tally.count:
        return 0
    edges = range(1, tally.edges[turn] + 1)
    prunes = [CoursePrune(upto=edge) for edge in edges if edge > state.pruned]
    summaries = [Summarise(upto=edge) for edge in edges if edge > state.summarised]
    costs = []
    for action in (None, *prunes, *summaries):
        then = after(state, action)
        if tally.size(turn, then) <= tally.sheet.wall:
            rest = cheapest(tally, turn + 1, then)
            costs += [] if rest is None else [tally.call(turn, state, action) + rest]
    return min(costs, default=None)


def played(tally: Tally, schedule) -> int | None:
    """Return what a schedule costs; None if a prompt does not fit."""
    state, cost = CourseState(), 0
    for turn, action in enumerate(schedule):
        then = after(state, action)
        if tally.size(turn, then) > tally.sheet.wall:
            return None
        cost += tally.call(turn, state, action)
        state = then
    return cost


@st.composite
def turns(draw):
    results = draw(st.integers(0, 200))
    return CourseTurn(
        text=draw(st.integers(1, 100)),
        results=results,
        elided=draw(st.integers(0, results)),
        output=draw(st.integers(0, 50)),
        gap=draw(st.sampled_from([1.0, 1_000.0])),
        chance=draw(st.integers(0, 2_000_000)),
    )


def courses():
    return drawn_courses(
        turns(), fixed=st.integers(0, 300), tail=st.integers(0, 150), most_turns=6, most_uses=4
    )


@settings(max_examples=40)
@given(course=courses(), wall=st.sampled_from([200, 400, 900]), other=st.sampled_from([20, 200, 2_000]))
def test_no_schedule_is_cheaper_and_one_is_as_cheap(course, wall, other):
    sheet = replace(SHEET, window=wall + 100, other_input=other)
    least = cheapest(Tally(course, sheet))
    assert optimum(course, sheet).cost == (None if least is None else least // 1_000)


@settings(max_examples=40)
@given(course=courses())
def test_the_acts_cost_what_the_optimum_says(course):
    found = optimum(course, SHEET, with_acts=True)
    if found.cost is None:
        return
    tally = Tally(course, SHEET)
    acts = {act.turn: act.action for act in found.acts}
    cost = played(tally, [acts.get(turn) for turn in range(tally.count)])
    assert cost is not None
    assert cost // 1_000 == found.cost


def steady(count: int, *, gap: float = 1.0) -> Course:
    turn = CourseTurn(text=10, results=90, elided=10, output=5, gap=gap)
    return Course(name="steady", fixed=100, tail=100, turns=(turn,) * count)


def test_a_session_without_results_to_elide_that_ends_soon_is_left_alone():
    course = Course(name="talk", fixed=100, tail=100, turns=(CourseTurn(text=100, output=5),) * 4)
    assert optimum(course, SHEET, with_acts=True).acts == ()


def test_a_prune_at_a_cold_call_is_free_and_taken():
    turns = list(steady(4).turns)
    turns[3] = CourseTurn(text=10, results=90, elided=10, output=5, gap=301.0)
    course = Course(name="paused", fixed=100, tail=100, turns=tuple(turns))
    assert optimum(course, SHEET, with_acts=True).acts == (CourseAction(turn=3, action=CoursePrune(upto=3)),)


def test_a_session_that_cannot_fit_has_no_cost():
    course = Course(name="vast", fixed=100, tail=0, turns=(CourseTurn(text=2_000),))
    assert optimum(course, SHEET).cost is None


@pytest.mark.parametrize("count", [30, 90])
def test_long_growth_is_met_by_several_summaries(count):
    acts = optimum(steady(count), SHEET, with_acts=True).acts
    assert sum(isinstance(act.action, Summarise) for act in acts) > 1


def test_an_optimum_without_turns_is_free():
    assert optimum(Course(name="none", fixed=1, tail=0, turns=()), SHEET).cost == 0
