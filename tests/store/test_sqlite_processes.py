import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lowwater.store.sqlite.store import SqliteStore
from lowwater.values.entries import Appended, Checkpointed
from lowwater.values.stored import Stored

WRITER = Path(__file__).with_name("writer.py")


def start(path: Path, name: str, count: int, *sessions: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(WRITER), str(path), name, str(count), *sessions]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def labels(stored: Stored) -> list[str]:
    """The labels of a session's appends; fails if one is there in part."""
    halves = list(zip(stored.entries[::2], stored.entries[1::2], strict=True))
    found = []
    for message, mark in halves:
        assert isinstance(message, Appended)
        assert isinstance(mark, Checkpointed)
        assert message.messages[0].text.startswith(mark.name + " ")
        found.append(mark.name)
    return found


def spin(seconds: float) -> None:
    """Let time pass to the microsecond; a sleep would wake up at the scheduler's moments only."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def killed(process: "subprocess.Popen[str]", dice: random.Random) -> list[str]:
    """Kill a writer somewhere within one of its next appends and return what it said it had committed."""
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(dice.randrange(1, 12))]
    spin(dice.random() * 0.004)
    process.kill()
    told += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    return [line.split()[1] for line in told if line.endswith("\n")]


def killed_again_and_again(path: Path, times: int) -> None:
    dice = random.Random(5)
    committed: list[str] = []
    for life in range(times):
        told = killed(start(path, str(life), 10_000, "s"), dice)
        store = SqliteStore(path)
        stored = store.read("s")
        records = store.records("s")
        store.close()
        kept = labels(stored)
        assert kept[: len(committed)] == committed
        new = kept[len(committed) :]
        assert new[: len(told)] == told
        assert len(new) <= len(told) + 1
        assert [record.decision for record in records] == kept
        assert (stored.record.belief if stored.record else b"") == (kept[-1].encode() if kept else b"")
        committed = kept
    assert len(committed) > times
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    connection.close()


def test_a_writer_killed_twenty_times_loses_nothing_it_had_committed(tmp_path):
    killed_again_and_again(tmp_path / "store.db", 20)


@pytest.mark.full
def test_a_writer_killed_five_hundred_times_loses_nothing_it_had_committed(tmp_path):
    killed_again_and_again(tmp_path / "store.db", 500)


def test_a_writer_killed_while_it_makes_the_store_leaves_one_that_opens(tmp_path):
    dice = random.Random(7)
    for life in range(12):
        path = tmp_path / str(life) / "store.db"
        process = start(path, "w", 10_000, "s")
        while not path.exists():
            pass
        spin(dice.random() * 0.01)
        process.kill()
        process.communicate()
        store = SqliteStore(path)
        version = store.read("s").version
        assert store.append("s", version, [Checkpointed(at=1.0, name="after")]) > version
        store.close()


def test_sixteen_processes_on_eight_sessions_lose_nothing(tmp_path):
    path = tmp_path / "store.db"
    sessions = [f"s{number}" for number in range(8)]
    rounds = 3
    writers = [
        start(path, str(name), rounds, *sessions[name % 8 :], *sessions[: name % 8]) for name in range(16)
    ]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 16
    store = SqliteStore(path)
    for session in sessions:
        kept = labels(store.read(session))
        assert len(kept) == len(set(kept)) == 16 * rounds
        for name in range(16):
            mine = [label for label in kept if label.startswith(f"{name}:")]
            assert mine == [f"{name}:{number}" for number in range(rounds)]
    store.close()
