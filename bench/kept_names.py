"""What the index of names behind summaries keeps in view, and what it costs, beside another state of the code.

    .venv/bin/python -m bench.kept_names play FILE [--sessions N] [--sheets anthropic-r10,…] [--minutes N] [--never]
    .venv/bin/python -m bench.kept_names compare BASELINE FILE

`play` plays recorded sessions of at least 60 calls through the real engine under `rent-or-buy` as it is shipped, the same number
from every source as far as there are so many, and appends each outcome to FILE; what is there already is not played again.
FILE is for one state of the code: for the baseline, run `play` in a checkout of it (with its own `src` first on PYTHONPATH).
`--never` plays the sessions without compaction too, which every state does alike. `compare` prints, for each price sheet and
source, both states on the sessions that both have on every sheet.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.configurations import Job, Played, chosen, play
from bench.transcripts import ABSENT, CANONICAL
from lowwater.lab.replay.live import NEVER, SHIPPED
from lowwater.lab.replay.script import SHEETS
from lowwater.logs.recording import Recording

LEAST_CALLS, SESSIONS = 60, 24
TUNED_ON = ("entireio-cli", "entireio-git-sync")
"""The sources on which the ranking of names was chosen."""
LEFT_OUT = "sources left out"


class Total(Struct, kw_only=True):
    """The sums over sessions on one sheet; money in nano-dollars."""

    sessions: int = 0
    cost: int = 0
    rework: int = 0
    uses: int = 0
    in_view: int = 0
    late: int = 0
    late_in_view: int = 0
    summarised: int = 0
    summarised_in_view: int = 0
    calls: int = 0
    events: int = 0
    summaries: int = 0

    def add(self, played: Played) -> None:
        """Add one session."""
        outcome = played.outcome
        found, cadence = outcome.recall, outcome.cadence
        self.sessions += 1
        self.cost += outcome.total
        self.rework += outcome.rework
        self.uses += found.uses
        self.in_view += found.in_view
        self.late += found.late
        self.late_in_view += found.late_in_view
        self.summarised += found.summarised
        self.summarised_in_view += found.summarised_in_view
        self.calls += cadence.turns
        self.events += cadence.events
        self.summaries += cadence.summaries


def sample(count: int) -> list[Recording]:
    """Return so many sessions, taken from the sources in turn, the same every time."""
    by_source: dict[str, list[Recording]] = defaultdict(list)
    for recording in chosen(LEAST_CALLS):
        by_source[Path(recording.path).parent.name].append(recording)
    taken: list[Recording] = []
    while len(taken) < count and any(by_source.values()):
        for source in sorted(by_source):
            if by_source[source]:
                taken.append(by_source[source].pop(0))
    return taken[:count]


def play_all(
    file: Path, recordings: Sequence[Recording], sheets: Sequence[str], rows: Sequence[str], *, until: float
) -> None:
    """Append the outcome of each session on each sheet to the file, until that time."""
    known = {(each.session, each.sheet, each.row) for each in read(file)}
    for recording in recordings:
        for sheet in sheets:
            name = f"{recording.agent}/{recording.id}"
            missing = tuple(row for row in rows if (name, sheet, row) not in known)
            if not missing or time.monotonic() > until:
                continue
            begun = time.process_time()
            found = play(Job(recording=recording, sheet=sheet, rows=missing))
            with file.open("ab") as out:
                out.writelines(msgspec.json.encode(each) + b"\n" for each in found)
            print(f"{name} {sheet} {time.process_time() - begun:.1f} s", file=sys.stderr, flush=True)


def read(file: Path) -> list[Played]:
    """Return what was played so far."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Played) for line in file.read_bytes().splitlines()]


def tables(baseline: Sequence[Played], ours: Sequence[Played]) -> Iterator[str]:
    """Yield a table of both states, by price sheet and source."""
    keys = {(each.session, each.sheet) for each in baseline if each.row == SHIPPED.name}
    keys &= {(each.session, each.sheet) for each in ours if each.row == SHIPPED.name}
    sheets = {sheet for _, sheet in keys}
    keys = {key for key in keys if all((key[0], sheet) in keys for sheet in sheets)}
    never = {
        (each.session, each.sheet): each.outcome.total for each in (*baseline, *ours) if each.row == NEVER
    }
    yield (
        "| sheet | source | sessions | cost ÷ never, before | after | after ÷ before | in view, before | after | late in view, before | after | "
        "behind summaries in view, before | after | compactions per 100 calls, before | after | summaries, before | after |"
    )
    yield "|---" * 16 + "|"
    for sheet in SHEETS:
        befores, afters = (_by_source(each, sheet, keys) for each in (baseline, ours))
        bills: dict[str, int] = defaultdict(int)
        for each in baseline:
            if each.sheet == sheet and each.row == SHIPPED.name and (each.session, sheet) in keys:
                for group in _groups(each.source):
                    bills[group] += never.get((each.session, sheet), 0)
        for source in sorted(befores, key=lambda name: (name != "all", name != LEFT_OUT, name)):
            yield _row(sheet, source, befores[source], afters[source], bills[source])


def _by_source(played: Iterable[Played], sheet: str, keys: set[tuple[str, str]]) -> Mapping[str, Total]:
    totals: dict[str, Total] = defaultdict(Total)
    for each in played:
        if each.row == SHIPPED.name and each.sheet == sheet and (each.session, each.sheet) in keys:
            for group in _groups(each.source):
                totals[group].add(each)
    return totals


def _groups(source: str) -> tuple[str, ...]:
    return ("all", source) if source in TUNED_ON else ("all", LEFT_OUT, source)


def _row(sheet: str, source: str, before: Total, after: Total, never: int) -> str:
    cells = [
        sheet,
        source,
        str(before.sessions),
        *(f"{each.cost / never:.3f}" if never else "–" for each in (before, after)),
        f"{after.cost / before.cost:.3f}",
        *(_share(each.in_view, each.uses) for each in (before, after)),
        *(_share(each.late_in_view, each.late) for each in (before, after)),
        *(
            f"{_share(each.summarised_in_view, each.summarised)} of {each.summarised:,}"
            for each in (before, after)
        ),
        *(f"{100 * each.events / max(1, each.calls):.2f}" for each in (before, after)),
        *(str(each.summaries) for each in (before, after)),
    ]
    return f"| {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def main() -> int:
    """Play sessions, or compare what was played."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play")
    playing.add_argument("file", type=Path)
    playing.add_argument("--sessions", type=int, default=SESSIONS)
    playing.add_argument("--sheets", default=",".join(SHEETS))
    playing.add_argument("--minutes", type=float, default=60.0)
    playing.add_argument("--never", action="store_true")
    comparing = commands.add_parser("compare")
    comparing.add_argument("baseline", type=Path)
    comparing.add_argument("file", type=Path)
    asked = parser.parse_args()
    if asked.command == "compare":
        print("\n".join(tables(read(asked.baseline), read(asked.file))))
        return 0
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    rows = (SHIPPED.name, NEVER) if asked.never else (SHIPPED.name,)
    until = time.monotonic() + 60 * asked.minutes
    play_all(asked.file, sample(asked.sessions), asked.sheets.split(","), rows, until=until)
    return 0


if __name__ == "__main__":
    sys.exit(main())
