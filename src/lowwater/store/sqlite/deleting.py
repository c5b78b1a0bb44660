"""Deleting sessions for good, inside a transaction."""

import sqlite3
from collections.abc import Sequence

from lowwater.store.sqlite.catching_up import fall_back

_OWNED = ("entries", "messages", "turns", "compaction_events", "carried", "appends", "trails")

TOGETHER = 100
"""How many sessions go in one transaction: the index is rewritten once for all of them, and others must not wait too long."""


def delete(connection: sqlite3.Connection, sessions: Sequence[str]) -> int:
    """Remove sessions with the content that no other one holds; return how many there were."""
    deleted = [_delete_one(connection, session) for session in dict.fromkeys(sessions)]
    fall_back(connection)
    if any(deleted):
        # The index only notes what is gone, and forgets its words when it is merged.
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    return sum(orphans is not None for orphans in deleted)


def _delete_one(connection: sqlite3.Connection, session: str) -> int | None:
    """Remove one session and return how much content went with it; None if there is no such session."""
    row = connection.execute("SELECT id FROM sessions WHERE name = ?", (session,)).fetchone()
    if row is None:
        return None
    held = connection.execute("SELECT DISTINCT content FROM messages WHERE session = ?", row).fetchall()
    for table in _OWNED:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", row)  # noqa: S608 - our own names
    connection.execute("DELETE FROM sessions WHERE id = ?", row)
    still = "SELECT 1 FROM messages WHERE content = ?"
    orphans = [content for content in held if connection.execute(still, content).fetchone() is None]
    connection.executemany("DELETE FROM search WHERE rowid = ?", orphans)
    connection.executemany("DELETE FROM contents WHERE id = ?", orphans)
    return len(orphans)
