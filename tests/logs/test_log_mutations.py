"""Mistakes in logs of every format go through audit, replay, inspect, explain and compress: no error but a documented one."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from bench.every_log import try_file
from lowwater.logs.importers import Skipped, files_in, recordings
from tests.logs.log_mutations import MADE, beginning, mutations, recorded

EACH = 120
"""Mistakes in each log."""
RECORDED = recorded()


def tried(log: Path, *, seed: str) -> Counter[str]:
    """Return how many inputs there were and what became of them, or fail with every one that showed a defect."""
    became: Counter[str] = Counter()
    defects: list[str] = []
    known: set[str] = set()
    for what in mutations(log, Random(seed), EACH):
        became["inputs"] += 1
        for file in files_in([log]):
            found = try_file(str(file), known=known)
            became["sessions"] += len(found.agents)
            became["skipped"] += len(found.stopped)
            defects += [
                f"{what}: {one.command}: {one.why}"
                for one in (*found.stopped, *found.unread)
                if one.is_defect
            ]
    became["played"] = len(known)
    assert not defects, "\n".join(defects[:20])
    return became


def told(name: str, became: Counter[str], record_property) -> None:
    said = ", ".join(f"{count:,} {what}" for what, count in became.items())
    record_property(name, said)
    print(f"{name}: {said}")  # noqa: T201 - how much was tried is part of the result
    assert became["inputs"] == EACH


@pytest.mark.full
@pytest.mark.parametrize("name", MADE)
def test_a_mistake_in_a_log_is_never_a_crash(name, tmp_path, record_property):
    log = MADE[name](tmp_path)
    assert any(each.messages for each in recordings([log])), "without a mistake it holds a session"
    told(name, tried(log, seed=f"made {name}"), record_property)


@pytest.mark.full
@pytest.mark.skipif(not RECORDED, reason="no recorded sessions on this machine")
@pytest.mark.parametrize("name", RECORDED)
def test_a_mistake_in_a_recorded_log_is_never_a_crash(name, tmp_path, record_property):
    log = beginning(RECORDED[name], tmp_path)
    told(name, tried(log, seed=f"recorded {name}"), record_property)


@pytest.mark.parametrize("name", MADE)
def test_no_mistake_in_a_log_stops_its_reading(name, tmp_path):
    log, skipped = MADE[name](tmp_path), list[Skipped]()
    read = sum(
        len(list(recordings([log], on_skipped=skipped.append)))
        for _ in mutations(log, Random(f"read {name}"), 25)
    )
    assert read > 12, "most mistakes cost a line, and not the session"


def test_a_few_mistakes_in_one_log_are_tried_every_time(tmp_path):
    log = MADE["claude-code"](tmp_path)
    for what in mutations(log, Random("a few"), 8):
        found = try_file(str(log))
        assert not [one for one in (*found.stopped, *found.unread) if one.is_defect], what
