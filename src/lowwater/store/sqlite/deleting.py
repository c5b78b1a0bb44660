"""Deleting sessions for good, inside a transaction."""

import sqlite3
from collections.abc import Sequence

from lowwater.store.sqlite.catching_up import fall_back

_OWNED = ("entries", "messages", "turns", "compaction_events", "carried", "trails")

TOGETHER = 100
"""How many sessions go in one transaction: the index is rewritten once for all of them, and others must not wait too long."""


def delete(connection: sqlite3.Connection, sessions: Sequence[str]) -> int:
    """Remove sessions with the content that no other one holds; return how many there were."""
    found = [_id_of(connection, session) for session in dict.fromkeys(sessions)]
    ids = [id for id in found if id]
    orphans = sum([_delete_one(connection, id) for id in ids])
    _forget_versions(connection, ids)
    fall_back(connection)
    if orphans:
        # The index only notes what is gone, and forgets its words when it is merged.
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    return len(ids)


def _id_of(connection: sqlite3.Connection, session: str) -> int:
    """Return a session's id; 0 if there is none of that name."""
    row = connection.execute("SELECT id FROM sessions WHERE name = ?", (session,)).fetchone()
    return int(row[0]) if row else 0


def _delete_one(connection: sqlite3.Connection, id: int) -> int:
    """Remove one session but for its versions, and return how much content went with it."""
    held = connection.execute("SELECT DISTINCT content FROM messages WHERE session = ?", (id,)).fetchall()
    for table in _OWNED:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (id,))  # noqa: S608 - our own names
    connection.execute("DELETE FROM sessions WHERE id = ?", (id,))
    still = "SELECT 1 FROM messages WHERE content = ?"
    orphans = [content for content in held if connection.execute(still, content).fetchone() is None]
    connection.executemany("DELETE FROM search WHERE rowid = ?", orphans)
    connection.executemany("DELETE FROM contents WHERE id = ?", orphans)
    return len(orphans)


def _forget_versions(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Remove the versions of sessions; the highest of all stays, nobody's, so that it is not given again."""
    marks = ",".join("?" * len(ids))
    connection.execute(
        f"DELETE FROM appends WHERE session IN ({marks}) "  # noqa: S608 - only question marks
        "AND version < (SELECT max(version) FROM appends)",
        ids,
    )
    connection.execute(f"UPDATE appends SET session = 0, entries = 0 WHERE session IN ({marks})", ids)  # noqa: S608
