"""How long the pauses between calls are, and what each cache lifetime costs on recorded sessions, uncompacted.

    .venv/bin/python -m bench.lifetimes

`auto` is the engine's rule (`core/cache/marks.py`); what it takes for general is measured on the other sources.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.cache.marks import PAUSES, WINDOW, Lifetime, Pauses, settle_ttl
from lowwater.core.costs.prices import cost_of
from lowwater.core.models.model import Model
from lowwater.errors import BadInput
from lowwater.lab.course import Course
from lowwater.lab.replay.script import course_for, model_named, script_of
from lowwater.logs.importers import recordings

SHEETS = ("anthropic-r10", "anthropic-r05")
LEAST_CALLS = 5


class Paused(Struct, frozen=True, kw_only=True):
    """One session: the seconds before each call after the first, and the size of each prompt."""

    gaps: tuple[float, ...]
    prompts: tuple[int, ...]


def paused(course: Course) -> Paused:
    """Return a course's pauses and uncompacted prompts."""
    prompts, size = list[int](), course.fixed
    for turn in course.turns:
        size += turn.text + turn.results
        prompts.append(size)
    return Paused(gaps=tuple(turn.gap for turn in course.turns[1:]), prompts=tuple(prompts))


def pauses_of(sessions: Sequence[Paused]) -> Pauses:
    """Return how many of a thousand gaps are longer than each of the rule's points."""
    gaps = [gap for session in sessions for gap in session.gaps]
    return tuple(
        (least, round(1_000 * sum(gap > least for gap in gaps) / max(1, len(gaps)))) for least, _ in PAUSES
    )


def cost(session: Paused, model: Model, *, lifetime: Lifetime | None, pauses: Pauses) -> int:
    """Return what the session's prompts cost with one lifetime, or with that of the rule if there is none."""
    rules, prices = model.cache, model.prices
    assert prices is not None
    assert rules.ttl is not None
    assert rules.ttl_long is not None
    before: Lifetime | None = None
    total = 0
    for call, prompt in enumerate(session.prompts):
        gaps = session.gaps[max(0, call - WINDOW) : call]
        growth = max(1, (prompt - session.prompts[0]) // max(1, call))
        now = lifetime or settle_ttl(
            gaps, prices, rules, prompt=prompt, growth=growth, pauses=pauses, now=before
        )
        lives = rules.ttl_long if now == "long" else rules.ttl
        hit = session.prompts[call - 1] if call and now == before and gaps[-1] <= lives else 0
        written = prompt - hit
        usage = Usage(
            cache_read=hit,
            cache_write=written if now == "short" else 0,
            cache_write_long=written if now == "long" else 0,
        )
        total += cost_of(usage, model) or 0
        before = now
    return total


def main() -> int:
    """Print the pauses, and a table by price sheet."""
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    by_source: dict[str, list[Paused]] = defaultdict(list)
    for recording in recordings([CANONICAL]):
        try:
            script = script_of(recording)
        except BadInput:
            continue
        if not script.lacks_times and len(script.exchanges) >= LEAST_CALLS:
            model = model_named(SHEETS[0], load_registry()).name
            course = course_for(script, (), model=model, recorded=recording.model or model)
            by_source[Path(recording.path).parent.name].append(paused(course))
    everything = [session for sessions in by_source.values() for session in sessions]
    gaps = sum(len(session.gaps) for session in everything)
    print(f"{gaps:,} gaps of {len(everything)} sessions; of a thousand, longer than so many seconds:")
    print(", ".join(f"{least}: {share}" for least, share in pauses_of(everything)))
    for sheet in SHEETS:
        priced = model_named(sheet, load_registry())
        print(f"\n| {sheet} | sessions | 5m | 1h | auto |\n|---|---|---|---|---|")
        for source, sessions in by_source.items():
            others = [each for name, rest in by_source.items() if name != source for each in rest]
            kinds: tuple[Lifetime | None, ...] = ("short", "long", None)
            found = [
                sum(cost(each, priced, lifetime=kind, pauses=pauses_of(others)) for each in sessions)
                for kind in kinds
            ]
            row = " | ".join(f"{each / found[0]:.3f}" for each in found)
            print(f"| {source} | {len(sessions)} | {row} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
