"""The row of a session: found, locked, begun, brought up to date."""

from typing import cast

from msgspec import Struct
from msgspec.structs import asdict

from lowwater.core.stored import About
from lowwater.errors import StaleLedger
from lowwater.store.growth import Growth
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.texts import key_of, stored
from lowwater.store.sealing import seal


class Session(Struct, frozen=True, kw_only=True):
    """A session as a transaction finds it; one that is not there has the id 0."""

    id: int = 0
    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0


def find(connection: Connection, session: str, lock: str = "") -> Session:
    """Return the session's row, locked if asked to (`FOR UPDATE`, `FOR SHARE`)."""
    query = f"SELECT id, version, entries, messages, tokens FROM sessions WHERE key = %s {lock}"  # noqa: S608 - our own words
    row = connection.execute(query.encode(), (key_of(session),)).fetchone()
    if row is None:
        return Session()
    id, version, entries, messages, tokens = cast("tuple[int, int, int, int, int]", row)
    return Session(id=id, version=version, entries=entries, messages=messages, tokens=tokens)


def begin(connection: Connection, session: str, about: About) -> Session:
    """Return a new session that has nothing yet, or raise StaleLedger if there is one; who else is about to begin it is waited for."""
    while True:
        row = connection.execute(
            "INSERT INTO sessions (key, name, title, source, parent, ended_because, ended_at) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING RETURNING id",
            (key_of(session), stored(session), *_told(about)),
        ).fetchone()
        if row is not None:
            return Session(id=cast("int", row[0]))
        there = find(connection, session)
        if there.id:
            raise StaleLedger(session, expected=0, found=there.version)


def next_version(connection: Connection, id: int, entries: int) -> int:
    """Give a session of this id a version that no append had before; it leads to so many entries.

    The session's row is locked, so its versions grow in the order they are committed.
    """
    row = connection.execute(
        "INSERT INTO appends (session, version, entries) VALUES (%s, nextval('versions'), %s) RETURNING version",
        (id, entries),
    ).fetchone()
    assert row is not None
    return cast("int", row[0])


def grow(connection: Connection, id: int, version: int, growth: Growth) -> None:
    """Bring the figures of a session up to date."""
    model = None if growth.model is None else stored(growth.model)
    connection.execute(
        "UPDATE sessions SET version = %(version)s, entries = entries + %(entries)s, messages = messages + %(messages)s, "
        "tokens = tokens + %(tokens)s, turns = turns + %(turns)s, compactions = compactions + %(compactions)s, "
        "model = coalesce(%(model)s, model), opened_at = least(opened_at, %(first)s), "
        "changed_at = greatest(changed_at, %(last)s) WHERE id = %(id)s",
        {**asdict(growth), "model": model, "version": version, "id": id},
    )


def carry(connection: Connection, id: int, carried: bytes | None) -> None:
    """Keep what a session carries, unless there is nothing new."""
    if carried is not None:
        connection.execute("UPDATE sessions SET carried = %s WHERE id = %s", (seal(carried), id))


def describe(connection: Connection, id: int, about: About | None) -> None:
    """Keep what is told of a session, unless there is nothing new."""
    if about is not None:
        connection.execute(
            "UPDATE sessions SET title = %s, source = %s, parent = %s, ended_because = %s, ended_at = %s WHERE id = %s",
            (*_told(about), id),
        )


def _told(about: About) -> tuple[str | float | None, ...]:
    texts = (about.title, about.source, about.parent, about.ended_because)
    return (*map(stored, texts), about.ended_at)
