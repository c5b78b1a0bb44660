"""Reading a session back, inside a transaction."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from lowwater.core.entries import Entry
from lowwater.core.ledger import Numbered
from lowwater.core.stored import Outline, Stored
from lowwater.errors import StaleLedger
from lowwater.store.restoring import (
    Held,
    Hurt,
    Row,
    landmark,
    restore_carried,
    restore_entries,
    restore_messages,
)
from lowwater.store.sqlite.rows import Session, find


def read(connection: sqlite3.Connection, session: str, since: int, until: int | None) -> Stored:
    """Return what a session has between two versions, or raise StaleLedger or DamagedStore."""
    now = find(connection, session)
    first = _seen(connection, now, since)
    version, end = (now.version, now.entries) if until is None else _by(connection, now.id, until)
    with naming(connection, now):
        entries = tuple(_entries(connection, now.id, first, end))
        return Stored(
            version=version, entries=entries, carried=restore_carried(session, now.carried), about=now.about
        )


def outline(connection: sqlite3.Connection, session: str) -> Outline:
    """Return a session without its entries, or raise DamagedStore."""
    now = find(connection, session)
    landmarks = connection.execute(
        "SELECT position, kind, at, messages, tokens FROM entries "
        "WHERE session = ? AND kind <> 'appended' ORDER BY position",
        (now.id,),
    )
    with naming(connection, now):
        return Outline(
            version=now.version,
            entries=now.entries,
            messages=now.messages,
            tokens=now.tokens,
            landmarks=tuple(landmark(*row) for row in landmarks),
            carried=restore_carried(session, now.carried),
            about=now.about,
        )


def entries(connection: sqlite3.Connection, session: str, first: int, end: int, version: int) -> list[Entry]:
    """Return the entries at these positions, or raise StaleLedger or DamagedStore."""
    now = find(connection, session)
    _seen(connection, now, version)
    with naming(connection, now):
        return list(_entries(connection, now.id, first, end))


def messages(
    connection: sqlite3.Connection, session: str, first: int, end: int, version: int
) -> list[Numbered]:
    """Return the messages with these numbers, or raise StaleLedger or DamagedStore."""
    now = find(connection, session)
    _seen(connection, now, version)
    numbers = range(max(first, 1), min(end, now.messages + 1))
    rows = connection.execute(
        "SELECT messages.number, messages.tokens, contents.key, contents.body "
        "FROM messages JOIN contents ON contents.id = messages.content "
        "WHERE messages.session = ? AND messages.number >= ? AND messages.number < ? ORDER BY messages.number",
        (now.id, numbers.start, numbers.stop),
    )
    held = (Held(number=number, tokens=tokens, key=key, body=body) for number, tokens, key, body in rows)
    with naming(connection, now):
        return list(restore_messages(numbers, held, _brought(connection, now.id)))


@contextmanager
def naming(connection: sqlite3.Connection, session: Session) -> Iterator[None]:
    """Turn damage into DamagedStore, with the session's name and the version before it."""
    try:
        yield
    except Hurt as hurt:
        whole, _ = _by(connection, session.id, hurt.version - 1)
        raise hurt.reported(session.name, whole) from hurt


def _seen(connection: sqlite3.Connection, session: Session, version: int) -> int:
    """Return how many entries a session had at a version, or raise StaleLedger if it never was at it."""
    if not version:
        return 0
    row = connection.execute(
        "SELECT entries FROM appends WHERE session = ? AND version = ?", (session.id, version)
    ).fetchone()
    if row is None:
        raise StaleLedger(session.name, expected=version, found=session.version)
    return int(row[0])


def _by(connection: sqlite3.Connection, id: int, until: int) -> tuple[int, int]:
    """Return the last version that is not after `until`, and its entries."""
    row = connection.execute(
        "SELECT version, entries FROM appends WHERE session = ? AND version <= ? ORDER BY version DESC LIMIT 1",
        (id, until),
    ).fetchone()
    return row or (0, 0)


def _entries(connection: sqlite3.Connection, id: int, first: int, end: int) -> Iterator[Entry]:
    found = connection.execute(
        "SELECT version, position, body FROM entries WHERE session = ? AND position >= ? AND position < ? "
        "ORDER BY position",
        (id, first, end),
    )
    rows = (Row(version=version, position=position, sealed=body) for version, position, body in found)
    return restore_entries(
        rows, lambda keys: _contents(connection, keys), lambda position: entry_body(connection, id, position)
    )


def entry_body(connection: sqlite3.Connection, id: int, position: int) -> object:
    """Return the stored bytes of one entry, None if there is none."""
    row = connection.execute(
        "SELECT body FROM entries WHERE session = ? AND position = ?", (id, position)
    ).fetchone()
    return row[0] if row else None


def _contents(connection: sqlite3.Connection, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
    marks = ",".join("?" * len(keys))
    query = f"SELECT key, body FROM contents WHERE key IN ({marks})"  # noqa: S608 - only question marks
    return connection.execute(query, keys)


def _brought(connection: sqlite3.Connection, id: int) -> Callable[[int], int]:
    """Return what tells with which version a message came."""

    def version_of(number: int) -> int:
        row = connection.execute(
            "SELECT version FROM entries WHERE session = ? AND messages < ? ORDER BY position DESC LIMIT 1",
            (id, number),
        ).fetchone()
        return int(row[0]) if row else 0

    return version_of
