"""One SQLite file: its address, its schema and migrations, transactions on it, and SQLite's errors as ours.

The file runs in write-ahead-log mode, so its newest commits may be in FILE-wal only. `counters.in_log` says whether they
may be: a copy of the file without its log is then refused, instead of silently losing those commits.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from lowwater.errors import BadInput, DamagedStore, LowwaterError, NewerSchema, UnusableStore
from lowwater.stores.addresses import Sync

# The address

# Transactions

PATIENCE = 60.0
"""Seconds to wait for another writer; a commit takes milliseconds, but there may be many in the queue."""
CACHE = 8_000
"""Kilobytes of pages that a connection caches; merging the index is faster than with SQLite's default of 2,000."""
BACKUP_PAGES = 1_000
"""Pages of a backup that are copied at a time; others may write in between, and what they change is copied again."""


class SqliteConnections:
    """Opens transactions on one file, from any thread; what fails inside one is rolled back."""

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
        # If a program ends without `close`, Python closes its connections and SQLite removes the log: clear the mark before.
        self._at_exit = weakref.finalize(self, _settle, self._idle, self._process, path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that sees one consistent state, whatever others write meanwhile."""
        with self._borrowed() as borrowed, _transaction(borrowed, "BEGIN"):
            yield borrowed

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction as the only writer, and commit at the end."""
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
        """Close the idle connections now, and those in use when they are given back."""
        self._is_closed = True
        self._leave_to_parent()
        _settle(self._idle, self._process, self.path)

    def backup(self, to: Path) -> None:
        """Write a consistent copy of the whole store into a file that does not exist yet; others may go on writing."""
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
                # The copy is complete in one file and has no log.
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
                # Closing rolls back too, even if ROLLBACK itself would fail.
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
        """In a forked process, set the parent's connections aside: SQLite forbids to use, or even to close, them."""
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
            # Takes effect only in a file without tables: free pages can then be given back to the disk.
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


def _create(path: Path) -> None:
    """Create the file and its folder if missing, for this user only; SQLite gives the log the file's permissions."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # An existing file is not opened: closing it would release the POSIX locks that another connection of this process holds.
    if not (path.is_file() and os.access(path, os.R_OK | os.W_OK)):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, once in a file's life; SQLite's busy timeout does not cover this statement."""
    until = time.monotonic() + PATIENCE
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _text(data: bytes) -> str:
    """Decode text leniently: one damaged text must not keep its whole row from being read."""
    return data.decode(errors="replace")


def _settle(idle: list[_Connection], process: int, path: Path) -> None:
    """Close connections, after clearing the mark `in_log`: with the last one, SQLite moves the log into the file and removes it."""
    if process != os.getpid():
        return  # a forked process may not close its parent's connections
    while idle:
        connection = idle.pop()
        is_marked_clean = bool(idle) or _clear_mark(connection)
        connection.close()
        if not is_marked_clean and path.exists() and not log_of(path).exists():
            # SQLite removed the log, but the mark could not be cleared: an empty log keeps the file from being refused.
            with suppress(OSError):
                os.close(os.open(log_of(path), os.O_WRONLY | os.O_CREAT, 0o600))


def _clear_mark(connection: sqlite3.Connection) -> bool:
    """Clear the mark `in_log`, and return whether that worked."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("PRAGMA busy_timeout = 1000").fetchall()
        connection.execute("UPDATE counters SET in_log = 0 WHERE in_log")
    except sqlite3.Error:
        return False  # somebody else is writing, or the disk is full
    return True


def _files(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Return the identity (device and inode) of the file and of its log; None for one that does not exist."""
    # Before every write: `os.stat` on text takes less time than `Path.stat`.
    name = str(path)
    return _identity(name), _identity(f"{name}{_LOG}")


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)  # noqa: PTH116 - see above
    except OSError:
        return None
    return found.st_dev, found.st_ino


# The write-ahead log


_LOG = "-wal"
"""What SQLite adds to a file's name for its write-ahead log."""


