"""Keeping the full-text index close behind the messages, inside a transaction.

The index is cheap to write for many messages at once and dear for a single one. So an append leaves its messages to be indexed
later, until enough have come together; whoever searches has the rest indexed first, and finds everything.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from lowwater.store.indexing import Conceal, words_of
from lowwater.store.packing import digest, unpack_message

AT_ONCE = 256
"""How many messages wait to be indexed together."""


def waiting(connection: sqlite3.Connection) -> int:
    """Return about how many messages the index does not know; 0 if it knows all."""
    (behind,) = connection.execute(
        "SELECT coalesce((SELECT max(id) FROM contents), 0) - indexed FROM counters"
    ).fetchone()
    return int(behind)


def catch_up(connection: sqlite3.Connection, conceal: Conceal) -> None:
    """Index all messages that the index does not know."""
    if not waiting(connection):
        return
    words = _new_words(connection, conceal)
    connection.executemany("INSERT OR REPLACE INTO search (rowid, text) VALUES (?, ?)", words)
    connection.execute("UPDATE counters SET indexed = coalesce((SELECT max(id) FROM contents), 0)")


def fall_back(connection: sqlite3.Connection) -> None:
    """Have what is new indexed although it gets the place of newer content that was deleted."""
    connection.execute(
        "UPDATE counters SET indexed = min(indexed, coalesce((SELECT max(id) FROM contents), 0))"
    )


def _new_words(connection: sqlite3.Connection, conceal: Conceal) -> Iterator[tuple[int, str]]:
    rows = connection.execute(
        "SELECT id, key, body FROM contents WHERE id > (SELECT indexed FROM counters) ORDER BY id"
    )
    for id, key, body in rows:
        # What is damaged or of an unknown form has no words; its session says so when it is read.
        if isinstance(body, bytes) and digest(body) == key:
            with suppress(msgspec.MsgspecError):
                words = words_of(unpack_message(body), conceal)
                if words:
                    yield id, words
