"""Reading a session back, inside a transaction."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from lowwater.errors import StaleLedger
from lowwater.store.restoring import Hurt, Row, restore_entries, restore_record
from lowwater.values.stored import Listed, Stored
from lowwater.values.turn_record import TurnRecord


def read(connection: sqlite3.Connection, session: str, since: int, until: int | None) -> Stored:
    """Return what a session has between two versions, or raise StaleLedger or DamagedStore."""
    row = connection.execute("SELECT id, version FROM sessions WHERE name = ?", (session,)).fetchone()
    id, newest = row or (0, 0)
    if since and not _is_version(connection, id, since):
        raise StaleLedger(session, expected=since, found=newest)
    last = newest if until is None else _version_by(connection, id, until)
    with _naming(connection, session, id):
        entries = tuple(
            restore_entries(_rows(connection, id, since, last), lambda keys: _contents(connection, keys))
        )
        return Stored(version=last, entries=entries, record=_record_by(connection, id, last))


def records(connection: sqlite3.Connection, session: str) -> list[TurnRecord]:
    """Return all records of a session, or raise DamagedStore."""
    row = connection.execute("SELECT id, newest FROM sessions WHERE name = ?", (session,)).fetchone()
    if row is None:
        return []
    id, newest = row
    turns = connection.execute(
        "SELECT version, body FROM turns WHERE session = ? ORDER BY version", (id,)
    ).fetchall()
    with _naming(connection, session, id):
        older = [restore_record(version, body) for version, body in turns[:-1]]
        return older + [restore_record(version, newest) for version, _ in turns[-1:]]


def sessions(connection: sqlite3.Connection) -> list[Listed]:
    """Return all sessions, the one changed last first."""
    rows = connection.execute(
        "SELECT name, version, entries, messages, turns, opened_at, changed_at FROM sessions ORDER BY version DESC"
    )
    return [Listed(**dict(zip(Listed.__struct_fields__, row, strict=True))) for row in rows]


@contextmanager
def _naming(connection: sqlite3.Connection, session: str, id: int) -> Iterator[None]:
    """Turn damage into DamagedStore, with the session's name and the version before it."""
    try:
        yield
    except Hurt as hurt:
        raise hurt.reported(session, _version_by(connection, id, hurt.version - 1)) from hurt


def _is_version(connection: sqlite3.Connection, id: int, version: int) -> bool:
    query = "SELECT 1 FROM appends WHERE version = ? AND session = ?"
    return connection.execute(query, (version, id)).fetchone() is not None


def _version_by(connection: sqlite3.Connection, id: int, until: int) -> int:
    (version,) = connection.execute(
        "SELECT max(version) FROM appends WHERE session = ? AND version <= ?", (id, until)
    ).fetchone()
    return version or 0


def _rows(connection: sqlite3.Connection, id: int, since: int, last: int) -> Iterator[Row]:
    found = connection.execute(
        "SELECT version, position, body FROM entries WHERE session = ? AND version > ? AND version <= ? "
        "ORDER BY version, position",
        (id, since, last),
    )
    return (Row(version=version, position=position, sealed=body) for version, position, body in found)


def _contents(connection: sqlite3.Connection, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
    marks = ",".join("?" * len(keys))
    query = f"SELECT key, body FROM contents WHERE key IN ({marks})"  # noqa: S608 - only question marks
    return connection.execute(query, keys)


def _record_by(connection: sqlite3.Connection, id: int, version: int) -> TurnRecord | None:
    """Return the newest record at this version; the newest of all is whole."""
    row = connection.execute(
        "SELECT version, body, (SELECT max(version) FROM turns WHERE session = ?1), "
        "(SELECT newest FROM sessions WHERE id = ?1) "
        "FROM turns WHERE session = ?1 AND version <= ?2 ORDER BY version DESC LIMIT 1",
        (id, version),
    ).fetchone()
    if row is None:
        return None
    of, body, last, newest = row
    return restore_record(of, newest if of == last else body)
