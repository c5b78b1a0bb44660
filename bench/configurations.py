"""What recorded sessions cost as their client had them, and in each configuration of Lowwater, on four price sheets.

    .venv/bin/python -m bench.configurations [--sessions N] [--sheets anthropic-r10,…] [--least-calls N]

Every session is played by the real engine on its messages at their recorded times. `as-recorded` has the client's own
compactions where they were recorded, and the cache lifetime that it asked for; all other rows have the whole history and the
lifetime of `cache_ttl: auto`. Rework is one recall for each later use of
something that is no longer in view; the calls that a client made again after its own compactions are part of every row.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool
from random import Random

from msgspec import Struct, field

from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.errors import BadInput
from lowwater.lab.references.uses import uses_of
from lowwater.lab.replay.as_recorded import (
    AS_RECORDED,
    client_compactions,
    play_as_recorded,
    recorded_lifetime,
)
from lowwater.lab.replay.course_replay import PolicyOutcome
from lowwater.lab.replay.live import CONFIGURATIONS, EngineRun, play_with_engine
from lowwater.lab.replay.script import SHEETS, course_for, model_named, script_of
from lowwater.logs.importers import recordings
from lowwater.logs.recording import Recording

NEVER = "never"
ROWS = (AS_RECORDED, NEVER, *CONFIGURATIONS)


class Job(Struct, frozen=True, kw_only=True):
    """One session, to be played in every row on one price sheet."""

    recording: Recording
    sheet: str
    rows: tuple[str, ...]


class Sums(Struct, kw_only=True):
    """What the sessions of one row come to; money in nano-dollars."""

    sessions: int = 0
    calls: int = 0
    cost: int = 0
    rework: int = 0
    summaries: int = 0
    compactions: int = 0
    uses: int = 0
    in_view: int = 0
    one_recall: int = 0
    late: int = 0
    late_in_view: int = 0
    lost: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Calls, summaries and rework."""
        return self.cost + self.rework

    def add(self, outcome: PolicyOutcome) -> None:
        """Add a session."""
        self.sessions += 1
        self.calls += outcome.cadence.turns
        self.cost += outcome.cost
        self.rework += outcome.rework
        self.summaries += outcome.summaries
        self.compactions += outcome.cadence.events
        self.uses += outcome.recall.uses
        self.in_view += outcome.recall.in_view
        self.one_recall += outcome.recall.one_recall or 0
        self.late += outcome.recall.late
        self.late_in_view += outcome.recall.late_in_view
        self.lost.update(outcome.recall.lost)


def play(job: Job) -> dict[str, PolicyOutcome]:
    """Return the outcome of each row."""
    script, model = script_of(job.recording), model_named(job.sheet, load_registry())
    uses = uses_of(script.messages)
    course = course_for(script, (), model=model.name, recorded=job.recording.model or model.name)
    outputs = tuple(turn.output for turn in course.turns)
    found: dict[str, PolicyOutcome] = {}
    for row in job.rows:
        if row == AS_RECORDED:
            found[row] = play_as_recorded(
                script,
                uses,
                client_compactions(job.recording),
                model=model,
                outputs=outputs,
                fixed=course.fixed,
                cache_ttl=recorded_lifetime(job.recording),
            )
            continue
        run = EngineRun(
            policy=NEVER if row == NEVER else "rent-or-buy",
            model=model,
            outputs=outputs,
            fixed=course.fixed,
            configuration=CONFIGURATIONS["keyless" if row == NEVER else row],
        )
        found[row] = play_with_engine(script, uses, run)
    return found


def chosen(least_calls: int, most: int) -> list[Recording]:
    """Return the sessions with times and enough calls; of more than `most`, a sample that is the same every time."""
    found: list[Recording] = []
    for recording in recordings([CANONICAL]):
        try:
            script = script_of(recording)
        except BadInput:
            continue
        if not script.lacks_times and len(script.exchanges) >= least_calls:
            found.append(recording)
    if most and len(found) > most:
        Random(20261118).shuffle(found)
        found = found[:most]
    return found


def table(sums: dict[str, Sums]) -> Iterator[str]:
    """Yield a price sheet's table in Markdown."""
    never, recorded = sums[NEVER].total, sums.get(AS_RECORDED)
    yield "| | cost | ÷ never | ÷ as recorded | summaries | rework | uses in view | late ones | one recall away | compactions per 100 calls |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row, each in sums.items():
        beside = f"{each.total / recorded.total:.2f}" if recorded else "–"
        yield (
            f"| {row} | ${each.total / 1e9:,.2f} | {each.total / never:.2f} | {beside} | "
            f"{each.summaries / each.total:.1%} | {each.rework / each.total:.1%} | "
            f"{each.in_view / max(1, each.uses):.1%} | "
            f"{_share(each.late_in_view, each.late)} | "
            f"{each.one_recall / max(1, each.uses - each.in_view):.1%} of the rest | "
            f"{100 * each.compactions / each.calls:.1f} |"
        )


def losses(sums: dict[str, Sums]) -> Iterator[str]:
    """Yield what replaced the results whose uses are not in view, in Markdown."""
    ways = sorted({way for each in sums.values() for way in each.lost})
    yield f"| not in view, of all uses | {' | '.join(ways)} |"
    yield f"|---|{'---|' * len(ways)}"
    for row, each in sums.items():
        yield f"| {row} | {' | '.join(_share(each.lost[way], each.uses) for way in ways)} |"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def main() -> int:
    """Print the tables."""
    given = argparse.ArgumentParser(description="Cost and uses in view of every configuration.")
    given.add_argument("--sessions", type=int, default=0, help="a sample of so many sessions; 0 for all")
    given.add_argument("--least-calls", type=int, default=30, help="sessions with fewer calls are left out")
    given.add_argument("--sheets", default=",".join(SHEETS), help="price sheets, separated by commas")
    given.add_argument("--rows", default=",".join(ROWS), help="rows, separated by commas")
    asked = given.parse_args()
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    sessions, rows = chosen(asked.least_calls, asked.sessions), tuple(asked.rows.split(","))
    for sheet in asked.sheets.split(","):
        sums = {row: Sums() for row in rows}
        jobs = [Job(recording=each, sheet=sheet, rows=rows) for each in sessions]
        with Pool() as pool:
            for done, outcomes in enumerate(pool.imap_unordered(play, jobs), start=1):
                for row, outcome in outcomes.items():
                    sums[row].add(outcome)
                if sys.stderr.isatty():
                    print(f"\r{sheet}: {done} of {len(jobs)}", end="", file=sys.stderr, flush=True)
        print(f"\n{sheet}: {len(sessions)} sessions, {next(iter(sums.values())).calls:,} calls\n")
        print("\n".join([*table(sums), "", *losses(sums)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
