"""The ways to put a list of messages into a store, Hermes' and ours, one after the other in small steps.

A disk is not always equally fast, so the stores take turns: a few hundred messages each. What counts as done is the same for all:
every message is committed, is found by its words, and the file is closed. A commit outlives a loss of power (`full`, as Hermes
and this library ship) or the process only (`normal`); each is compared with its like. Beside them stands what no store can do
without: SQLite itself, one row in one table and one commit for each message, which nobody can search.
"""

import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from bench.peers.hermes_store import HermesStore
from bench.peers.took import Took, timed
from lowwater import Lowwater, Session
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.entries import Appended
from lowwater.core.formats.codec import decode_messages, raw_messages
from lowwater.core.stored import Append
from lowwater.core.tokens.counting import count_message
from lowwater.protocols import Store
from lowwater.session.factories import resolve_store
from lowwater.settings import OutputSettings, Settings
from lowwater.stores.addresses import Sync

Messages = list[dict[str, Any]]
STEP = 500
MARK = "quincunxial"
"""A word that only the last message has."""
SESSION = "bench"
QUIET = Settings(output=OutputSettings(quiet=True))


class Way(Protocol):
    """Puts messages into a store of its own."""

    name: str
    at_once: bool
    """It takes the whole list in one call."""
    sync: Sync
    """What a commit outlives."""

    def open(self, path: Path) -> None:
        """Begin a new store."""
        ...

    def insert(self, start: int, end: int) -> Took:
        """Insert these messages."""
        ...

    def finish(self) -> Took:
        """Leave them stored and indexed in a closed file, or fail."""
        ...


class ByHermes:
    """Hermes' `append_message` for each message, or its `replace_messages` for all."""

    def __init__(
        self, hermes: HermesStore, count: int, *, at_once: bool = False, sync: Sync = "full"
    ) -> None:
        self.name = named("Hermes `replace_messages(list)`" if at_once else "Hermes `append_message`", sync)
        self.at_once, self.sync = at_once, sync
        self._hermes = hermes
        self._count = count

    def open(self, path: Path) -> None:
        """Begin a new store."""
        settled = self._hermes.open(path, "" if self.sync == "full" else self.sync)
        assert settled.pragmas["synchronous"] == {"normal": 1, "full": 2}[self.sync], settled

    def insert(self, start: int, end: int) -> Took:
        """Insert these messages."""
        return self._hermes.replace() if self.at_once else self._hermes.append(start, end)

    def finish(self) -> Took:
        """Close the file; the last message is found by its word, but Hermes need not search to have it indexed."""
        found = self._hermes.find(MARK)
        assert (found.found, found.messages) == (1, self._count), found
        return self._hermes.close()


class ByStore:
    """`store.append` of one message at a time, or of all; they are decoded and counted before."""

    def __init__(
        self, messages: Messages, *, at_once: bool = False, sync: Sync = "full", redacts: bool = True
    ) -> None:
        name = named("`store.append(list)`" if at_once else "`store.append`", sync)
        self.name = name if redacts else f"{name}, no redaction"
        self.at_once, self.sync, self.redacts = at_once, sync, redacts
        tokenizer = tokenizer_for("o200k")
        self._messages = decode_messages(raw_messages(messages), "openai_chat")
        self._sizes = [count_message(message, tokenizer) for message in self._messages]

    def open(self, path: Path) -> None:
        """Begin a new store; as a user has it, no secrets are in its index, where Hermes leaves them."""
        self._store = resolve_store(f"sqlite:///{path}?sync={self.sync}", redact=self.redacts)
        self.begin(SESSION)

    def begin(self, session: str) -> None:
        """Begin another session in the store that is open."""
        self._session = session
        self._version = 0

    def insert(self, start: int, end: int) -> Took:
        """Append them, each in a transaction or all in one."""
        step = end - start if self.at_once else 1

        def append() -> None:
            for at in range(start, end, step):
                self._append(at, at + step)

        return timed(append)

    def finish(self) -> Took:
        """Have everything indexed and close the file."""
        return self.index() + timed(self.close)

    def index(self) -> Took:
        """Search, which has indexed what was not yet."""
        return timed(lambda: search(self._store, self._session, len(self._messages)))

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _append(self, start: int, end: int) -> None:
        entry = Appended(
            at=float(start),
            messages=tuple(self._messages[start:end]),
            tokens=tuple(self._sizes[start:end]),
        )
        self._version = self._store.append(self._session, self._version, Append(entries=(entry,)))


