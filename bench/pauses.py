"""What pauses cost on recorded sessions, and how much of what hindsight saves the rule for pauses saves (`core/costs/idle.py`).

    .venv/bin/python -m bench.pauses               # all recorded sessions with times; about a quarter of an hour
    .venv/bin/python -m bench.pauses --every 8     # every eighth session

What the rule takes for general about pauses is measured on the other sources. "Stays open": the client is not ended after the
last call of a session, so that what is done then is wasted.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.core.costs.idle import USER_LULLS, Lulls
from lowwater.errors import BadInput
from lowwater.lab.course import Course, Sheet
from lowwater.lab.pauses import (
    Chooser,
    Paused,
    PausePlayer,
    always,
    by_rule,
    compacting,
    nothing,
    with_long_lifetime,
)
from lowwater.lab.replay.script import course_for, model_named, script_of, sheet_of
from lowwater.lab.schedules import POLICIES, Tally
from lowwater.logs.importers import recordings

SHEETS = ("anthropic-r10", "anthropic-r05")
LEAST_CALLS = 5
Sources = Mapping[str, Sequence[Course]]


def courses(every: int = 1) -> Sources:
    """Return the courses of the recorded sessions with times, by source."""
    model = model_named(SHEETS[0], load_registry()).name
    found: dict[str, list[Course]] = defaultdict(list)
    for at, recording in enumerate(recordings([CANONICAL])):
        if at % every:
            continue
        try:
            script = script_of(recording)
        except BadInput:
            continue
        if not script.lacks_times and len(script.exchanges) >= LEAST_CALLS:
            course = course_for(script, (), model=model, recorded=recording.model or model)
            found[Path(recording.path).parent.name].append(course)
    return found


def lulls_of(sessions: Sequence[Course], *, runs_tools: bool) -> Lulls:
    """Return how long nothing came after an answer that called tools, or that did not, of ten thousand such answers."""
    gaps: list[float] = []
    ends = 0
    for session in sessions:
        turns = session.turns
        gaps += [turn.gap for last, turn in pairwise(turns) if last.calls_tools is runs_tools]
        ends += turns[-1].calls_tools is runs_tools
    answers = max(1, len(gaps) + ends)
    return Lulls(
        longer=tuple(
            (least, round(10_000 * (ends + sum(gap > least for gap in gaps)) / answers))
            for least, _ in USER_LULLS.longer
        ),
        ends=round(10_000 * ends / answers),
    )


def _rows(
    course: Course, short: Sheet, long: Sheet, rule: Callable[..., Chooser], policy: str
) -> Iterator[tuple[str, Paused]]:
    """Yield what a session costs with each choice."""
    player = PausePlayer(Tally(course, short), POLICIES[policy])
    an_hour = PausePlayer(Tally(course, long), POLICIES[policy])
    yield "never", player.play(nothing)
    yield "always, up to 4 hours", player.play(always)
    yield "compacting before every expiry", player.play(compacting)
    yield "the hour's lifetime", an_hour.play(nothing)
    yield "rule, only compacting", player.play(rule("compact"))
    yield "rule, only keeping warm", player.play(rule("keep-warm"))
    yield "**rule**", player.play(rule())
    yield "rule, on the hour's lifetime", an_hour.play(rule())
    yield "rule, and the client stays open", player.play(rule(), stays_open=True)
    yield (
        "hindsight",
        min((player.hindsight(), an_hour.hindsight()), key=lambda found: found.cost or sys.maxsize),
    )


def _table(sources: Sources, sheet: str, policy: str) -> None:
    model = model_named(sheet, load_registry())
    prices, rules = model.prices, model.cache
    assert prices is not None
    assert rules.ttl_long is not None
    assert prices.cache_write_long is not None
    short = sheet_of(model)
    long = with_long_lifetime(short, seconds=rules.ttl_long, write=prices.cache_write_long)
    sums: dict[str, list[int]] = {}
    counted = 0
    for source, sessions in sources.items():
        others = [each for name, rest in sources.items() if name != source for each in rest]
        rule: Callable[..., Chooser] = by_rule
        if others:
            user, tools = lulls_of(others, runs_tools=False), lulls_of(others, runs_tools=True)
            rule = partial(by_rule, user=user, tools=tools)
        for course in sessions:
            found = dict(_rows(course, short, long, rule, policy))
            if any(each.cost is None for each in found.values()):
                continue
            counted += 1
            for name, each in found.items():
                row = sums.setdefault(name, [0, 0, 0, 0])
                for at, number in enumerate((each.cost or 0, each.pings, each.kept, each.compacted)):
                    row[at] += number
    before, best = sums["never"][0], sums["hindsight"][0]
    what = "uncompacted" if policy == "never" else f"on top of {policy}"
    print(f"\n{sheet}, {what}, {counted} sessions, never: ${before / 1e9:,.2f}\n")
    print(
        "| | bill | of what hindsight saves | calls to keep warm | pauses kept | compacted |\n|---|---|---|---|---|---|"
    )
    for name, (cost, pings, kept, compacted) in sums.items():
        share = (before - cost) / (before - best) if before > best else 0.0
        print(
            f"| {name} | {cost / before:.3f} | {share:.0%} | {pings:,} | {kept:,} | {compacted:,} |",
            flush=True,
        )


def main() -> int:
    """Print the distribution of pauses and a table for each sheet, uncompacted and on top of compaction."""
    parser = argparse.ArgumentParser(description="What pauses cost, and what the rule for them saves.")
    parser.add_argument("--every", type=int, default=1, help="only every Nth session")
    arguments = parser.parse_args()
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    sources = courses(arguments.every)
    sessions = [each for rest in sources.values() for each in rest]
    gaps = sum(len(session.turns) - 1 for session in sessions)
    print(
        f"{gaps:,} gaps of {len(sessions)} sessions; of ten thousand answers, nothing came for more than so many seconds"
    )
    for runs_tools, name in ((False, "that waited for the user"), (True, "that called tools")):
        measured = lulls_of(sessions, runs_tools=runs_tools)
        each = ", ".join(f"{least}: {share:,}" for least, share in measured.longer)
        print(f"after answers {name}: {each}; the session ended: {measured.ends:,}")
    for sheet in SHEETS:
        for policy in ("never", "rent-or-buy"):
            _table(sources, sheet, policy)
    return 0


if __name__ == "__main__":
    sys.exit(main())
