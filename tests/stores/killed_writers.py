"""Writers that are killed, and writers that share sessions; any store that other processes can open by its address."""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lowwater.core.entries import Appended, Compacted, SummarizedSpan
from lowwater.core.stored import Account, Stored
from lowwater.session.factories import open_store

WRITER = Path(__file__).with_name("writer.py")


LIVES_OF_A_SESSION = 50
"""After so many kills the writers go on with another session: each is read whole after every kill."""


def start(address: str, name: str, count: int, *sessions: str) -> "subprocess.Popen[str]":
    """A process that appends `count` times to each session and tells each commit."""
    command = [sys.executable, str(WRITER), address, name, str(count), *sessions]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def labels(stored: Stored) -> list[str]:
    """The labels of a session's appends; fails if one is there in part."""
    halves = list(zip(stored.entries[::2], stored.entries[1::2], strict=True))
    found = []
    for message, compacted in halves:
        assert isinstance(message, Appended)
        assert isinstance(compacted, Compacted)
        (summary,) = compacted.items
        assert isinstance(summary, SummarizedSpan)
        assert message.messages[0].text.startswith(summary.text + " ")
        found.append(summary.text)
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


def survives_kills(address: str, times: int, settle: Callable[[], None] = lambda: None) -> None:
    """Each time a writer is killed the store opens, has all that was committed, and nothing in part.

    `settle` waits until what the dead writer had asked a server for is over.
    """
    dice = random.Random(5)
    committed: dict[str, list[str]] = {}
    for life in range(times):
        session = f"s{life // LIVES_OF_A_SESSION}"
        told = killed(start(address, str(life), 10_000, session), dice)
        settle()
        store = open_store(address)
        stored, outline = store.read(session), store.outline(session)
        accounts = store.accounts([session])
        # What comes behind the best hit has some of the words only.
        hits = [hit.number for last in told[-1:] for hit in store.search(last, session=session, limit=1)]
        store.close()
        kept, before = labels(stored), committed.get(session, [])
        new = kept[len(before) :]
        assert kept[: len(before)] == before
        assert new[: len(told)] == told
        assert len(new) <= len(told) + 1
        assert hits[:1] == [kept.index(label) + 1 for label in told[-1:]]
        assert (outline.messages, outline.entries) == (len(kept), 2 * len(kept))
        assert stored.carried == (kept[-1].encode() if kept else b"")
        assert [_told_by(account) for account in accounts] == ([(kept, kept)] if kept else [])
        committed[session] = kept
    store = open_store(address)
    assert {session: labels(store.read(session)) for session in committed} == committed
    store.close()
    assert sum(map(len, committed.values())) > times


def _told_by(account: Account) -> tuple[list[str], list[str]]:
    return (
        [record.decision for record in account.records],
        [event.because.code for event in account.events],
    )


def shared_by_processes(address: str, *, processes: int = 16, sessions: int = 8, rounds: int = 3) -> None:
    """Processes that append to the same sessions at once lose nothing, and each finds its own in order."""
    names = [f"s{number}" for number in range(sessions)]
    writers = [
        start(address, str(writer), rounds, *names[writer % sessions :], *names[: writer % sessions])
        for writer in range(processes)
    ]
    for running in writers:
        running.communicate()
    assert [running.returncode for running in writers] == [0] * processes
    store = open_store(address)
    for session in names:
        kept = labels(store.read(session))
        assert len(kept) == len(set(kept)) == processes * rounds
        assert [_told_by(account) for account in store.accounts([session])] == [(kept, kept)]
        for writer in range(processes):
            mine = [label for label in kept if label.startswith(f"{writer}:")]
            assert mine == [f"{writer}:{number}" for number in range(rounds)]
    assert [one.messages for one in store.sessions()] == [processes * rounds] * sessions
    store.close()
