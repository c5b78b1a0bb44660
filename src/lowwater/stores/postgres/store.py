"""The store in a PostgreSQL database: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`; `PostgresQueries` has the SQL beside what `stores/sql.py` has.

The tables are those of the SQLite store. Two things differ: text is escaped, because PostgreSQL's text cannot hold a zero
byte, and writers run side by side, so they lock the rows of the session and of the contents they rely on.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import msgspec
from psycopg.errors import UndefinedColumn, UndefinedTable

from lowwater.core.stored import Account, Fingerprint, FingerprintMatch, Hit
from lowwater.stores.postgres.connections import Address, Connection, PostgresConnections
from lowwater.stores.serialization import StoredMessage, digest_of, unpack_message
from lowwater.stores.shared import (
    Conceal,
    UnwritableAccounts,
    conceal_nothing,
    searchable_text,
)
from lowwater.stores.sql import AppendRows, Queries, Row, SqlStore

if TYPE_CHECKING:
    from lowwater.core.recall.index_terms import Term

LONGEST_TERM = 200
"""Characters of a term that are indexed; PostgreSQL takes at most 2 KB."""
CONTENTS_PER_STATEMENT = 500
"""Messages written in one statement."""
TERMS_PER_ROW = 1_000
"""Terms in one row: a `tsvector` takes 1 MB and 256 positions per term, so a long text has several rows."""
OVERLAP = 16
"""Terms that a row repeats from the one before, so that phrases of up to so many terms are found across rows."""
# Every row that a session owns, its own row last.
_OWNED = (
    "DELETE FROM entries WHERE session = ?",
    "DELETE FROM messages WHERE session = ?",
    "DELETE FROM turns WHERE session = ?",
    "DELETE FROM compaction_events WHERE session = ?",
    "DELETE FROM appends WHERE session = ?",
    "DELETE FROM trails WHERE session = ?",
    "DELETE FROM sessions WHERE id = ?",
)


_TYPES = {"at": "double precision", "kind": "text", "body": "bytea"}
"""The types of columns that are no integers."""


class PostgresQueries(Queries):
    """What the store reads and writes inside one transaction; text is escaped and unescaped on its way."""

    CARRIED = "carried"
    NAMED = ("key", "name")
    NEXT_VERSION = (
        "INSERT INTO appends (session, entries, version) VALUES (?, ?, nextval('versions')) RETURNING version"
    )
    WRITE_CARRIED = "UPDATE sessions SET carried = ? WHERE id = ?"
    COPY_CARRIED = (
        "UPDATE sessions SET carried = old.carried FROM sessions AS old WHERE sessions.id = ? AND old.id = ?"
    )
    # With its row locked, the versions of a session grow in the order in which they are committed.
    LOCK_TO_WRITE = "FOR UPDATE"
    # Until a copy is committed only the original holds the contents, so it must not be deleted meanwhile.
    LOCK_TO_COPY = "FOR SHARE"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: object) -> Iterable[Row]:
        """Run a statement and return its rows, if it has any."""
        return _unescaped(self._connection.execute(_translated(statement), _escaped(values), binary=True))

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows in one statement."""
        if rows:
            arrays = ", ".join(f"?::{_TYPES.get(column, 'bigint')}[]" for column in columns)
            self.rows(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({arrays})",  # noqa: S608 - our own names
                *map(list, zip(*rows, strict=True)),
            )

    def named(self, session: str) -> tuple[object, ...]:
        """Return the digest a session is found by, and its name, or raise UnicodeEncodeError; a name may be too long for an index."""
        return (name_key(session), session)

    def contents(self, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
        """Return key and bytes of the messages with these keys, in any order."""
        rows = self.rows("SELECT key, body FROM contents WHERE key = ANY(?::bytea[])", list(keys))
        return ((key, body) for key, body in rows)

    def accounts(self, names: Sequence[str] | None) -> list[Account]:
        """Return the accounts of these sessions or of all, most recently changed first, or raise DamagedStore."""
        if names is None:
            listed = self.listed()
        else:
            listed = self.listed("WHERE key = ANY(?::bytea[])", [name_key(name) for name in names])
        turns = self._bodies("turns", "version", listed)
        events = self._bodies("compaction_events", "version, ordinal", listed)
        return [self.account(id, session, turns[id], events[id]) for id, session in listed.items()]

    def _bodies(self, table: str, order: str, sessions: Iterable[int]) -> dict[int, list[Row]]:
        """Return versions and bytes, by session."""
        grouped: dict[int, list[Row]] = defaultdict(list)
        query = f"SELECT session, version, body FROM {table} WHERE session = ANY(?::bigint[]) ORDER BY session, {order}"  # noqa: S608 - our own names
        for session, version, body in self.rows(query, list(sessions)):
            grouped[session].append((version, body))
        return grouped

    def contents_having(self, term: "Term") -> set[int]:
        """Return the contents that have a term of a question."""
        # The planner underestimates a sequential scan: it does not count the large values that are stored outside the rows.
        self.rows("SET LOCAL enable_seqscan = off")
        found = self.rows(
            "SELECT DISTINCT content FROM search WHERE terms @@ ?::text::tsquery", tsquery_of(term.forms)
        )
        return {content for (content,) in found}

    def messages_with(
        self, contents: Collection[int], session: int | None
    ) -> Iterable[tuple[int, int, int, int]]:
        """Return session, number, content and size of the messages with these contents, in one session or in all."""
        query = "SELECT session, number, content, tokens FROM messages WHERE content = ANY(?::bigint[])"
        keys = list(contents)
        found = (
            self.rows(query, keys)
            if session is None
            else self.rows(f"{query} AND session = ?", keys, session)
        )
        return ((of, number, content, tokens) for of, number, content, tokens in found)

    def places_of(self, words: Sequence[str], contents: Collection[int]) -> dict[int, dict[str, list[int]]]:
        """Return where words of the index stand in these contents, in order, by content and word."""
        indexed = {word[:LONGEST_TERM]: word for word in words}
        rows = self.rows(
            "SELECT content, part, lexeme, positions FROM search, unnest(terms) "
            "WHERE content = ANY(?::bigint[]) AND lexeme = ANY(?::text[])",
            *(list(contents), list(indexed)),
        )
        found: dict[int, dict[str, set[int]]] = {}
        for content, part, lexeme, positions in rows:
            start = max(part * TERMS_PER_ROW - OVERLAP, 0)
            places = found.setdefault(content, {}).setdefault(indexed[lexeme], set())
            places.update(start + at - 1 for at in positions)
        return {
            content: {word: sorted(places) for word, places in by_word.items()}
            for content, by_word in found.items()
        }

    def contents_to_index_again(self) -> int:
        """Return how many contents were indexed by an older Lowwater, which left out parts of names; 0 if none were."""
        ((count,),) = self.rows("SELECT upto - done FROM reindexed")
        return int(count)

    def index_again(self, conceal: Conceal, most: int) -> None:
        """Index the next contents again that an older Lowwater has indexed, the oldest first."""
        # One process at a time does this; the others wait, and find it done.
        ((done, upto),) = self.rows("SELECT done, upto FROM reindexed FOR UPDATE")
        rows = list(
            self.rows(
                "SELECT id, key, body FROM contents WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
                done,
                upto,
                most,
            )
        )
        words: dict[int, str] = {}
        for id, key, body in rows:
            # Damaged contents, or those in an unknown form, keep the words they have.
            if isinstance(body, bytes) and digest_of(body) == key:
                with suppress(msgspec.MsgspecError):
                    words[id] = searchable_text(unpack_message(body), conceal)
        self.rows("DELETE FROM search WHERE content = ANY(?::bigint[])", list(words))
        self._index(words)
        self.rows("UPDATE reindexed SET done = ?", rows[-1][0] if len(rows) == most else upto)

    # Fingerprints

    def record_fingerprint(self, fingerprint: Fingerprint) -> None:
        """Record the digests a session was last seen with, if it is stored; its row is locked, so that only one set is the newest."""
        session = self.head(fingerprint.session, "FOR UPDATE")
        if not session.id:
            return
        self.rows("UPDATE trails SET newest = false WHERE session = ? AND newest", session.id)
        self.rows(
            "INSERT INTO trails (tenant, key, session, hint, newest) SELECT ?, key, ?, ?, true FROM unnest(?::bytea[]) AS key "
            "ON CONFLICT (tenant, key, session) DO UPDATE SET hint = excluded.hint, newest = true",
            *(fingerprint.tenant, session.id, fingerprint.hint, list(dict.fromkeys(fingerprint.keys))),
        )

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes]) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""
        rows = self.rows(
            "SELECT trails.key, name, hint, newest FROM trails JOIN sessions ON sessions.id = trails.session "
            "WHERE tenant = ? AND trails.key = ANY(?::bytea[])",
            *(tenant, list(keys)),
        )
        return [
            FingerprintMatch(key=bytes(key), session=name, hint=hint, newest=newest)
            for key, name, hint, newest in rows
        ]

    # Appending

    def write(self, rows: AppendRows) -> None:
        """Write the rows of an append in one go, or raise UnwritableAccounts if only its accounts cannot be written."""
        try:
            with self._connection.pipeline():
                super().write(rows)
        except (UndefinedTable, UndefinedColumn) as error:
            if rows.new.record is None and not rows.new.events:
                raise
            # In a pipeline, the driver takes the statements after the failed one for prepared, but the server does not have them.
            self._connection.close()
            # Which statement failed is unknown. If it was not one of the accounts, writing without them fails again.
            raise UnwritableAccounts(error.diag.message_primary or type(error).__name__) from error

    def store_contents(self, contents: Sequence[StoredMessage], conceal: Conceal) -> dict[bytes, int]:
        """Return the row id of each content by its key; new contents are inserted and indexed, existing rows are not touched."""
        wanted = {content.key: content for content in contents}
        keys = sorted(wanted)
        ids: dict[bytes, int] = {}
        for start in range(0, len(keys), CONTENTS_PER_STATEMENT):
            missing = keys[start : start + CONTENTS_PER_STATEMENT]
            while missing:
                ids |= self._lock_known(missing)
                new = self._insert_new([wanted[key] for key in missing if key not in ids])
                self._index({id: searchable_text(wanted[key].message, conceal) for key, id in new.items()})
                ids |= new
                # Whatever another process inserted or deleted between the two statements is tried again.
                missing = [key for key in missing if key not in ids]
        return ids

    def _lock_known(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        query = "SELECT key, id FROM contents WHERE key = ANY(?::bytea[]) ORDER BY key FOR KEY SHARE"
        return dict(self.rows(query, list(keys)))

    def _insert_new(self, contents: Sequence[StoredMessage]) -> dict[bytes, int]:
        if not contents:
            return {}
        rows = self.rows(
            "INSERT INTO contents (key, body) SELECT * FROM unnest(?::bytea[], ?::bytea[]) "
            "ON CONFLICT (key) DO NOTHING RETURNING key, id",
            *([content.key for content in contents], [content.body for content in contents]),
        )
        return dict(rows)

    def _index(self, words: dict[int, str]) -> None:
        rows = [
            (id, part, terms) for id, text in words.items() for part, terms in enumerate(tsvectors_of(text))
        ]
        for start in range(0, len(rows), CONTENTS_PER_STATEMENT):
            contents, parts, terms = zip(*rows[start : start + CONTENTS_PER_STATEMENT], strict=True)
            self.rows(
                "INSERT INTO search (content, part, terms) SELECT content, part, terms::tsvector "
                "FROM unnest(?::bigint[], ?::integer[], ?::text[]) AS new (content, part, terms)",
                *(list(contents), list(parts), list(terms)),
            )

    # Deleting

    def delete(self, session: str) -> bool:
        """Delete a session, with the contents that no other session holds; return whether there was one."""
        now = self.head(session, "FOR UPDATE")
        if not now.id:
            return False
        held = self.rows(
            "SELECT id FROM contents WHERE id IN (SELECT content FROM messages WHERE session = ?) ORDER BY key FOR UPDATE",
            now.id,
        )
        locked = [id for (id,) in held]
        for statement in _OWNED:
            self.rows(statement, now.id)
        self.rows(
            "WITH orphans AS (DELETE FROM contents WHERE id = ANY(?::bigint[]) "
            "AND NOT EXISTS (SELECT FROM messages WHERE content = contents.id) RETURNING id) "
            "DELETE FROM search USING orphans WHERE content = orphans.id",
            locked,
        )
        return True


_ESCAPE = re.compile(r"\\([\\0])")


def escape(text: str) -> str:
    r"""Return the text with `\0` for a zero byte and two backslashes for one."""
    return text.replace("\\", "\\\\").replace("\x00", "\\0")


def unescape(text: str) -> str:
    """Return the text that was escaped."""
    return _ESCAPE.sub(lambda found: "\x00" if found[1] == "0" else "\\", text)


def name_key(name: str) -> bytes:
    """Return the digest a session is found by, or raise UnicodeEncodeError; a name itself may be too long for an index."""
    return digest_of(name.encode())


@cache
def _translated(statement: str) -> bytes:
    """Return a statement with the driver's marks for values."""
    return statement.replace("?", "%s").encode()


def _escaped(values: Row) -> Row:
    return tuple(escape(value) if isinstance(value, str) else value for value in values)


def _unescaped(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield tuple(unescape(value) if isinstance(value, str) else value for value in row)


def tsquery_of(forms: Sequence[Sequence[str]]) -> str:
    """Return a term of a question as a `tsquery` literal; its words are letters and digits, so none needs quotes."""
    return " | ".join(f"({' <-> '.join(word[:LONGEST_TERM] for word in form)})" for form in forms)


def tsvectors_of(words: str) -> Iterator[str]:
    """Yield the terms of a text with their positions, as `tsvector` literals."""
    from lowwater.core.recall.index_terms import folded_terms  # noqa: PLC0415 - for those who index

    terms = folded_terms(words)
    for start in range(0, len(terms), TERMS_PER_ROW):
        row = terms[max(start - OVERLAP, 0) : start + TERMS_PER_ROW]
        yield " ".join(f"{term[:LONGEST_TERM]}:{place}" for place, term in enumerate(row, start=1))


_log = logging.getLogger("lowwater")
Result = TypeVar("Result")
INDEXED_AT_ONCE = 1_000
"""How many messages one transaction indexes again."""


class PostgresStore(SqlStore[PostgresQueries]):
    """Keeps sessions in tables that any number of threads, processes and machines may use; missing tables are created.

    The tables are in the schema `lowwater`, or in the first schema of the `search_path` in the address
    (`?options=-csearch_path%3Dmine`).
    """

    def __init__(self, address: str, *, conceal: Conceal = conceal_nothing) -> None:
        self._address = Address(address)
        super().__init__(self._address, conceal)
        self._connections = PostgresConnections(self._address)
        self._is_indexed = False

    @contextmanager
    def _reading(self) -> Iterator[PostgresQueries]:
        with self._connections.reading() as connection:
            yield PostgresQueries(connection)

    def _write(self, work: Callable[[PostgresQueries], Result]) -> Result:
        return self._connections.writing(lambda connection: work(PostgresQueries(connection)))

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions; their rows are gone when it returns, their bytes when the server has vacuumed the tables."""
        return sum(self._delete_one(name) for name in (session, *others)) > 0

    def _delete_one(self, session: str) -> bool:
        return self._write(lambda queries: queries.delete(session))

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best; what an older Lowwater has indexed is indexed again first."""
        if not self._is_indexed:
            self._index_again()
        with self._reading() as queries:
            return queries.search(words, session, limit)

    def _index_again(self) -> None:
        with self._reading() as queries:
            left = queries.contents_to_index_again()
        if left > INDEXED_AT_ONCE:
            _log.info("%s: indexing %s messages for search", self._address, f"{left:,}")
        while left:
            self._write(lambda queries: queries.index_again(self._conceal, INDEXED_AT_ONCE))
            with self._reading() as queries:
                left = queries.contents_to_index_again()
        self._is_indexed = True

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()
