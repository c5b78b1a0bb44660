"""The lists that clients keep, as digests, inside a transaction."""

from collections.abc import Sequence
from typing import cast

from lowwater.core.stored import Followed, Trail
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.sessions import find
from lowwater.store.postgres.texts import stored, told


def leave(connection: Connection, trail: Trail) -> None:
    """Note what a session was seen with, if it is kept; its row is locked, so that one trail is the newest."""
    session = find(connection, trail.session, "FOR UPDATE")
    if not session.id:
        return
    connection.execute("UPDATE trails SET newest = false WHERE session = %s AND newest", (session.id,))
    connection.execute(
        "INSERT INTO trails (tenant, key, session, hint, newest) SELECT %s, key, %s, %s, true FROM unnest(%s::bytea[]) AS key "
        "ON CONFLICT (tenant, key, session) DO UPDATE SET hint = excluded.hint, newest = true",
        (stored(trail.tenant), session.id, stored(trail.hint), list(dict.fromkeys(trail.keys))),
    )


def follow(connection: Connection, tenant: str, keys: Sequence[bytes]) -> list[Followed]:
    """Return the sessions that were seen with one of these keys."""
    rows = connection.execute(
        "SELECT trails.key, name, hint, newest FROM trails JOIN sessions ON sessions.id = trails.session "
        "WHERE tenant = %s AND trails.key = ANY(%s::bytea[])",
        (stored(tenant), list(keys)),
    )
    return [
        Followed(key=bytes(cast("bytes", key)), session=told(name), hint=told(hint), newest=bool(newest))
        for key, name, hint, newest in rows
    ]


def secret(connection: Connection) -> bytes:
    """Return the bytes that were drawn when the tables were made."""
    row = connection.execute("SELECT body FROM secret").fetchone()
    assert row is not None
    return bytes(cast("bytes", row[0]))
