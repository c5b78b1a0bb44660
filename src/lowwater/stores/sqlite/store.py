"""The store in one SQLite file: `sqlite:///PATH`; `SqliteQueries` has the SQL beside what `stores/sql.py` has.

An append writes its entries, the messages in them (each content once, under its digest), the turn record and events, the
carried state and the session's totals, all under one new version. Words are indexed for search later, in batches.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from lowwater.core.stored import Account, Append, Fingerprint, FingerprintMatch, Hit
from lowwater.stores.addresses import Sync
from lowwater.stores.serialization import StoredMessage, digest_of, restored, shrunk, unpack_message
from lowwater.stores.shared import Conceal, UnwritableAccounts, conceal_nothing, searchable_text
from lowwater.stores.sql import Queries, Row, SqlStore, insertion
from lowwater.stores.sqlite.connections import SqliteConnections

if TYPE_CHECKING:
    from lowwater.core.recall.index_terms import Term

INDEX_BATCH = 256
"""How many messages are indexed together: merging the index for each one would cost more than writing it."""
_MOST_NAMED = 1_000
"""Sessions that are looked up by their names; of more, all are read."""
_CHECK_EVERY = 16
"""How many new contents pass between two checks of how far the index is behind."""
CAUGHT_UP_AT_ONCE = 4 * INDEX_BATCH
"""How many messages an append indexes at most; there are more only after a change of what is indexed."""
_LOOKUP = (
    "SELECT key, name, hint, newest FROM trails JOIN sessions ON sessions.id = trails.session "
    "WHERE tenant = ? AND key IN"
)
FINGERPRINTS_PER_QUERY = 500
"""Keys in one query; SQLite takes at least 999 values."""
# The tables whose rows a session owns.
_OWNED = ("entries", "messages", "turns", "compaction_events", "carried", "trails")
SESSIONS_PER_DELETE = 100
"""How many sessions one transaction deletes: the index is rewritten once for all of them, and other writers have to wait."""


class SqliteQueries(Queries):
    """What the store reads and writes inside one transaction."""

    CARRIED = "(SELECT body FROM carried WHERE session = id)"
    NAMED = ("name",)
    NEXT_VERSION = "INSERT INTO appends (session, entries) VALUES (?, ?) RETURNING version"
    WRITE_CARRIED = "INSERT OR REPLACE INTO carried (body, session) VALUES (?, ?)"
    COPY_CARRIED = "INSERT INTO carried (session, body) SELECT ?, body FROM carried WHERE session = ?"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: object) -> Iterable[Row]:
        """Run a statement and return its rows, if it has any."""
        return self._connection.execute(statement, values)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows."""
        self._for_each(insertion(table, columns), rows)

    def _for_each(self, statement: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(statement, rows)

    def contents(self, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
        """Return key and bytes of the messages with these keys, in any order."""
        query = f"SELECT key, body FROM contents WHERE key IN ({_marks(keys)})"  # noqa: S608 - only question marks
        return ((key, self.body(body)) for key, body in self.rows(query, *keys))

    def body(self, stored: object) -> object:
        """Return the bytes of a message; what is no bytes stays what it is, and is reported as damage."""
        return restored(stored) if isinstance(stored, bytes) else stored

    def accounts(self, names: Sequence[str] | None) -> list[Account]:
        """Return the accounts of these sessions or of all, most recently changed first, or raise DamagedStore."""
        turns = "SELECT version, body FROM turns WHERE session = ? ORDER BY version"
        events = "SELECT version, body FROM compaction_events WHERE session = ? ORDER BY version, ordinal"
        is_few = names is not None and len(names) <= _MOST_NAMED
        wanted = None if names is None else set(names)
        chosen = (
            self.listed(f"WHERE name IN ({_marks(names)})", *names) if names and is_few else self.listed()
        )
        return [
            self.account(id, listed, list(self.rows(turns, id)), list(self.rows(events, id)))
            for id, listed in chosen.items()
            if wanted is None or listed.name in wanted
        ]

    # Search, and the index, which is behind by up to one batch

    def contents_having(self, term: "Term") -> set[int]:
        """Return the contents that have a term of a question."""
        wanted = " OR ".join(f'"{" ".join(form)}"' for form in term.forms)
        return {id for (id,) in self.rows("SELECT rowid FROM search WHERE search MATCH ?", wanted)}

    def messages_with(
        self, contents: Collection[int], session: int | None
    ) -> Iterable[tuple[int, int, int, int]]:
        """Return session, number, content and size of the messages with these contents, in one session or in all."""
        # CROSS JOIN fixes the join order: the messages are looked up by their contents.
        query = (
            "SELECT session, number, content, tokens FROM json_each(?) CROSS JOIN messages ON content = value"
        )
        keys = json_list(contents)
        found = (
            self.rows(query, keys)
            if session is None
            else self.rows(f"{query} WHERE session = ?", keys, session)
        )
        return ((of, number, content, tokens) for of, number, content, tokens in found)

    def places_of(self, words: Sequence[str], contents: Collection[int]) -> dict[int, dict[str, list[int]]]:
        """Return where words of the index stand in these contents, in order, by content and word."""
        query = (
            "SELECT doc, offset FROM occurrences WHERE term = ? AND doc IN (SELECT value FROM json_each(?))"
        )
        keys = json_list(contents)
        found: dict[int, dict[str, list[int]]] = {}
        for word in words:
            for content, at in self.rows(query, word, keys):
                found.setdefault(content, {}).setdefault(word, []).append(at)
        return found

    def unindexed(self) -> int:
        """Return about how many messages are not in the index yet; 0 if all are."""
        ((behind,),) = self.rows("SELECT coalesce((SELECT max(id) FROM contents), 0) - indexed FROM counters")
        return int(behind)

    def index_new_messages(self, conceal: Conceal, most: int = CAUGHT_UP_AT_ONCE) -> None:
        """Index messages that are not in the index yet, the oldest first."""
        (last,) = self.row(
            "SELECT max(id) FROM (SELECT id FROM contents WHERE id > (SELECT indexed FROM counters) ORDER BY id LIMIT ?)",
            most,
        ) or (None,)
        if last is None:
            return
        words = self._new_words(last, conceal)
        self._for_each("INSERT OR REPLACE INTO search (rowid, text) VALUES (?, ?)", words)
        self.rows("UPDATE counters SET indexed = ?", last)

    def _new_words(self, last: int, conceal: Conceal) -> Iterator[tuple[int, str]]:
        rows = self.rows(
            "SELECT id, key, body FROM contents WHERE id > (SELECT indexed FROM counters) AND id <= ? ORDER BY id",
            last,
        )
        for id, key, stored in rows:
            body = self.body(stored)
            # Damaged contents, or those in an unknown form, have no words; reading their session reports them.
            if isinstance(body, bytes) and digest_of(body) == key:
                with suppress(msgspec.MsgspecError):
                    words = searchable_text(unpack_message(body), conceal)
                    if words:
                        yield id, words

    # Fingerprints

    def record_fingerprint(self, fingerprint: Fingerprint) -> None:
        """Record the digests a session was last seen with, if the session is stored."""
        session = self.head(fingerprint.session).id
        if not session:
            return
        self.rows("UPDATE trails SET newest = 0 WHERE session = ? AND newest", session)
        self._for_each(
            "INSERT INTO trails (tenant, key, session, hint, newest) VALUES (?, ?, ?, ?, 1) "
            "ON CONFLICT DO UPDATE SET hint = excluded.hint, newest = 1",
            [(fingerprint.tenant, key, session, fingerprint.hint) for key in fingerprint.keys],
        )

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes]) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""
        parts = (
            keys[start : start + FINGERPRINTS_PER_QUERY]
            for start in range(0, len(keys), FINGERPRINTS_PER_QUERY)
        )
        return [
            FingerprintMatch(key=key, session=name, hint=hint, newest=bool(newest))
            for asked in parts
            for key, name, hint, newest in self.rows(f"{_LOOKUP} ({_marks(asked)})", tenant, *asked)
        ]

    def adopt(self, secret: bytes, trails: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Take over the secret of another file and its fingerprints, whose keys were made with that secret."""
        if not secret:
            return
        self.rows("UPDATE secret SET body = ?", secret)
        self._for_each(
            "INSERT OR IGNORE INTO trails (tenant, key, session, hint, newest) "
            "SELECT ?, ?, id, ?, ? FROM sessions WHERE name = ?",
            [(tenant, key, hint, newest, name) for name, (tenant, key, _, hint, newest) in trails],
        )

    # Appending

    def store_contents(self, contents: Sequence[StoredMessage], conceal: Conceal) -> dict[bytes, int]:
        """Return the row id of each content by its key; they are indexed when there are enough that are not yet."""
        ids = {content.key: self._content_id(content) for content in contents}
        if any(id % _CHECK_EVERY == 0 for id in ids.values()) and self.unindexed() >= INDEX_BATCH:
            self.index_new_messages(conceal, max(CAUGHT_UP_AT_ONCE, len(ids)))
        return ids

    def _content_id(self, content: StoredMessage) -> int:
        insert = "INSERT INTO contents (key, body) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
        new = self.row(insert, content.key, shrunk(content))
        (id,) = new or self.row("SELECT id FROM contents WHERE key = ?", content.key) or (0,)
        return int(id)

    def write_account(self, id: int, version: int, new: Append) -> None:
        """Write the turn record and the events of an append, or raise UnwritableAccounts."""
        try:
            super().write_account(id, version, new)
        except sqlite3.OperationalError as error:
            # SQLITE_ERROR: a table or column is missing, and not that the disk is full or the file is locked.
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            raise UnwritableAccounts(str(error)) from error

    # Deleting

    def delete(self, sessions: Sequence[str]) -> int:
        """Delete sessions, with the contents that no other session holds; return how many there were."""
        found = [self.head(session).id for session in dict.fromkeys(sessions)]
        ids = [id for id in found if id]
        orphans = sum([self._delete_one(id) for id in ids])
        self._forget_versions(ids)
        # SQLite may use the deleted row ids again.
        self.rows("UPDATE counters SET indexed = min(indexed, coalesce((SELECT max(id) FROM contents), 0))")
        if orphans:
            # FTS5 only marks deleted rows; their words leave the file when the index is merged.
            self.rows("INSERT INTO search (search) VALUES ('optimize')")
        return len(ids)

    def _delete_one(self, id: int) -> int:
        """Delete one session except its versions, and return how many contents went with it."""
        contents = list(self.rows("SELECT DISTINCT content FROM messages WHERE session = ?", id))
        for table in _OWNED:
            self.rows(f"DELETE FROM {table} WHERE session = ?", id)  # noqa: S608 - our own names
        self.rows("DELETE FROM sessions WHERE id = ?", id)
        is_held = "SELECT 1 FROM messages WHERE content = ?"
        orphans = [content for content in contents if self.row(is_held, *content) is None]
        self._for_each("DELETE FROM search WHERE rowid = ?", orphans)
        self._for_each("DELETE FROM contents WHERE id = ?", orphans)
        return len(orphans)

    def _forget_versions(self, ids: Sequence[int]) -> None:
        """Delete the versions of sessions, but keep the highest of all, for no session: otherwise SQLite would use that number again."""
        self.rows(
            f"DELETE FROM appends WHERE session IN ({_marks(ids)}) "  # noqa: S608 - only question marks
            "AND version < (SELECT max(version) FROM appends)",
            *ids,
        )
        self.rows(f"UPDATE appends SET session = 0, entries = 0 WHERE session IN ({_marks(ids)})", *ids)  # noqa: S608


def json_list(numbers: Iterable[int]) -> str:
    """Return numbers as one value of a statement, however many there are."""
    return f"[{','.join(map(str, sorted(numbers)))}]"


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


_log = logging.getLogger("lowwater")
Result = TypeVar("Result")


class SqliteStore(SqlStore[SqliteQueries]):
    """Keeps sessions in a file that any number of threads and processes may have open.

    A missing file is created, readable for this user only.
    """

    def __init__(self, path: Path, *, conceal: Conceal = conceal_nothing, sync: Sync = "full") -> None:
        super().__init__(path, conceal)
        self._connections = SqliteConnections(path, sync=sync)

    @contextmanager
    def _reading(self) -> Iterator[SqliteQueries]:
        with self._connections.reading() as connection:
            yield SqliteQueries(connection)

    def _write(self, work: Callable[[SqliteQueries], Result]) -> Result:
        with self._connections.writing() as connection:
            return work(SqliteQueries(connection))

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions; their bytes are overwritten in the file, and in the log unless somebody is reading from it."""
        names = (session, *others)
        deleted = sum(
            self._delete_some(names[start : start + SESSIONS_PER_DELETE])
            for start in range(0, len(names), SESSIONS_PER_DELETE)
        )
        if deleted:
            self._connections.empty_log()
        return deleted > 0

    def _delete_some(self, sessions: Sequence[str]) -> int:
        return self._write(lambda queries: queries.delete(sessions))

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best, of all that were there when it was called."""
        with self._reading() as queries:
            behind = queries.unindexed()
        if behind > CAUGHT_UP_AT_ONCE:
            _log.info("%s: indexing %s messages for search", self._connections.path, f"{behind:,}")
        # In several transactions, so that other writers do not wait long.
        for _ in range(-(-behind // CAUGHT_UP_AT_ONCE)):
            self._write(lambda queries: queries.index_new_messages(self._conceal))
        with self._reading() as queries:
            return queries.search(words, session, limit)

    def backup(self, to: Path) -> None:
        """Write a copy of the whole store into a file that does not exist yet, or raise BadInput; others may go on writing."""
        self._connections.backup(to)

    def adopt(self, secret: bytes, trails: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Take over from another file what the gateway recognises sessions by: its secret, and its fingerprints by session."""
        self._write(lambda queries: queries.adopt(secret, trails))

    def close(self) -> None:
        """Close the file."""
        self._connections.close()