def log_of(path: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a file."""
    return path.with_name(f"{path.name}{_LOG}")


def refuse_without_log(path: Path) -> None:
    """Raise UnusableStore if the file is marked as having commits in its log, and there is no log."""
    log = log_of(path)
    if log.exists() or not path.stat().st_size:
        return
    # `immutable` reads the file alone; an ordinary connection would create an empty log, and the next one would believe it.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as connection:
        try:
            is_marked = connection.execute("SELECT in_log FROM counters").fetchone()[0]
        except sqlite3.OperationalError:
            return  # an older schema, or no store at all: reported elsewhere
    if is_marked and not log.exists():
        raise UnusableStore(
            f"the newest commits of the store {path} are in {log.name}, which is missing: put it back beside the file; "
            f"if it is lost, `lowwater sessions salvage NEW.db --store sqlite:///{path}` writes what the file holds into a new store"
        )


# Errors

_ADVICE = {
    sqlite3.SQLITE_FULL: "free some space on the disk, or choose another place",
    sqlite3.SQLITE_IOERR: "check the disk, or choose another place",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable, or choose another place",
    sqlite3.SQLITE_CANTOPEN: "make the file and its folder writable, or choose another place",
    sqlite3.SQLITE_BUSY: "another process holds it for too long; end that process",
}
_MISSING = ("no such table", "no such column")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def translated(path: object) -> Iterator[None]:
    """Turn failures of the disk or the file into UnusableStore and DamagedStore; other errors are bugs and pass through."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            said = (
                f"the store {path} is damaged ({error}): restore a backup, or save what is intact with "
                f"`lowwater sessions salvage NEW.db --store sqlite:///{path}`"
            )
            raise DamagedStore(said) from error
        if code == sqlite3.SQLITE_ERROR and str(error).startswith(_MISSING):
            said = f"the store {path} cannot be used ({error}): restore a copy with all of its tables, or choose another place"
            raise UnusableStore(said) from error
        if code not in _ADVICE:
            raise
        raise UnusableStore(f"the store {path} cannot be used ({error}): {_ADVICE[code]}") from error
    except UnicodeEncodeError as error:
        raise BadInput(
            f"a name with half a character (a lone surrogate) cannot be stored: {error.reason}"
        ) from None
    except OSError as error:
        said = f"the store {path} cannot be opened ({error.strerror}): {_ADVICE[sqlite3.SQLITE_CANTOPEN]}"
        raise UnusableStore(said) from error


# Schema and migrations

