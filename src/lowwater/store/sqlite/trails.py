"""The lists that clients keep, as digests, inside a transaction."""

import sqlite3
from collections.abc import Sequence

from lowwater.core.stored import Followed, Trail

AT_ONCE = 500
"""Keys in one question; SQLite takes a thousand at least."""


_FOLLOW = (
    "SELECT key, name, hint, newest FROM trails JOIN sessions ON sessions.id = trails.session "
    "WHERE tenant = ? AND key IN"
)


def leave(connection: sqlite3.Connection, trail: Trail) -> None:
    """Note what a session was seen with, if it is kept."""
    row = connection.execute("SELECT id FROM sessions WHERE name = ?", (trail.session,)).fetchone()
    if row is None:
        return
    connection.execute("UPDATE trails SET newest = 0 WHERE session = ? AND newest", row)
    connection.executemany(
        "INSERT INTO trails (tenant, key, session, hint, newest) VALUES (?, ?, ?, ?, 1) "
        "ON CONFLICT DO UPDATE SET hint = excluded.hint, newest = 1",
        [(trail.tenant, key, row[0], trail.hint) for key in trail.keys],
    )


def follow(connection: sqlite3.Connection, tenant: str, keys: Sequence[bytes]) -> list[Followed]:
    """Return the sessions that were seen with one of these keys."""
    found: list[Followed] = []
    for start in range(0, len(keys), AT_ONCE):
        asked = keys[start : start + AT_ONCE]
        rows = connection.execute(f"{_FOLLOW} ({', '.join('?' * len(asked))})", (tenant, *asked))
        found += [
            Followed(key=key, session=name, hint=hint, newest=bool(newest))
            for key, name, hint, newest in rows
        ]
    return found


def secret(connection: sqlite3.Connection) -> bytes:
    """Return the bytes that were drawn when the file was made."""
    (body,) = connection.execute("SELECT body FROM secret").fetchone()
    return bytes(body)


def adopt(
    connection: sqlite3.Connection, secret: bytes, left: Sequence[tuple[str, tuple[object, ...]]]
) -> None:
    """Take over the secret of another file, and the rows of its trails; the keys of trails are made with the secret."""
    if not secret:
        return
    connection.execute("UPDATE secret SET body = ?", (secret,))
    connection.executemany(
        "INSERT OR IGNORE INTO trails (tenant, key, session, hint, newest) "
        "SELECT ?, ?, id, ?, ? FROM sessions WHERE name = ?",
        [(tenant, key, hint, newest, name) for name, (tenant, key, _, hint, newest) in left],
    )
