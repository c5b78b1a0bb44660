"""Finding messages by their words, inside a transaction."""

import sqlite3

from lowwater.core.stored import Hit
from lowwater.store.indexing import phrases_in

# CROSS JOIN keeps the order: the index is asked once, and not for each message of a session.
_SEARCH = """SELECT sessions.name, messages.number, messages.tokens, -bm25(search) AS score
    FROM search CROSS JOIN messages ON messages.content = search.rowid
    CROSS JOIN sessions ON sessions.id = messages.session
    WHERE search MATCH :words AND (:session IS NULL OR sessions.name = :session)
    ORDER BY score DESC, sessions.version DESC, messages.number DESC LIMIT :limit"""


def search(connection: sqlite3.Connection, words: str, session: str | None, limit: int) -> list[Hit]:
    """Return the messages that have one of the words, the best match first and the newest first among equals."""
    phrases = phrases_in(words)
    if not phrases or limit <= 0:
        return []
    query = " OR ".join(f'"{phrase}"' for phrase in phrases)
    rows = connection.execute(_SEARCH, {"words": query, "session": session, "limit": limit})
    return [
        Hit(session=name, number=number, tokens=tokens, score=score) for name, number, tokens, score in rows
    ]
