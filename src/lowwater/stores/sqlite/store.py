"""The store in one SQLite file: `sqlite:///PATH`."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from lowwater.core.stored import Hit
from lowwater.stores.addresses import Sync
from lowwater.stores.shared import Conceal, conceal_nothing
from lowwater.stores.sql import SqlStore
from lowwater.stores.sqlite.connections import SqliteConnections
from lowwater.stores.sqlite.queries import CAUGHT_UP_AT_ONCE, SESSIONS_PER_DELETE, SqliteQueries

_log = logging.getLogger("lowwater")
Result = TypeVar("Result")


class SqliteStore(SqlStore[SqliteQueries]):
    """Keeps sessions in a file that any number of threads and processes may have open.

    A missing file is created, readable for this user only.
    """

    def __init__(self, path: Path, *, conceal: Conceal = conceal_nothing, sync: Sync = "full") -> None:
        super().__init__(path, conceal)
        self._connections = SqliteConnections(path, sync=sync)

    @contextmanager
    def _reading(self) -> Iterator[SqliteQueries]:
        with self._connections.reading() as connection:
            yield SqliteQueries(connection)

    def _write(self, work: Callable[[SqliteQueries], Result]) -> Result:
        with self._connections.writing() as connection:
            return work(SqliteQueries(connection))

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions; their bytes are overwritten in the file, and in the log unless somebody is reading from it."""
        names = (session, *others)
        deleted = sum(
            self._delete_some(names[start : start + SESSIONS_PER_DELETE])
            for start in range(0, len(names), SESSIONS_PER_DELETE)
        )
        if deleted:
            self._connections.empty_log()
        return deleted > 0

    def _delete_some(self, sessions: Sequence[str]) -> int:
        return self._write(lambda queries: queries.delete(sessions))

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best, of all that were there when it was called."""
        with self._reading() as queries:
            behind = queries.unindexed()
        if behind > CAUGHT_UP_AT_ONCE:
            _log.info("%s: indexing %s messages for search", self._connections.path, f"{behind:,}")
        # In several transactions, so that other writers do not wait long.
        for _ in range(-(-behind // CAUGHT_UP_AT_ONCE)):
            self._write(lambda queries: queries.index_new_messages(self._conceal))
        with self._reading() as queries:
            return queries.search(words, session, limit)

    def backup(self, to: Path) -> None:
        """Write a copy of the whole store into a file that does not exist yet, or raise BadInput; others may go on writing."""
        self._connections.backup(to)

    def adopt(self, secret: bytes, trails: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Take over from another file what the gateway recognises sessions by: its secret, and its fingerprints by session."""
        self._write(lambda queries: queries.adopt(secret, trails))

    def close(self) -> None:
        """Close the file."""
        self._connections.close()
