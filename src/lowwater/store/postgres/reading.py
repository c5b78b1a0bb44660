"""Reading a session back, inside a transaction."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from lowwater.core.entries import Entry
from lowwater.core.ledger import Numbered
from lowwater.core.stored import About, Landmark, Outline, Stored
from lowwater.errors import StaleLedger
from lowwater.store.postgres.damage import naming, version_by
from lowwater.store.postgres.listing import ABOUT, about
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.sessions import Session, find
from lowwater.store.restoring import Held, Row, landmark, restore_carried, restore_entries, restore_messages


def read(connection: Connection, session: str, since: int, until: int | None) -> Stored:
    """Return what a session has between two versions, or raise StaleLedger or DamagedStore."""
    now = _seen(connection, session, since)
    last = now.version if until is None else version_by(connection, now.id, until)
    first, end = _length(connection, now.id, since), _length(connection, now.id, last)
    with naming(connection, session, now.id):
        entries = tuple(_entries(connection, now.id, first, end))
        carried, about = _besides(connection, session, now)
    return Stored(version=last, entries=entries, carried=carried, about=about)


def outline(connection: Connection, session: str) -> Outline:
    """Return a session without its entries, or raise DamagedStore."""
    now = find(connection, session)
    with naming(connection, session, now.id):
        carried, about = _besides(connection, session, now)
    return Outline(
        version=now.version,
        entries=now.entries,
        messages=now.messages,
        tokens=now.tokens,
        landmarks=tuple(_landmarks(connection, now.id)),
        carried=carried,
        about=about,
    )


def entries(connection: Connection, session: str, first: int, end: int, version: int) -> list[Entry]:
    """Return the entries at these positions, or raise StaleLedger or DamagedStore."""
    now = _seen(connection, session, version)
    with naming(connection, session, now.id):
        return list(_entries(connection, now.id, max(first, 0), min(end, now.entries)))


def messages(connection: Connection, session: str, first: int, end: int, version: int) -> list[Numbered]:
    """Return the messages with these numbers, or raise StaleLedger or DamagedStore."""
    now = _seen(connection, session, version)
    numbers = range(max(first, 1), min(end, now.messages + 1))
    rows = connection.execute(
        "SELECT number, tokens, key, body FROM messages JOIN contents ON contents.id = content "
        "WHERE session = %s AND number >= %s AND number < %s ORDER BY number",
        (now.id, numbers.start, numbers.stop),
        binary=True,
    )
    with naming(connection, session, now.id):
        return list(restore_messages(numbers, map(_held, rows), _brought(connection, now.id)))


def _seen(connection: Connection, session: str, version: int) -> Session:
    """Return a session that had this version, an empty one for 0, or raise StaleLedger."""
    now = find(connection, session)
    if version and version_by(connection, now.id, version) != version:
        raise StaleLedger(session, expected=version, found=now.version)
    return now


def _besides(connection: Connection, session: str, now: Session) -> tuple[bytes, About]:
    """Return what a session carries and what is told of it."""
    row = connection.execute(
        f"SELECT carried, {ABOUT} FROM sessions WHERE id = %s".encode(),  # noqa: S608 - our own names
        (now.id,),
        binary=True,
    ).fetchone()
    if row is None:
        return b"", About()
    return restore_carried(session, row[0]), about(row[1:])


def _brought(connection: Connection, id: int) -> Callable[[int], int]:
    """Return what tells with which version a message came."""

    def version_of(number: int) -> int:
        row = connection.execute(
            "SELECT version FROM entries WHERE session = %s AND messages < %s ORDER BY position DESC LIMIT 1",
            (id, number),
        ).fetchone()
        return cast("int", row[0]) if row else 0

    return version_of


def _length(connection: Connection, id: int, version: int) -> int:
    """Return how many entries a session had at one of its versions."""
    row = connection.execute(
        "SELECT entries FROM appends WHERE session = %s AND version = %s", (id, version)
    ).fetchone()
    return cast("int", row[0]) if row else 0


def _landmarks(connection: Connection, id: int) -> Iterator[Landmark]:
    rows = connection.execute(
        "SELECT position, kind, at, messages, tokens FROM entries "
        "WHERE session = %s AND kind <> 'appended' ORDER BY position",
        (id,),
    )
    return (landmark(*row) for row in cast("Iterable[tuple[int, str, float, int, int]]", rows))


def _entries(connection: Connection, id: int, first: int, end: int) -> Iterator[Entry]:
    rows = connection.execute(
        "SELECT version, position, body FROM entries "
        "WHERE session = %s AND position >= %s AND position < %s ORDER BY position",
        (id, first, end),
        binary=True,
    )
    found = (
        Row(version=cast("int", version), position=cast("int", position), sealed=body)
        for version, position, body in rows
    )
    return restore_entries(
        found, lambda keys: _contents(connection, keys), lambda position: entry_body(connection, id, position)
    )


def entry_body(connection: Connection, id: int, position: int) -> object:
    """Return the stored bytes of one entry, None if there is none."""
    row = connection.execute(
        "SELECT body FROM entries WHERE session = %s AND position = %s", (id, position), binary=True
    ).fetchone()
    return row[0] if row else None


def _contents(connection: Connection, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
    rows = connection.execute(
        "SELECT key, body FROM contents WHERE key = ANY(%s::bytea[])", (list(keys),), binary=True
    )
    return cast("Iterable[tuple[bytes, object]]", rows)


def _held(row: Sequence[object]) -> Held:
    number, tokens, key, body = row
    return Held(number=cast("int", number), tokens=cast("int", tokens), key=key, body=body)
