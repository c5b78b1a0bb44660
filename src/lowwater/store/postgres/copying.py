"""Beginning a session as a copy of another, inside a transaction."""

from lowwater.core.stored import About
from lowwater.errors import BadInput
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.sessions import begin, find, next_version


def copy(connection: Connection, session: str, to: str, about: About) -> int:
    """Begin the session `to` with the ledger of `session`, and return its version, or raise StaleLedger or BadInput."""
    new = begin(connection, to, about)
    # Until the copy is committed its original holds the content, so the original must stay.
    of = find(connection, session, "FOR SHARE")
    if not of.id:
        raise BadInput(f"there is no session {session!r} to copy")
    version = next_version(connection, new.id, of.entries)
    ids = {"of": of.id, "to": new.id, "version": version}
    connection.execute(
        "INSERT INTO entries (session, position, version, at, kind, messages, tokens, body) "
        "SELECT %(to)s, position, %(version)s, at, kind, messages, tokens, body FROM entries WHERE session = %(of)s",
        ids,
    )
    connection.execute(
        "INSERT INTO messages (session, number, content, tokens) "
        "SELECT %(to)s, number, content, tokens FROM messages WHERE session = %(of)s",
        ids,
    )
    connection.execute(
        "UPDATE sessions SET version = %(version)s, entries = original.entries, messages = original.messages, "
        "tokens = original.tokens, compactions = original.compactions, model = original.model, "
        "carried = original.carried, "
        "opened_at = (SELECT min(at) FROM entries WHERE session = %(of)s), "
        "changed_at = (SELECT max(at) FROM entries WHERE session = %(of)s) "
        "FROM sessions AS original WHERE sessions.id = %(to)s AND original.id = %(of)s",
        ids,
    )
    return version