class BySession:
    """`session.append` of one message at a time, or of all; reading and counting them is part of it."""

    sync: Sync = "full"

    def __init__(self, messages: Messages, *, at_once: bool = False) -> None:
        self.name = "`session.append(list)`" if at_once else "`session.append`"
        self.at_once = at_once
        self._messages = messages

    def open(self, path: Path) -> None:
        """Begin a new store with one session."""
        self._keeper = Lowwater(model="gpt-5-mini", settings=QUIET, store=f"sqlite:///{path}")
        self._session: Session = self._keeper.session(SESSION)

    def insert(self, start: int, end: int) -> Took:
        """Append them, one by one or the list."""
        wanted = self._messages[start:end]

        def append() -> None:
            for given in [wanted] if self.at_once else wanted:
                self._session.append(given)

        return timed(append)

    def finish(self) -> Took:
        """Have everything indexed and close the file."""
        searched = timed(lambda: search(self._keeper.store, SESSION, len(self._messages)))
        return searched + timed(self._keeper.close)


class ByNothing:
    """SQLite alone: each message is one row of one table and one commit, without an index."""

    name = "a row and a commit, no more"
    at_once = False
    sync: Sync = "full"

    def __init__(self, messages: Messages) -> None:
        self._rows = [(msgspec.json.encode(message),) for message in messages]

    def open(self, path: Path) -> None:
        """Begin a new file with the settings of both stores."""
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE rows (body BLOB NOT NULL)")

    def insert(self, start: int, end: int) -> Took:
        """Insert them, each in a transaction."""

        def append() -> None:
            for row in self._rows[start:end]:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.execute("INSERT INTO rows (body) VALUES (?)", row)
                self._connection.execute("COMMIT")

        return timed(append)

    def finish(self) -> Took:
        """Close the file."""
        return timed(self._connection.close)


def named(name: str, sync: Sync) -> str:
    """Return the name of a way, and what its commits outlive if that is less than usual."""
    return name if sync == "full" else f"{name}, sync={sync}"


def search(store: Store, session: str, count: int) -> None:
    """Find the last of `count` messages by its word; what waited to be indexed is indexed then."""
    hits = store.search(MARK, session=session)
    assert [hit.number for hit in hits] == [count], hits


class Inserted(Struct, frozen=True, kw_only=True):
    """One list put into one store: the time of each step, the last one being to finish, and the bytes of the file."""

    steps: list[Took]
    size: int

    @property
    def whole(self) -> Took:
        """All of it."""
        return sum(self.steps, Took())

    def first(self, messages: int) -> Took:
        """The time of so many messages."""
        return sum(self.steps[: messages // STEP], Took())


def insert(ways: Sequence[Way], count: int, folder: Path) -> list[Inserted]:
    """Put `count` messages into a new store by each way, in turns."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="lowwater-bench-") as inside:
        files = [Path(inside) / f"{number}.db" for number in range(len(ways))]
        steps: list[list[Took]] = [[] for _ in ways]
        for way, file in zip(ways, files, strict=True):
            way.open(file)
        for start in range(0, count, STEP):
            for way, taken in zip(ways, steps, strict=True):
                if not way.at_once:
                    taken.append(way.insert(start, min(start + STEP, count)))
                elif not start:
                    taken.append(way.insert(0, count))
        for way, taken in zip(ways, steps, strict=True):
            taken.append(way.finish())
        return [
            Inserted(steps=taken, size=file.stat().st_size) for taken, file in zip(steps, files, strict=True)
        ]
