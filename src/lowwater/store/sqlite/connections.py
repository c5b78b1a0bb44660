"""Connections to one SQLite file: opened when needed, used by one thread at a time, never carried into a forked process.

**The log belongs to the file.** SQLite commits into a second file, `PATH-wal`, and moves that into the first from time to time; it
takes a missing log for an empty one. So a file that was copied or moved without its log opens without its newest commits, and
nobody is told. To notice it, the file itself says whether there may be commits in the log (`counters.in_log`):

- The first append after a clean end sets it, and has the log moved into the file before it returns.
- Whoever closes the store clears it. SQLite moves its log in order, so that a file that says 0 has everything before that.
- A file that says 1 and has no log beside it is refused with a sentence. A process that was killed leaves its log behind, and
  whoever comes next reads it as ever.

An append makes sure, too, that the file is still the one that was opened: what is written to a deleted file is gone.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from lowwater.errors import BadInput, LowwaterError, UnusableStore
from lowwater.store.sqlite.address import Sync
from lowwater.store.sqlite.failures import translated
from lowwater.store.sqlite.schema import migrate, refuse_newer

OLDEST = (3, 35, 0)
"""The first SQLite that answers a write with what it wrote."""

PATIENCE = 60.0
"""Seconds to wait for another writer; a commit takes milliseconds, but there may be many in the queue."""

BACKUP_PAGES = 1_000
"""Pages of a copy that are written at a time; others may write in between, and what they change is copied again."""

CACHE = 8_000
"""Kilobytes of pages that a connection keeps; the index is merged faster than with the 2,000 that SQLite takes."""


class Connections:
    """Hands out transactions; what fails inside one is rolled back."""

    def __init__(self, path: Path, *, sync: Sync = "full") -> None:
        self.path = path
        self._sync: Sync = sync
        self._idle: list[_Connection] = []
        self._inherited: list[_Connection] = []
        self._process = os.getpid()
        self._is_closed = False
        refuse_old(sqlite3.sqlite_version_info, path)
        with translated(path):
            _create(path)
            refuse_without_log(path)
            self._idle.append(self._opened())
        # A program that just ends lets Python close its connections, and SQLite then removes the log.
        self._at_exit = weakref.finalize(self, _settle, self._idle, self._process, path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one consistent state, whatever others write meanwhile."""
        with self._borrowed() as borrowed, _transaction(borrowed, "BEGIN"):
            yield borrowed

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Be the only writer until the end, then commit."""
        with self._borrowed() as borrowed:
            with _transaction(borrowed, "BEGIN IMMEDIATE"):
                borrowed.refuse_replaced(self.path)
                refuse_newer(borrowed, self.path)
                is_marked = borrowed.execute("SELECT in_log FROM counters").fetchone()[0]
                if not is_marked:
                    borrowed.execute("UPDATE counters SET in_log = 1")
                yield borrowed
            if not is_marked:
                borrowed.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def empty_log(self) -> None:
        """Give free pages back to the disk and empty the write-ahead log, unless somebody is reading from it."""
        with self._borrowed() as connection:
            connection.execute("PRAGMA incremental_vacuum").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self._is_closed = True
        self._leave_to_parent()
        _settle(self._idle, self._process, self.path)

    def backup(self, to: Path) -> None:
        """Write a copy of the whole store, as of one moment, into a file that does not exist yet; others may go on writing."""
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.close(os.open(to, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise BadInput(f"there is a file {to} already: choose another name for the copy") from None
        with (
            self._borrowed() as connection,
            translated(to),
            closing(sqlite3.connect(to, isolation_level=None)) as copy,
        ):
            try:
                connection.backup(copy, pages=BACKUP_PAGES, sleep=0.01)
                # The copy is whole in one file: it has no log.
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()
                copy.execute("UPDATE counters SET in_log = 0")
                copy.execute("PRAGMA journal_mode = WAL").fetchall()
            except BaseException:
                to.unlink(missing_ok=True)
                raise

    @contextmanager
    def _borrowed(self) -> Iterator["_Connection"]:
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
                _settle([connection], self._process, self.path)
                raise
            self._give_back(connection)

    def _take(self) -> "_Connection":
        self._leave_to_parent()
        try:
            return self._idle.pop()
        except IndexError:
            return self._opened()

    def _give_back(self, connection: "_Connection") -> None:
        self._idle.append(connection)
        if self._is_closed:
            self.close()

    def _leave_to_parent(self) -> None:
        """SQLite forbids a forked process to use, or even to close, what its parent opened."""
        if self._process != os.getpid():
            self._inherited += self._idle
            self._idle = []
            self._process = os.getpid()
            self._at_exit = weakref.finalize(self, _settle, self._idle, self._process, self.path)

    def _opened(self) -> "_Connection":
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, factory=_Connection
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
            connection.files = _files(self.path)
        except BaseException:
            connection.close()
            raise
        return connection


class _Connection(sqlite3.Connection):
    """A connection that knows which files it was opened on."""

    files: tuple[tuple[int, int] | None, ...] = ()

    def refuse_replaced(self, path: Path) -> None:
        """Raise UnusableStore if the file or its log is not the one that was opened."""
        if self.files and _files(path) != self.files:
            gone = path if _files(path)[0] != self.files[0] else log_of(path)
            raise UnusableStore(
                f"the store {path} cannot be written: {gone} was deleted or replaced while it was open; open the store again"
            )


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
    except LowwaterError:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _settle(idle: list[_Connection], process: int, path: Path) -> None:
    """Close connections; the file says before that no commit is in the log only, for SQLite may now move it and remove it."""
    if process != os.getpid():
        return  # SQLite forbids a forked process even to close what its parent opened.
    while idle:
        connection = idle.pop()
        is_settled = bool(idle) or _clear_mark(connection)
        connection.close()
        if not is_settled and path.exists() and not log_of(path).exists():
            # SQLite moved the whole log into the file and removed it, though the file could not be marked: an empty log says so.
            with suppress(OSError):
                os.close(os.open(log_of(path), os.O_WRONLY | os.O_CREAT, 0o600))


def _clear_mark(connection: sqlite3.Connection) -> bool:
    """Return whether the file says that no commit is in its log only."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("PRAGMA busy_timeout = 1000").fetchall()
        connection.execute("UPDATE counters SET in_log = 0 WHERE in_log")
    except sqlite3.Error:
        return False  # somebody else is writing, or the disk is full
    return True


def _files(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Return what tells the file and its log from others of the same names; None for one that is not there."""
    return _identity(path), _identity(log_of(path))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def log_of(path: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a file."""
    return path.with_name(path.name + "-wal")


def refuse_without_log(path: Path) -> None:
    """Raise UnusableStore if the file says that there are commits in its log, and there is no log."""
    log = log_of(path)
    if log.exists() or not path.stat().st_size:
        return
    # `immutable` looks at the file alone; an ordinary connection would make an empty log, and the next one believe it.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as connection:
        try:
            is_marked = connection.execute("SELECT in_log FROM counters").fetchone()[0]
        except sqlite3.OperationalError:
            return  # an older schema, or no store at all: said elsewhere
    if is_marked and not log.exists():
        raise UnusableStore(
            f"the newest commits of the store {path} are in {log.name}, which is missing: put it back beside the file; "
            f"if it is lost, `lowwater sessions salvage NEW.db --store sqlite:///{path}` writes what the file holds into a new store"
        )


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
    # Not opened if it is there: closing it would take away the locks that another store of this process has on it.
    if not (path.is_file() and os.access(path, os.R_OK | os.W_OK)):
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
