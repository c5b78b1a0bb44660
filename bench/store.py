"""The store beside Hermes' own, and what a long history costs a stored session.

    .venv/bin/python -m bench.store                    # all of it, some ten minutes
    .venv/bin/python -m bench.store again turns        # or some: insertion again turns

Hermes is installed into an environment of its own (`bench/.envs/hermes`) on first use. The command ends with status 1 if a
figure misses its bound.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from itertools import chain, islice
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from bench import long_sessions
from bench.insertion import MARK, ByHermes, ByNothing, BySession, ByStore, Messages, Way, insert
from bench.insertion_table import COUNT, Compared, as_used, beyond, cpu, linear, table
from bench.peers.environment import Unavailable
from bench.peers.hermes_store import HermesStore
from bench.transcripts import CANONICAL, sessions
from lowwater.core.formats.codec import encode_messages
from tests.generated import generate_session

FASTER, FASTER_REDACTING, FLAT = 3.0, 2.0, 2.0
"""How many times as fast as Hermes: doing the same, and looking for secrets besides, which Hermes does not."""
DISK, MEMORY = Path(tempfile.gettempdir()), Path("/dev/shm")


class Place(Struct, frozen=True, kw_only=True):
    """Where the files are, and how often everything is done there."""

    name: str
    folder: Path
    rounds: int
    waits: bool
    """Whether a commit waits for a disk."""


PLACES = (
    Place(name="on the disk", folder=DISK, rounds=2, waits=True),
    Place(name="in memory (/dev/shm), the same calls without the wait", folder=MEMORY, rounds=3, waits=False),
)


@cache
def generated(count: int = COUNT) -> bytes:
    """Return messages of a coding session, as a JSON list whose last message has a word of its own."""
    raws = generate_session("coding", seed=1, turns=count * 6 // 10).as_openai_chat()
    return _ended(raws[: count - 1])


@cache
def recorded(count: int = COUNT) -> bytes:
    """Return messages of recorded sessions likewise."""
    messages = chain.from_iterable((each.message for each in session.messages) for session in sessions())
    return _ended(encode_messages(list(islice(messages, count - 1)), "openai_chat"))


def _ended(raws: Sequence[bytes]) -> bytes:
    last = msgspec.json.encode({"role": "user", "content": f"Now the {MARK} one."})
    return b"[%s]" % b",".join([*raws, last])


def compare(messages: Messages, place: Place, rounds: int) -> Compared:
    """Put the messages into Hermes' store and into ours by every way."""
    count = len(messages)
    with HermesStore(messages) as hermes, HermesStore(messages) as quick, HermesStore(messages) as other:
        ways: list[Way] = [
            ByHermes(hermes, count),
            ByStore(messages),
            ByStore(messages, redacts=False),
            BySession(messages),
            ByNothing(messages),
            ByHermes(quick, count, sync="normal"),
            ByStore(messages, sync="normal"),
            ByHermes(other, count, at_once=True),
            ByStore(messages, at_once=True),
            ByStore(messages, at_once=True, redacts=False),
            BySession(messages, at_once=True),
        ]
        done = [insert(ways, count, place.folder) for _ in range(rounds)]
        return Compared(ways=ways, rounds=done)


