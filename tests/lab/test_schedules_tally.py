"""What views of a course measure and cost, by hand."""

import pytest
from msgspec.structs import replace

from lowwater.core.costs.losses import LOST_BY_ELISION, LOST_BY_SUMMARY
from lowwater.lab.course import (
    SHARE,
    Course,
    CoursePrune,
    CourseState,
    CourseTurn,
    CourseUse,
    Sheet,
    Summarise,
    after,
)
from lowwater.lab.schedules import Tally

SHEET = Sheet(
    name="test",
    input=1_000,
    read=100,
    write=1_250,
    output=5_000,
    other_input=200,
    other_output=1_000,
    ttl=300,
    window=1_100,
    reserved=100,
    summary=30,
    instruction=4,
)
TURN = CourseTurn(text=10, results=90, elided=15, output=7, gap=1.0)


def tally(count: int = 6, *, tail: int = 100, uses=(), last: CourseTurn = TURN) -> Tally:
    return Tally(
        Course(name="t", fixed=50, tail=tail, turns=(TURN,) * (count - 1) + (last,), uses=uses), SHEET
    )


@pytest.mark.parametrize(
    ("state", "size"),
    [
        pytest.param(CourseState(), 350, id="whole"),
        pytest.param(CourseState(pruned=2), 200, id="pruned"),
        pytest.param(CourseState(summarised=2, pruned=2), 180, id="summarised"),
        pytest.param(CourseState(summarised=1, pruned=2), 205, id="both"),
    ],
)
def test_sizes(state, size):
    assert tally().size(2, state) == size


def test_the_tail_is_the_least_number_of_turns_that_holds_its_tokens():
    assert tally(tail=150).edges == [0, 0, 1, 2, 3, 4]


def test_the_newest_turn_is_never_outside_the_tail():
    assert tally(tail=0).edges == [0, 1, 2, 3, 4, 5]


def test_the_tail_shrinks_where_it_would_not_fit():
    vast = CourseTurn(text=900)
    assert tally(tail=500, last=vast).edges[-1] == 5


def test_a_warm_call_reads_the_prompt_before_and_writes_what_is_new():
    assert tally().call(2, CourseState(), None) == 100 * 250 + 1_250 * 100 + 5_000 * 7


def test_the_first_call_and_one_after_a_pause_write_everything():
    paused = tally(last=CourseTurn(text=100, gap=301.0))
    assert paused.call(0, CourseState(), None) == 1_250 * 150 + 5_000 * 7
    assert paused.call(5, CourseState(), None) == 1_250 * 650


def test_a_prune_reads_what_is_before_its_first_edit():
    assert tally().prompt(4, CourseState(pruned=1), CoursePrune(upto=3)) == 100 * 75 + 1_250 * (
        50 + 75 + 200 - 75
    )


def test_a_summary_reads_tools_and_system_and_is_asked_for_the_cheaper_way():
    riding = 100 * 450 + 4_000 + 5_000 * 30
    other = 200 * (300 + 4) + 1_000 * 30
    assert other < riding
    assert tally().prompt(4, CourseState(), Summarise(upto=3)) == other + 100 * 50 + 1_250 * (30 + 200)


def test_a_summary_uses_the_cached_prefix_where_that_is_cheaper():
    dear = Tally(tally().course, replace(SHEET, other_input=2_000))
    assert dear.asking(4, CourseState(), 3) == 100 * 450 + 4_000 + 5_000 * 30


def test_a_later_summary_covers_the_one_before():
    assert tally().covered(CourseState(summarised=1, pruned=2), 3) == 30 + 25 + 100


def test_a_use_of_what_is_in_view_costs_nothing():
    assert tally(uses=(CourseUse(at=3, of=1, tokens=40),)).rework(3, CourseState(pruned=1)) == 0


@pytest.mark.parametrize("action", [CoursePrune(upto=2), Summarise(upto=2)], ids=["pruned", "summarised"])
def test_a_use_of_what_is_gone_costs_a_call_and_the_write(action):
    used = tally(uses=(CourseUse(at=3, of=1, tokens=40),))
    state = after(CourseState(), action)
    assert used.rework(3, state) == 100 * used.size(3, state) + 1_250 * 40


def test_a_digest_serves_a_use_but_a_summary_does_not():
    used = tally(uses=(CourseUse(at=3, of=1, tokens=40, in_digest=True),))
    assert used.rework(3, CourseState(pruned=2)) == 0
    assert used.rework(3, CourseState(summarised=2, pruned=2)) > 0


def test_expected_uses_fade_with_age_and_never_exceed_the_chance():
    turn = CourseTurn(text=10, results=90, elided=15, chance=SHARE)
    course = Course(name="t", fixed=50, tail=0, turns=(turn, *(TURN,) * 80))
    lost = [sum(part[0, 1] for part in Tally(course, SHEET).lost(at)) for at in range(81)]
    assert lost[5] == 0
    assert lost[6] > lost[20] > lost[80] > 0
    assert sum(lost) < SHARE


def test_elision_and_a_summary_lose_the_shares_of_expected_uses_that_were_measured():
    course = Course(
        name="t", fixed=50, tail=0, turns=(CourseTurn(text=1, results=90, chance=SHARE), *(TURN,) * 8)
    )
    by_elision, by_summary = Tally(course, SHEET).lost(8)
    total = by_elision[0, 1] + by_summary[0, 1]
    assert by_elision[0, 1] / total == pytest.approx(LOST_BY_ELISION / LOST_BY_SUMMARY, rel=1e-3)
