"""Recorded sessions sampled at random over their sources, the same every time, without reading those that are not needed."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench.transcripts import CANONICAL
from lowwater.errors import BadInput
from lowwater.lab.replay.script import ReplayScript, script_of
from lowwater.logs.importers import recordings

SEED = 20261119


def sampled(count: int, *, least_calls: int) -> Iterator[tuple[str, ReplayScript]]:
    """Yield so many sessions with times and at least so many calls, each with its source; the sources take turns."""
    random = Random(SEED)
    waiting = {
        folder.name: random.sample(files, len(files))
        for folder in sorted(CANONICAL.iterdir())
        if (files := sorted(folder.glob("*.jsonl.gz")))
    }
    while count and any(waiting.values()):
        for source in sorted(waiting):
            script = _next(waiting[source], least_calls)
            if script is not None and count:
                count -= 1
                yield source, script


def _next(files: list[Path], least_calls: int) -> ReplayScript | None:
    """Return the first session of these files that will do, and take the files that were looked at from the list."""
    while files:
        for recording in recordings([files.pop()]):
            try:
                script = script_of(recording)
            except BadInput:
                continue
            if not script.lacks_times and len(script.exchanges) >= least_calls:
                return script
    return None
