"""Deleting a session for good, inside a transaction."""

from lowwater.store.postgres.contents import delete_orphans, lock_contents
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.sessions import find

_OWNED = (
    b"DELETE FROM entries WHERE session = %s",
    b"DELETE FROM messages WHERE session = %s",
    b"DELETE FROM turns WHERE session = %s",
    b"DELETE FROM compaction_events WHERE session = %s",
    b"DELETE FROM appends WHERE session = %s",
    b"DELETE FROM trails WHERE session = %s",
    b"DELETE FROM sessions WHERE id = %s",
)


def delete(connection: Connection, session: str) -> bool:
    """Remove a session with the content that no other one holds; return whether there was one."""
    now = find(connection, session, "FOR UPDATE")
    if not now.id:
        return False
    locked = lock_contents(connection, now.id)
    for statement in _OWNED:
        connection.execute(statement, (now.id,))
    delete_orphans(connection, locked)
    return True
