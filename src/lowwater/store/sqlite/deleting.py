"""Deleting a session for good, inside a transaction."""

import sqlite3

from lowwater.store.sqlite.catching_up import fall_back

_OWNED = ("entries", "messages", "turns", "compaction_events", "carried", "appends", "trails")


def delete(connection: sqlite3.Connection, session: str) -> bool:
    """Remove a session with the content that no other one holds; return whether there was one."""
    row = connection.execute("SELECT id FROM sessions WHERE name = ?", (session,)).fetchone()
    if row is None:
        return False
    held = connection.execute("SELECT DISTINCT content FROM messages WHERE session = ?", row).fetchall()
    for table in _OWNED:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", row)  # noqa: S608 - our own names
    connection.execute("DELETE FROM sessions WHERE id = ?", row)
    still = "SELECT 1 FROM messages WHERE content = ?"
    orphans = [content for content in held if connection.execute(still, content).fetchone() is None]
    connection.executemany("DELETE FROM search WHERE rowid = ?", orphans)
    connection.executemany("DELETE FROM contents WHERE id = ?", orphans)
    fall_back(connection)
    if orphans:
        # The index only notes what is gone, and forgets its words when it is merged.
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    return True
