"""Courses played with something done in their pauses."""

import pytest

from lowwater.core.costs.idle import IdleCosts
from lowwater.lab.course import Course, CourseTurn, Sheet
from lowwater.lab.pauses import ALWAYS, PausePlayer, always, by_rule, compacting, nothing, planned
from lowwater.lab.schedules import POLICIES, Tally

SHEET = Sheet(
    name="s",
    input=5_000,
    read=500,
    write=6_250,
    output=25_000,
    other_input=1_000,
    other_output=5_000,
    ttl=300.0,
    window=200_000,
)


def course(*gaps: float, results: int = 4_000) -> Course:
    turns = [CourseTurn(text=500, results=results, elided=results // 6, output=200, gap=gap) for gap in gaps]
    return Course(name="c", fixed=15_000, tail=8_000, turns=tuple(turns))


def player(*gaps: float, policy: str = "never") -> PausePlayer:
    return PausePlayer(Tally(course(*gaps), SHEET), POLICIES[policy])


def test_a_pause_of_ten_minutes_is_cheaper_kept_warm_by_what_is_not_written_again() -> None:
    played = player(0, 10, 10, 600, 10)
    never, kept = played.play(nothing), played.play(always)
    size = 15_000 + 3 * 4_500
    assert (kept.pings, kept.kept) == (2, 1)
    assert never.cost is not None
    assert kept.cost is not None
    assert never.cost - kept.cost == (6_250 - 500) * size // 1_000 - 2 * (500 * size + 25_000) // 1_000


def test_a_pause_that_never_ends_is_paid_for_only_if_the_client_stays_open() -> None:
    played = player(0, 10, 10)
    assert played.play(always).cost == played.play(nothing).cost
    assert played.play(always, stays_open=True).pings > 40


@pytest.mark.parametrize("policy", ["never", "rent-or-buy"])
def test_hindsight_is_not_beaten_by_anything(policy: str) -> None:
    played = player(*([0] + [20] * 30 + [900] + [20] * 20 + [50_000] + [30] * 10), policy=policy)
    best = played.hindsight().cost
    assert best is not None
    for choose in (nothing, always, compacting, by_rule(), by_rule("keep-warm"), by_rule("compact")):
        found = played.play(choose).cost
        assert found is not None
        assert found >= best


def test_a_plan_says_what_it_does_in_a_pause() -> None:
    costs = IdleCosts(lifetime=300, ping=1, lost=10)
    plan = planned(ALWAYS, costs)
    assert [plan.made_in(gap) for gap in (10, 279, 281, 700)] == [0, 0, 1, 2]
    assert plan.is_warm_after(3_000, 300)
    assert not planned(1, costs).is_warm_after(700, 300)
