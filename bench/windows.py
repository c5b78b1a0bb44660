"""What sessions cost, and what is still in view, at small and large windows, beside another state of the code.

    .venv/bin/python -m bench.windows play FILE [--sessions N] [--generated] [--windows 16000,…] [--configurations keyless,own-model]
            [--sheets anthropic-r05] [--calls N] [--minutes N]
    .venv/bin/python -m bench.windows compare BASELINE FILE

`play` plays sessions through the real engine under `rent-or-buy`, with and without a model for summaries, on a model with each of
these windows, and appends every outcome to FILE; what is there already is not played again. FILE is for one state of the code:
for the baseline, run `play` in a checkout of it (with its own `src` first on PYTHONPATH). Recorded sessions are those of at least 60
calls, at random over the sources (`bench.sampled`), and of each the first `--calls`; hidden system prompts are
left out, because they would fill the smallest windows alone. `compare` prints cost with rework as a ratio, over the sessions that
both have, with an interval of 95 % (bootstrap over sessions).
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.policies import generated_scripts
from bench.sampled import sampled
from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.lab.references.uses import uses_of
from lowwater.lab.replay.course_replay import PolicyOutcome
from lowwater.lab.replay.live import CONFIGURATIONS, EngineRun, play_with_engine
from lowwater.lab.replay.script import ReplayScript, course_for, model_named

WINDOWS = (16_000, 32_000, 64_000, 128_000, 200_000, 1_000_000)
SESSIONS, CALLS, LEAST_CALLS = 12, 120, 60
_RESAMPLED, _LEAST_RESAMPLED = 2_000, 5


class Played(Struct, frozen=True, kw_only=True):
    """The outcome of one session at one window."""

    session: str
    source: str
    sheet: str
    configuration: str
    window: int
    outcome: PolicyOutcome

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is the outcome of."""
        return self.session, self.sheet, self.configuration, self.window


def play(script: ReplayScript, source: str, *, sheet: str, configuration: str, window: int) -> Played:
    """Return what a session comes to on a model with that window."""
    model = model_named(sheet, load_registry())
    model = replace(model, context_length=window, cliffs=())
    course = course_for(script, (), model=model.name, recorded=model.name)
    run = EngineRun(
        policy="rent-or-buy",
        model=model,
        outputs=tuple(turn.output for turn in course.turns),
        configuration=CONFIGURATIONS[configuration],
    )
    outcome = play_with_engine(script, uses_of(script.messages), run)
    return Played(
        session=script.name,
        source=source,
        sheet=sheet,
        configuration=configuration,
        window=window,
        outcome=replace(outcome, series=None, events=()),
    )


def scripts(count: int, calls: int, *, generated: bool) -> Iterator[tuple[str, ReplayScript]]:
    """Yield the sessions with their sources."""
    if generated:
        for script in generated_scripts(count):
            yield "generated", script.beginning(calls)
        return
    for source, script in sampled(count, least_calls=LEAST_CALLS):
        yield source, script.beginning(calls)


def read(file: Path) -> list[Played]:
    """Return what was played so far."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Played) for line in file.read_bytes().splitlines()]


def play_all(file: Path, asked: argparse.Namespace) -> None:
    """Append what is not there yet, until the time is up."""
    known, until = {each.key for each in read(file)}, time.monotonic() + 60 * asked.minutes
    chosen = scripts(asked.sessions, asked.calls, generated=asked.generated)
    for source, script in islice(chosen, asked.skip, None):
        for window in asked.windows:
            for configuration in asked.configurations:
                for sheet in asked.sheets:
                    key = (script.name, sheet, configuration, window)
                    if key in known or time.monotonic() > until:
                        continue
                    begun = time.process_time()
                    done = play(script, source, sheet=sheet, configuration=configuration, window=window)
                    with file.open("ab") as out:
                        out.write(msgspec.json.encode(done) + b"\n")
                    print(*key, f"{time.process_time() - begun:.1f} s", file=sys.stderr, flush=True)


def tables(baseline: Iterable[Played], ours: Iterable[Played]) -> Iterator[str]:
    """Yield a row for each configuration, price sheet and window, on the sessions that both have."""
    before, after = ({each.key: each.outcome for each in played} for played in (baseline, ours))
    groups: dict[tuple[str, str, int], list[tuple[PolicyOutcome, PolicyOutcome]]] = defaultdict(list)
    for (session, sheet, configuration, window), outcome in before.items():
        other = after.get((session, sheet, configuration, window))
        if other is not None:
            groups[configuration, sheet, window].append((outcome, other))
    yield (
        "| summaries | sheet | window | sessions | cost with rework, after ÷ before | 95 % | calls alone | rework, before | after "
        "| uses in view, before | after | late, before | after | compactions, before | after |"
    )
    yield "|---" * 15 + "|"
    for key in sorted(groups):
        yield _row(key, groups[key])


def _row(key: tuple[str, str, int], pairs: Sequence[tuple[PolicyOutcome, PolicyOutcome]]) -> str:
    configuration, sheet, window = key
    totals = [(one.total, other.total) for one, other in pairs]
    both = [[pair[side] for pair in pairs] for side in (0, 1)]
    cells = [
        configuration,
        sheet,
        f"{window:,}",
        str(len(pairs)),
        f"{ratio(totals):.3f}",
        interval(totals),
        f"{ratio([(one.cost, other.cost) for one, other in pairs]):.3f}",
        *(f"{sum(each.rework for each in of) / sum(each.total for each in of):.1%}" for of in both),
        *(
            share(sum(each.recall.in_view for each in of), sum(each.recall.uses for each in of))
            for of in both
        ),
        *(
            share(sum(each.recall.late_in_view for each in of), sum(each.recall.late for each in of))
            for of in both
        ),
        *(str(sum(each.cadence.events for each in of)) for of in both),
    ]
    return f"| {' | '.join(cells)} |"


def ratio(pairs: Sequence[tuple[int, int]]) -> float:
    """Return the second sum over the first."""
    return sum(other for _, other in pairs) / max(1, sum(one for one, _ in pairs))


def interval(pairs: Sequence[tuple[int, int]]) -> str:
    """Return between which ratios 95 % of resampled sets of sessions lie; nothing for a handful of sessions, of which it would say too much."""
    if len(pairs) < _LEAST_RESAMPLED:
        return "–"
    random = Random(20261119)
    found = sorted(ratio(random.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLED))
    return f"{found[_RESAMPLED // 40]:.3f}–{found[-_RESAMPLED // 40]:.3f}"


def share(part: int, whole: int) -> str:
    """Return a share in percent."""
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
    playing.add_argument("--skip", type=int, default=0, help="leave the first of them out")
    playing.add_argument("--calls", type=int, default=CALLS)
    playing.add_argument("--generated", action="store_true")
    playing.add_argument("--windows", type=_numbers, default=WINDOWS)
    playing.add_argument("--configurations", type=_names, default=("keyless", "own-model"))
    playing.add_argument("--sheets", type=_names, default=("anthropic-r05",))
    playing.add_argument("--minutes", type=float, default=60.0)
    comparing = commands.add_parser("compare")
    comparing.add_argument("baseline", type=Path)
    comparing.add_argument("file", type=Path)
    asked = parser.parse_args()
    if asked.command == "compare":
        print("\n".join(tables(read(asked.baseline), read(asked.file))))
    elif not asked.generated and not CANONICAL.exists():
        print(ABSENT)
    else:
        play_all(asked.file, asked)
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


if __name__ == "__main__":
    sys.exit(main())
