"""How near the lower bound is to the cheapest of all schedules, and how far the engine is from the bound.

    .venv/bin/python -m bench.bound                 # both tables
    .venv/bin/python -m bench.bound --small         # small courses only, beside exhaustive search
    .venv/bin/python -m bench.bound --recorded 25   # every 25th recorded session only, played by the real engine

Small courses are drawn at random. Where the engine is above its bound, the factors say why: the lifetime of the cache that it
asks for and pauses that it does not bridge; the calls at which it compacts; and what its compactions keep in view.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from bench.configurations import chosen
from bench.economics import SHEETS as RATIOS
from bench.economics import p95
from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.core.costs.idle import IdleCosts, plan_pause
from lowwater.lab.bound import lower_bound
from lowwater.lab.course import Course, CourseState, CourseTurn, Sheet, after, elided_size, uses_to_expect
from lowwater.lab.optimum import optimum
from lowwater.lab.references.uses import uses_of
from lowwater.lab.replay.engine_bound import EngineBound
from lowwater.lab.replay.live import EngineRun, play_with_engine
from lowwater.lab.replay.script import SHEETS, course_for, model_named, script_of
from lowwater.lab.schedules import RentOrBuy, Tally, never, run
from lowwater.logs.recording import Recording
from tests.lab.exhaustive_schedules import cheapest

FACTORS = ("lifetime", "moments", "kept", "rework")
LEAST_CALLS = 20
CALLS, SMALL = 6, 12
"""Calls of a small course, and courses of each kind on each sheet."""
PAUSES = {"without pauses": (20.0,), "with pauses": (20.0, 20.0, 20.0, 400.0, 4_000.0)}
"""Seconds between the calls of a small course, by kind, each as likely."""
STEP = 40
"""Every so many recorded sessions are played."""


class Small(Struct, frozen=True, kw_only=True):
    """What a small course costs, as multiples of the cheapest schedule there is."""

    bound: float
    coarse: float
    rule: float
    kept_warm: float
    never: float


def small_course(kind: str, seed: int) -> Course:
    """Return a course of few calls with large results, so that compacting can pay."""
    draw = Random(f"lowwater small course {kind} {seed}")
    turns = []
    for index in range(CALLS):
        results = draw.choice([0, 2_000, 8_000, 20_000, 40_000]) if index else 0
        turns.append(
            CourseTurn(
                text=draw.choice([300, 800, 3_000]),
                results=results,
                elided=elided_size(results),
                output=draw.choice([100, 400, 1_500]),
                gap=draw.choice(PAUSES[kind]) if index else 0.0,
                chance=uses_to_expect("read", 4 * results) if results else 0,
            )
        )
    fixed, tail = draw.choice([5_000, 20_000]), draw.choice([3_000, 20_000])
    return Course(name=f"{kind} {seed}", fixed=fixed, tail=tail, turns=tuple(turns))


def kept_warm(course: Course, sheet: Sheet) -> int | None:
    """Return what a course costs under rent-or-buy if the rule for pauses may keep the prefix warm; None if it does not fit."""
    costs = IdleCosts(lifetime=sheet.ttl, ping=sheet.read, lost=sheet.write - sheet.read)
    turns, pings, gaps = [], [], list[float]()
    for turn in course.turns:
        plan = plan_pause(costs, mode="keep-warm", gaps=gaps)
        pings.append(plan.made_in(turn.gap))
        is_bridged = bool(pings[-1]) and plan.is_warm_after(turn.gap, sheet.ttl)
        turns.append(replace(turn, gap=min(turn.gap, sheet.ttl)) if is_bridged else turn)
        gaps.append(turn.gap)
    tally = Tally(replace(course, turns=tuple(turns)), sheet)
    done = run(tally, RentOrBuy(tally))
    if done.cost is None:
        return None
    acts = {act.turn: act.action for act in done.acts}
    state, read, size = CourseState(), 0, 0
    for index, made in enumerate(pings):
        read += made * size
        state = after(state, acts.get(index))
        size = tally.size(index, state)
    return done.cost + sheet.read * read // 1_000


def measure_small(kind: str, sheet: Sheet, seed: int) -> Small:
    """Return a course's costs; raises AssertionError if the bound is above the cheapest schedule."""
    course = small_course(kind, seed)
    tally = Tally(course, sheet)
    least, bound, coarse = cheapest(course, sheet), lower_bound(course, sheet), optimum(course, sheet).cost
    rule, kept = run(tally, RentOrBuy(tally)).cost, run(tally, never(tally)).cost
    assert least is not None, course
    assert bound is not None, course
    assert coarse is not None, course
    assert bound <= least <= coarse, (course, bound, least, coarse)
    assert rule is not None, course
    assert kept is not None, course
    warm = kept_warm(course, sheet)
    assert warm is not None, course
    return Small(
        bound=bound / least,
        coarse=coarse / least,
        rule=rule / least,
        kept_warm=warm / least,
        never=kept / least,
    )


