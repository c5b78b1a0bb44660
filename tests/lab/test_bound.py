"""The lower bound against every schedule of the engine's actions, and against the optimum of fewer actions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.lab.bound import Reach, engine_bound, lower_bound
from lowwater.lab.course import Course, CourseTurn
from lowwater.lab.optimum import optimum
from lowwater.lab.schedules import RentOrBuy, Tally, run
from tests.lab import drawn_courses
from tests.lab.exhaustive_schedules import cheapest

SHEET = replace(drawn_courses.SHEET, write_long=2_000, ttl_long=3_600)


@st.composite
def turns(draw):
    results = draw(st.sampled_from([0, 20, 90, 200]))
    return CourseTurn(
        text=draw(st.integers(1, 60)),
        results=results,
        elided=draw(st.integers(0, results // 3)),
        output=draw(st.integers(0, 20)),
        gap=draw(st.sampled_from([1.0, 1.0, 1.0, 500.0, 2_000.0, 5_000.0])),
        chance=draw(st.integers(0, 400_000)),
    )


def courses():
    return drawn_courses.drawn_courses(
        turns(), fixed=st.integers(0, 100), tail=st.sampled_from([0, 0, 50, 150]), most_turns=5, most_uses=2
    )


@settings(max_examples=60, deadline=None)
@given(
    course=courses(),
    wall=st.sampled_from([300, 900]),
    other=st.sampled_from([0, 200, 2_000]),
    summary=st.sampled_from([0, 5, 30]),
    has_long=st.booleans(),
)
def test_no_schedule_is_cheaper_than_the_bound(course, wall, other, summary, has_long):
    sheet = replace(SHEET, window=wall + 100, other_input=other, other_output=other, summary=summary)
    sheet = sheet if has_long else replace(sheet, write_long=None, ttl_long=0.0)
    bound, least = lower_bound(course, sheet), cheapest(course, sheet)
    assert least is None or (bound is not None and bound <= least)
    coarse = optimum(course, sheet).cost
    assert coarse is None or (least is not None and least <= coarse)


FREE = replace(SHEET, summary=0, instruction=0, other_input=0, other_output=0, window=100_000)
"""Summaries cost nothing, as the bound of the real engine assumes."""


@settings(max_examples=60, deadline=None)
@given(
    course=courses(),
    last=st.integers(1, 2),
    head=st.integers(0, 1),
    forced_from=st.sampled_from([None, 250, 400]),
    has_long=st.booleans(),
)
def test_no_schedule_is_cheaper_than_the_bound_of_the_engine(course, last, head, forced_from, has_long):
    edges = tuple(max(0, turn + 1 - last) for turn in range(len(course.turns)))
    reach = Reach(edges=edges, head=head, forced_from=forced_from)
    sheet = FREE if has_long else replace(FREE, write_long=None, ttl_long=0.0)
    course = replace(course, uses=(), turns=tuple(replace(turn, elided=0) for turn in course.turns))
    least = cheapest(course, sheet, reach)
    assert least is not None
    assert engine_bound(course, sheet, reach) <= least


@settings(max_examples=40)
@given(
    course=st.builds(
        lambda parts: replace(parts[0], turns=parts[0].turns + parts[1].turns * 4, uses=None),
        st.tuples(courses(), courses()),
    )
)
def test_on_longer_courses_the_bound_is_below_the_optimum_of_fewer_actions_and_the_rule(course):
    bound, tally = lower_bound(course, SHEET), Tally(course, SHEET)
    for cost in (optimum(course, SHEET).cost, run(tally, RentOrBuy(tally)).cost):
        assert cost is None or (bound is not None and bound <= cost)


def steady(count: int, *, gap: float = 1.0, tail: int = 100) -> Course:
    turn = CourseTurn(text=10, results=90, elided=10, output=5, gap=gap)
    return Course(name="steady", fixed=100, tail=tail, turns=(turn,) * count)


def test_a_session_that_changes_nothing_costs_the_bound():
    course = steady(2)
    never = run(Tally(course, SHEET), lambda _turn, _state: None).cost
    assert lower_bound(course, SHEET) == never


def test_a_free_prune_at_a_cold_call_is_reckoned_with():
    turns = list(steady(4).turns)
    turns[3] = replace(turns[3], gap=5_000.0)
    course = replace(steady(4), turns=tuple(turns))
    least, bound = cheapest(course, SHEET), lower_bound(course, SHEET)
    never = run(Tally(course, SHEET), lambda _turn, _state: None).cost
    assert least is not None
    assert bound is not None
    assert never is not None
    assert 0.95 * least < bound <= least < never


@pytest.mark.parametrize("count", [40, 120])
def test_the_bound_is_near_the_optimum_where_both_have_the_same_actions(count):
    course = steady(count, tail=300)
    least, bound = optimum(course, SHEET).cost, lower_bound(course, SHEET)
    assert least is not None
    assert bound is not None
    assert 0.85 * least < bound <= least


def test_a_first_prompt_that_a_size_forces_to_be_changed_is_not_charged():
    course = Course(name="large", fixed=29, tail=0, turns=(CourseTurn(text=21, results=200),), uses=())
    reach = Reach(edges=(0,), forced_from=250)
    least = cheapest(course, FREE, reach)
    assert least is not None
    assert engine_bound(course, FREE, reach) <= least


def test_what_cannot_fit_has_no_bound():
    assert (
        lower_bound(
            Course(name="vast", fixed=1_000, tail=0, turns=(CourseTurn(text=10), CourseTurn(text=10))), SHEET
        )
        is None
    )


def test_no_calls_cost_nothing():
    assert lower_bound(Course(name="none", fixed=1, tail=0, turns=()), SHEET) == 0
