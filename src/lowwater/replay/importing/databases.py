"""SQLite files that another program owns, read without changing anything about them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from lowwater.errors import UnreadableFile

_HEAD = b"SQLite format 3\x00"
_UNREADABLE = (sqlite3.Error, ValueError, OverflowError)
"""What a damaged file raises: its names need not be Unicode, its numbers need not fit."""


class Database:
    """An open file; text in it that is no Unicode is mended."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; none if there is no such table."""
        return frozenset(str(row["name"]) for row in self.rows(f'PRAGMA table_info("{table}")'))

    def rows(self, query: str, *values: object) -> Iterator[sqlite3.Row]:
        """Yield what a query finds, and raise UnreadableFile where the file is damaged."""
        try:
            yield from self._connection.execute(query, values)
        except _UNREADABLE as error:
            raise UnreadableFile(f"the database cannot be read: {error}") from None


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """Open a database, or raise UnreadableFile."""
    with closing(_connected(path)) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda data: data.decode(errors="replace")
        yield Database(connection)


def has_columns(head: bytes, path: Path, **columns: str) -> bool:
    """Tell whether a file is a database whose tables have these columns, one each."""
    if not head.startswith(_HEAD):
        return False
    try:
        with opened(path) as database:
            return all(column in database.columns(table) for table, column in columns.items())
    except UnreadableFile:
        return False


def _connected(path: Path) -> sqlite3.Connection:
    """Return a connection that writes nothing, not even a lock, unless a program has the database open just now."""
    log = path.with_name(f"{path.name}-wal")
    modes = ("mode=ro", "immutable=1") if log.exists() and log.stat().st_size else ("immutable=1", "mode=ro")
    said = ""
    for mode in modes:
        connection = None
        try:
            connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)
            connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
        except _UNREADABLE as error:
            said = str(error)
            if connection is not None:
                connection.close()
        else:
            return connection
    raise UnreadableFile(f"the database cannot be read: {said}")