def small_table() -> Iterator[str]:
    """Yield the table of small courses: mean, and the value furthest from 1."""
    yield f"| {SMALL} courses of {CALLS} calls each | bound | coarse optimum | rent-or-buy | and kept warm | never |"
    yield "|---|---|---|---|---|---|"
    for kind, sheet in product(PAUSES, RATIOS):
        found = [measure_small(kind, sheet, seed) for seed in range(SMALL)]
        cells = [f"{fmean(each.bound for each in found):.3f} · {min(each.bound for each in found):.3f}"]
        for name in ("coarse", "rule", "kept_warm", "never"):
            values = [getattr(each, name) for each in found]
            cells.append(f"{fmean(values):.3f} · {max(values):.3f}")
        yield f"| {sheet.name}, {kind} | {' | '.join(cells)} |"


class Job(Struct, frozen=True, kw_only=True):
    """A recorded session to play on a price sheet."""

    recording: Recording
    sheet: str


class Played(Struct, frozen=True, kw_only=True):
    """A recorded session by the real engine beside its bound; the four factors multiply to cost ÷ bound."""

    sheet: str
    calls: int
    bound: int
    cost: int
    never: int
    lifetime: float
    moments: float
    kept: float
    rework: float


def play(job: Job) -> Played:
    """Play one session in the shipped configuration; raises AssertionError if it costs less than its bound."""
    model, script = model_named(job.sheet, load_registry()), script_of(job.recording)
    uses = uses_of(script.messages)
    course = course_for(script, uses, model=model.name, recorded=job.recording.model or model.name)
    ours, without = (
        play_with_engine(
            script,
            uses,
            EngineRun(
                policy=policy,
                model=model,
                outputs=tuple(turn.output for turn in course.turns),
                fixed=course.fixed,
            ),
        )
        for policy in ("rent-or-buy", "never")
    )
    bound = EngineBound(script, course, model)
    least, one_lifetime = bound.least(), bound.least(one_lifetime=True)
    at_these = bound.least(one_lifetime=True, changed_at={event.turn for event in ours.events})
    costs = (ours.total, without.total)
    assert least <= min(costs), f"{script.name} on {job.sheet}: {costs} below the bound of {least}"
    return Played(
        sheet=job.sheet,
        calls=len(course.turns),
        bound=least,
        cost=ours.total,
        never=without.total,
        lifetime=one_lifetime / least,
        moments=at_these / one_lifetime,
        kept=ours.cost / at_these,
        rework=ours.total / ours.cost,
    )


def recorded_table(played: Sequence[Played]) -> Iterator[str]:
    """Yield what the engine costs beside its bound, by sheet, and the factors that make it more."""
    yield (
        "| sheet | sessions, calls | engine ÷ bound: of the sums · mean · p95 · least | never ÷ bound | lifetime | moments | kept | rework |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for sheet in SHEETS:
        rows = [each for each in played if each.sheet == sheet]
        if rows:
            ratios = [each.cost / each.bound for each in rows]
            bound = sum(each.bound for each in rows)
            overall = (sum(each.cost for each in rows) / bound, fmean(ratios), p95(ratios), min(ratios))
            factors = (fmean(getattr(each, name) for each in rows) for name in FACTORS)
            yield (
                f"| {sheet} | {len(rows)}, {sum(each.calls for each in rows):,} "
                f"| {' · '.join(f'{each:.3f}' for each in overall)} | {sum(each.never for each in rows) / bound:.3f} "
                f"| {' | '.join(f'{each:.3f}' for each in factors)} |"
            )


def main() -> int:
    """Print the tables."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--small", action="store_true", help="the small courses alone")
    given.add_argument("--recorded", type=int, metavar="N", help="recorded sessions alone, every Nth")
    asked = given.parse_args()
    if asked.recorded is not None and asked.recorded < 1:
        given.error("--recorded takes a number from 1 on: every Nth session is played")
    if asked.recorded is None:
        print("\n".join(small_table()), flush=True)
    if asked.small:
        return 0
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    jobs = [
        Job(recording=each, sheet=sheet)
        for each in chosen(LEAST_CALLS)[:: asked.recorded or STEP]
        for sheet in SHEETS
    ]
    print("\n".join(recorded_table([play(job) for job in jobs])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
