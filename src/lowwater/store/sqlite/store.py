"""The store in one SQLite file: `sqlite:///PATH`."""

from collections.abc import Sequence
from pathlib import Path

from lowwater.store.packing import pack
from lowwater.store.sqlite import reading
from lowwater.store.sqlite.connections import Connections
from lowwater.store.sqlite.deleting import delete
from lowwater.store.sqlite.writing import append
from lowwater.values.entries import Entry
from lowwater.values.stored import Listed, Stored
from lowwater.values.turn_record import TurnRecord


class SqliteStore:
    """Keeps sessions in a file that any number of threads and processes may have open; made, for this user only, if missing."""

    def __init__(self, path: Path) -> None:
        self._connections = Connections(path)

    def append(
        self, session: str, expected: int, entries: Sequence[Entry], record: TurnRecord | None = None, /
    ) -> int:
        """Keep entries and record in one transaction, or raise StaleLedger."""
        packed = [pack(entry) for entry in entries]
        with self._connections.writing() as connection:
            return append(connection, session, expected, packed, record)

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        with self._connections.reading() as connection:
            return reading.read(connection, session, since, until)

    def records(self, session: str, /) -> list[TurnRecord]:
        """Return all records, oldest first."""
        with self._connections.reading() as connection:
            return reading.records(connection, session)

    def sessions(self) -> list[Listed]:
        """Return all sessions, the one changed last first."""
        with self._connections.reading() as connection:
            return reading.sessions(connection)

    def delete(self, session: str, /) -> bool:
        """Forget a session; its bytes are overwritten in the file, and in the log unless somebody is reading from it."""
        with self._connections.writing() as connection:
            was_there = delete(connection, session)
        if was_there:
            self._connections.empty_log()
        return was_there

    def close(self) -> None:
        """Close the file."""
        self._connections.close()
