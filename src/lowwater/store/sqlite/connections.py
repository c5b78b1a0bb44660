"""Connections to one SQLite file: opened when needed, used by one thread at a time, never carried into a forked process."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lowwater.errors import LowwaterError, UnusableStore
from lowwater.store.sqlite.address import Sync
from lowwater.store.sqlite.failures import translated
from lowwater.store.sqlite.schema import migrate, refuse_newer

OLDEST = (3, 35, 0)
"""The first SQLite that answers a write with what it wrote."""

PATIENCE = 60.0
"""Seconds to wait for another writer; a commit takes milliseconds, but there may be many in the queue."""

CACHE = 8_000
"""Kilobytes of pages that a connection keeps; the index is merged faster than with the 2,000 that SQLite takes."""


class Connections:
    """Hands out transactions; what fails inside one is rolled back."""

    def __init__(self, path: Path, *, sync: Sync = "full") -> None:
        self.path = path
        self._sync: Sync = sync
        self._idle: list[sqlite3.Connection] = []
        self._inherited: list[sqlite3.Connection] = []
        self._process = os.getpid()
        self._is_closed = False
        refuse_old(sqlite3.sqlite_version_info, path)
        with translated(path):
            _create(path)
            self._idle.append(self._opened())

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one consistent state, whatever others write meanwhile."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Be the only writer until the end, then commit."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            refuse_newer(connection, self.path)
            yield connection

    def empty_log(self) -> None:
        """Give free pages back to the disk and empty the write-ahead log, unless somebody is reading from it."""
        with self._borrowed() as connection:
            connection.execute("PRAGMA incremental_vacuum").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self._is_closed = True
        self._leave_to_parent()
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._borrowed() as connection:
            connection.execute(begin)
            try:
                yield connection
            except LowwaterError:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        if self._is_closed:
            raise UnusableStore(f"the store {self.path} was closed: open it again")
        with translated(self.path):
            connection = self._take()
            try:
                yield connection
            except LowwaterError:
                self._give_back(connection)
                raise
            except BaseException:
                # Closing rolls back, and does so even where ROLLBACK itself would fail.
                connection.close()
                raise
            self._give_back(connection)

    def _take(self) -> sqlite3.Connection:
        self._leave_to_parent()
        try:
            return self._idle.pop()
        except IndexError:
            return self._opened()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        self._idle.append(connection)
        if self._is_closed:
            self.close()

    def _leave_to_parent(self) -> None:
        """SQLite forbids a forked process to use, or even to close, what its parent opened."""
        if self._process != os.getpid():
            self._inherited += self._idle
            self._idle = []
            self._process = os.getpid()

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = _text
        try:
            # Only in a file that has no tables yet: free pages can then be given back to the disk.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA synchronous = {self._sync}")
            connection.execute(f"PRAGMA cache_size = -{CACHE}")
            connection.execute("PRAGMA secure_delete = ON")
            _log_ahead(connection)
            migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection


def refuse_old(version: tuple[int, ...], path: object) -> None:
    """Raise UnusableStore if Python was built with an SQLite of a version that is too old."""
    if version < OLDEST:
        has, needed = (".".join(map(str, numbers)) for numbers in (version, OLDEST))
        raise UnusableStore(
            f"the store {path} needs SQLite {needed} and this Python has {has}: use another Python"
        )


def _text(data: bytes) -> str:
    """Text that is damaged must not keep its whole row from being read."""
    return data.decode(errors="replace")


def _create(path: Path) -> None:
    """Make the file and its folder if need be, for this user only; SQLite gives its log the rights of the file."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, once in a file's life; SQLite does not wait for others there by itself."""
    until = time.monotonic() + PATIENCE
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
