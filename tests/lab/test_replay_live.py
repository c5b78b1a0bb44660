"""Playing a course call by call: equal to the tally for declared actions, billed by what the cache really did."""

import pytest
from msgspec.structs import replace

from lowwater.lab.course import Course, CourseAction, CoursePrune, CourseTurn, CourseUse, Sheet, Summarise
from lowwater.lab.optimum import optimum
from lowwater.lab.peers import DECLARED, PeerChange, PeerView, follow_schedule, play_course
from lowwater.lab.schedules import Tally, run
from tests.generated.courses import generate

SHEET = Sheet(
    name="r10",
    input=1_000_000,
    read=100_000,
    write=1_250_000,
    output=5_000_000,
    other_input=200_000,
    other_output=1_000_000,
    ttl=300,
    window=200_000,
)


def drawn(seed: int) -> Course:
    """Return a generated course with a use of every tenth turn's results nine turns later."""
    course = generate("r10", seed)
    turns = course.turns[:90]
    uses = tuple(
        CourseUse(at=of + 9, of=of, tokens=turns[of].results, in_digest=of % 20 == 0)
        for of in range(0, len(turns) - 9, 10)
    )
    return replace(course, turns=turns, uses=uses)


@pytest.mark.parametrize("window", [80_000, 200_000])
@pytest.mark.parametrize("policy", DECLARED)
def test_declared_actions_cost_what_the_tally_says(policy, window):
    for seed in (1, 3):
        course, sheet = drawn(seed), replace(SHEET, window=window)
        tally = Tally(course, sheet)
        done = run(tally, DECLARED[policy](tally))
        played = play_course(
            course, sheet, follow_schedule(done.acts, course=course), cold=tally.cold, believed=tally.cold
        )
        assert played.fits
        assert played.total == done.cost


def test_the_optimums_acts_cost_what_the_optimum_says():
    course = drawn(4)
    found = optimum(course, SHEET, with_acts=True)
    cold = Tally(course, SHEET).cold
    played = play_course(course, SHEET, follow_schedule(found.acts, course=course), cold=cold, believed=cold)
    assert found.acts
    assert played.total == found.cost


SMALL = Course(
    name="small",
    fixed=1_000,
    tail=0,
    turns=tuple(CourseTurn(text=100, results=900, elided=100, output=10) for _ in range(4)),
    uses=(CourseUse(at=3, of=0, tokens=900, in_digest=True), CourseUse(at=3, of=1, tokens=900)),
)
WARM = [True, False, False, False]


def test_a_prune_moves_the_prefix_and_its_uses_are_charged_but_for_those_in_the_digest():
    acts = [CourseAction(turn=2, action=CoursePrune(upto=2))]
    played = play_course(SMALL, SHEET, follow_schedule(acts, course=SMALL), cold=WARM, believed=WARM)
    third, last = played.calls[2], played.calls[3]
    assert (third.prompt, third.read, third.elided, third.summarised) == (2_400, 1_000, 1_600, 0)
    assert (last.prompt, last.read) == (3_400, 2_400)
    assert last.rework == SHEET.read * 3_400 + SHEET.write * 900
    assert (played.uses, played.in_view) == (2, 1)


def test_a_summary_extends_the_request_before_it():
    acts = [CourseAction(turn=2, action=Summarise(upto=2))]
    sheet = replace(SHEET, summary=50, other_input=10 * SHEET.input)
    played = play_course(SMALL, sheet, follow_schedule(acts, course=SMALL), cold=WARM, believed=WARM)
    call, event = played.calls[2], played.events[0]
    assert call.asked == sheet.read * 3_000 + sheet.input * sheet.instruction + sheet.output * 50
    assert (call.prompt, call.summarised, call.elided) == (2_050, 1_950, 0)
    assert (event.turn, event.mode, event.before, event.after, event.summaries) == (
        2,
        "summary",
        4_000,
        2_050,
        1,
    )


def test_a_call_that_finds_nothing_by_surprise_pays_for_its_summary_in_full():
    acts = [CourseAction(turn=2, action=Summarise(upto=2))]
    sheet = replace(SHEET, other_input=10 * SHEET.input)
    lost = [True, False, True, False]
    peer = follow_schedule(acts, course=SMALL)
    kind = play_course(SMALL, sheet, peer, cold=WARM, believed=WARM).calls[2]
    unkind = play_course(SMALL, sheet, peer, cold=lost, believed=WARM).calls[2]
    assert unkind.read == 0
    assert unkind.asked - kind.asked == (sheet.input - sheet.read) * 3_000


def test_above_the_wall_a_peer_that_does_nothing_is_made_to_summarise():
    def idle(_view: PeerView) -> PeerChange | None:
        return None

    sheet = replace(SHEET, window=23_500, summary=100)
    played = play_course(SMALL, sheet, idle, cold=WARM, believed=WARM)
    assert played.fits
    assert [event.forced for event in played.events] == [True]
    assert max(call.prompt for call in played.calls) <= sheet.wall


def test_what_cannot_fit_says_so():
    sheet = replace(SHEET, window=21_500)
    assert not play_course(SMALL, sheet, lambda _view: None, cold=WARM, believed=WARM).fits