APPLICATION = 0x4C57_5452
"""SQLite's application id, which marks the file as ours: the letters LWTR."""
OLDEST = (3, 35, 0)
"""The first SQLite with RETURNING."""
_FIRST = (
    """CREATE TABLE sessions (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL DEFAULT 0,
        entries INTEGER NOT NULL DEFAULT 0, messages INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0,
        turns INTEGER NOT NULL DEFAULT 0, compactions INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '',
        opened_at REAL, changed_at REAL, title TEXT NOT NULL, source TEXT NOT NULL, parent TEXT NOT NULL,
        ended_at REAL, ended_because TEXT NOT NULL)""",
    # In a table of its own: in `sessions`, it would be rewritten with every append.
    "CREATE TABLE carried (session INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    # One row. Contents with an id above `indexed` are not in the search index yet.
    "CREATE TABLE counters (version INTEGER NOT NULL, indexed INTEGER NOT NULL)",
    "INSERT INTO counters (version, indexed) VALUES (0, 0)",
    """CREATE TABLE appends (
        session INTEGER NOT NULL, version INTEGER NOT NULL, entries INTEGER NOT NULL,
        PRIMARY KEY (session, version)) WITHOUT ROWID""",
    """CREATE TABLE entries (
        session INTEGER NOT NULL, position INTEGER NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL,
        kind TEXT NOT NULL, messages INTEGER NOT NULL, tokens INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (session, position)) WITHOUT ROWID""",
    """CREATE INDEX landmarks ON entries (session, position, kind, at, messages, tokens)
        WHERE kind <> 'appended'""",
    "CREATE TABLE contents (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, body BLOB NOT NULL)",
    """CREATE TABLE messages (
        session INTEGER NOT NULL, number INTEGER NOT NULL, content INTEGER NOT NULL, tokens INTEGER NOT NULL,
        PRIMARY KEY (session, number)) WITHOUT ROWID""",
    "CREATE INDEX messages_by_content ON messages (content)",
    """CREATE TABLE turns (
        session INTEGER NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL, model TEXT NOT NULL,
        uncached INTEGER, cache_read INTEGER, cache_write INTEGER, cache_write_long INTEGER, output INTEGER,
        cost INTEGER, untouched INTEGER, removed INTEGER NOT NULL, decision TEXT NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (session, version)) WITHOUT ROWID""",
    """CREATE TABLE compaction_events (
        session INTEGER NOT NULL, version INTEGER NOT NULL, ordinal INTEGER NOT NULL, at REAL NOT NULL,
        kind TEXT NOT NULL, reason TEXT NOT NULL, model TEXT, mode TEXT, mechanisms TEXT, number INTEGER,
        tokens_before INTEGER NOT NULL, tokens_after INTEGER NOT NULL, reclaimed INTEGER NOT NULL, ratio REAL,
        items_before INTEGER, items_after INTEGER, first_changed INTEGER, disturbed INTEGER, summary_tokens INTEGER,
        summarizer TEXT, score REAL, seconds REAL, cost INTEGER, price INTEGER, saves INTEGER, payback REAL,
        rejected INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (session, version, ordinal)) WITHOUT ROWID""",
    # It keeps its own text: only then can a row be removed without knowing the text that was indexed.
    "CREATE VIRTUAL TABLE search USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')",
    f"PRAGMA application_id = {APPLICATION}",
)
_TRAILS = (
    # Fingerprints: digests of the message lists that a gateway's clients keep. `newest` are those a session was last seen with.
    """CREATE TABLE trails (
        tenant TEXT NOT NULL, key BLOB NOT NULL, session INTEGER NOT NULL, hint TEXT NOT NULL, newest INTEGER NOT NULL,
        PRIMARY KEY (tenant, key, session)) WITHOUT ROWID""",
    "CREATE INDEX trails_by_session ON trails (session, newest)",
    "CREATE TABLE secret (body BLOB NOT NULL)",
    "INSERT INTO secret (body) VALUES (randomblob(32))",
)
_VERSIONS = (
    # SQLite numbers a new row one above the highest. A counter in another table would cost every commit one more page.
    "ALTER TABLE appends RENAME TO old_appends",
    "CREATE TABLE appends (version INTEGER PRIMARY KEY, session INTEGER NOT NULL, entries INTEGER NOT NULL)",
    "INSERT INTO appends (version, session, entries) SELECT version, session, entries FROM old_appends ORDER BY version",
    # A version is never given twice, even after everything that had it was deleted.
    "INSERT OR IGNORE INTO appends (version, session, entries) SELECT version, 0, 0 FROM counters WHERE version > 0",
    "DROP TABLE old_appends",
    "ALTER TABLE counters DROP COLUMN version",
)
_IN_LOG = (
    # Whether commits may be in the write-ahead log only. From this schema on, a compaction may be stored as its difference
    # from the one before, which older versions of Lowwater cannot read.
    "ALTER TABLE counters ADD COLUMN in_log INTEGER NOT NULL DEFAULT 0",
)
_SHORTER: tuple[str, ...] = ()
"""From this schema on, messages are stored in a shorter form (`shrunk`), which older versions of Lowwater cannot read."""
_RECALL: tuple[str, ...] = ()
"""From this schema on, turn records say how recall was used, which older versions of Lowwater cannot read."""
_PARTS = (
    # From this schema on, the parts of names in camel case are in the index, too: everything is indexed again.
    "DROP TABLE search",
    "CREATE VIRTUAL TABLE search USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')",
    # Where each word stands in each content, read from the index.
    "CREATE VIRTUAL TABLE IF NOT EXISTS occurrences USING fts5vocab (search, instance)",
    "UPDATE counters SET indexed = 0",
)
MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _TRAILS, _VERSIONS, _IN_LOG, _SHORTER, _RECALL, _PARTS)
"""The statements from each schema to the next; a schema's number is how many of these were carried out."""


def migrate(connection: sqlite3.Connection, path: object) -> None:
    """Bring the file up to this version's schema, or raise NewerSchema or UnusableStore and leave it as it is."""
    if _schema(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        for number in range(_schema(connection, path), len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def refuse_newer(connection: sqlite3.Connection, path: object) -> None:
    """Raise NewerSchema if a newer Lowwater has migrated the file since it was opened."""
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if schema > len(MIGRATIONS):
        raise NewerSchema(
            f"the store {path} has schema {schema} and this Lowwater knows {len(MIGRATIONS)}: use a newer Lowwater"
        )


def _schema(connection: sqlite3.Connection, path: object) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and application != APPLICATION:
        raise UnusableStore(f"the store {path} is another program's database: choose another file")
    refuse_newer(connection, path)
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    return int(schema)


def refuse_old(version: tuple[int, ...], path: object) -> None:
    """Raise UnusableStore if Python was built with an SQLite that is too old."""
    if version < OLDEST:
        has, needed = (".".join(map(str, numbers)) for numbers in (version, OLDEST))
        raise UnusableStore(
            f"the store {path} needs SQLite {needed} and this Python has {has}: use another Python"
        )
