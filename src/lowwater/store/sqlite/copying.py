"""Beginning a session as a copy of another, inside a transaction; the content stays where it is."""

import sqlite3

from lowwater.core.stored import About
from lowwater.errors import BadInput, StaleLedger
from lowwater.store.sqlite.rows import find
from lowwater.store.sqlite.writing import begin, next_version

_COPIES = (
    """INSERT INTO entries (session, position, version, at, kind, messages, tokens, body)
        SELECT :to, position, :version, at, kind, messages, tokens, body FROM entries WHERE session = :from""",
    """INSERT INTO messages (session, number, content, tokens)
        SELECT :to, number, content, tokens FROM messages WHERE session = :from""",
    "INSERT INTO carried (session, body) SELECT :to, body FROM carried WHERE session = :from",
    """UPDATE sessions SET version = :version, entries = old.entries, messages = old.messages, tokens = old.tokens,
        compactions = old.compactions, model = old.model,
        opened_at = (SELECT min(at) FROM entries WHERE session = :from),
        changed_at = (SELECT max(at) FROM entries WHERE session = :from)
        FROM sessions AS old WHERE sessions.id = :to AND old.id = :from""",
)


def copy(connection: sqlite3.Connection, session: str, to: str, about: About) -> int:
    """Give the session `to` all that `session` has but its accounts, and return its version."""
    old, taken = find(connection, session), find(connection, to)
    if taken.id:
        raise StaleLedger(to, expected=0, found=taken.version)
    if not old.id:
        raise BadInput(f"there is no session {session!r} to copy")
    new = begin(connection, to, about)
    version = next_version(connection, new, old.entries)
    for statement in _COPIES:
        connection.execute(statement, {"from": old.id, "to": new, "version": version})
    return version