def insertion() -> list[str]:
    """Print Hermes' store beside ours; return what missed its bound."""
    missed: list[str] = []
    named = [("generated", generated)] + ([("recorded", recorded)] if CANONICAL.is_dir() else [])
    for name, make in named:
        raw = make()
        for place in PLACES:
            if not place.folder.is_dir():
                continue
            rounds = place.rounds if name == "generated" else max(1, place.rounds // 2)
            compared = compare(msgspec.json.decode(raw), place, rounds)
            title = f"{COUNT:,} {name} messages of {len(raw) / 1e6:.1f} MB, {place.name}"
            told = [*table(compared, title), linear(compared), as_used(compared), beyond(compared), ""]
            print("\n".join(told), flush=True)
            missed += bounds(compared, title, place)
    return missed


def bounds(compared: Compared, title: str, place: Place) -> Iterable[str]:
    """Yield what misses its bound: the work of the store beside that of Hermes' store.

    It is CPU time, for the clock tells what else the machine does. Where each message waits for the disk, which costs all
    the same, it is what they do beyond a row and a commit.
    """
    for at, way in enumerate(compared.ways):
        if not isinstance(way, ByStore):
            continue
        is_awaited = place.waits and not way.at_once and way.sync == "full"
        faster = median((compared.faster_beyond if is_awaited else compared.faster)(at, cpu))
        if faster < (FASTER_REDACTING if way.redacts else FASTER):
            yield f"{way.name}: {faster:.2f} times as fast as Hermes, {title}"


class Indexed(Struct, frozen=True, kw_only=True):
    """How much a file holds, read without the library."""

    contents: int
    rows: int
    index_bytes: int

    @staticmethod
    def in_file(path: Path) -> "Indexed":
        """Look into a store's file."""
        with closing(sqlite3.connect(path)) as connection:
            (contents,) = connection.execute("SELECT count(*) FROM contents").fetchone()
            (rows,) = connection.execute("SELECT count(*) FROM search_docsize").fetchone()
            (size,) = connection.execute("SELECT sum(length(block)) FROM search_data").fetchone()
        return Indexed(contents=contents, rows=rows, index_bytes=size)


def again() -> list[str]:
    """Print what the same messages cost in a second session of one store; return what missed its bound."""
    way = ByStore(msgspec.json.decode(generated()))
    folder = MEMORY if MEMORY.is_dir() else DISK
    with tempfile.TemporaryDirectory(dir=folder, prefix="lowwater-bench-") as inside:
        path = Path(inside) / "twice.db"
        way.open(path)
        once = way.insert(0, COUNT)
        way.index()
        first = Indexed.in_file(path)
        way.begin("again")
        twice = way.insert(0, COUNT)
        way.index()
        second = Indexed.in_file(path)
        way.close()
    print(
        f"The same {COUNT:,} messages in a second session: {twice.cpu / once.cpu:.2f} of the time; contents "
        f"{first.contents:,} → {second.contents:,}, messages in the index {first.rows:,} → {second.rows:,}, its bytes "
        f"{first.index_bytes:,} → {second.index_bytes:,}.\n",
        flush=True,
    )
    return [] if first == second else ["unchanged text was indexed again"]


def turns() -> list[str]:
    """Print one turn on short and long histories, and one compaction; return what missed its bound."""
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="lowwater-bench-") as folder:
        histories = [long_sessions.build(length, Path(folder)) for length in long_sessions.LENGTHS]
        taken = long_sessions.turns(histories, rounds=30)
        shortest = taken[0].usual
        print("| history | file | one turn, wall | CPU | ÷ shortest, wall | CPU | first turn, CPU |")
        print("|---|---|---|---|---|---|---|")
        for each in taken:
            usual = each.usual
            print(
                f"| {each.history.length:,} messages | {each.history.path.stat().st_size / 1e6:.0f} MB | "
                f"{usual.wall * 1e3:.0f} ms | {usual.cpu * 1e3:.1f} ms | {usual.wall / shortest.wall:.2f} | "
                f"{usual.cpu / shortest.cpu:.2f} | {each.first.cpu * 1e3:.1f} ms |"
            )
            if usual.cpu > FLAT * shortest.cpu:
                missed.append(
                    f"a turn after {each.history.length:,} messages takes more than {FLAT:g} times as long"
                )
        done = long_sessions.commits(histories[-1], rounds=50)
    ratio = done.compaction.cpu / done.message.cpu
    print(
        f"\nCommitting a compaction of {done.stood_for:,} messages takes {done.compaction.wall / done.message.wall:.2f} "
        f"times the wall time and {ratio:.2f} times the CPU time of committing one message "
        f"({done.message.wall * 1e3:.1f} ms, {done.message.cpu * 1e3:.2f} ms).",
        flush=True,
    )
    if ratio > FLAT:
        missed.append(f"a compaction commits in more than {FLAT:g} times the time of a message")
    return missed


PARTS = {"insertion": insertion, "again": again, "turns": turns}


def main(arguments: Sequence[str] = ()) -> int:
    missed: list[str] = []
    for name in arguments or PARTS:
        try:
            missed += PARTS[name]()
        except Unavailable as reason:
            print(f"Hermes is not compared: {reason}\n")
    print("\n".join(f"MISSED: {bound}" for bound in missed))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
