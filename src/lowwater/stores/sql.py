"""The SQL that SQLite and PostgreSQL share: `Queries` inside one transaction, and `SqlStore`, which opens transactions for them.

A statement is written once, with `?` for each value. What a database does in its own way is in its `store.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Compacted, Entry
from lowwater.core.ledger import Numbered
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Listed,
    Outline,
    Stored,
    records_before_events,
)
from lowwater.errors import BadInput, StaleLedger
from lowwater.stores.serialization import (
    Broken,
    Packed,
    StoredMessage,
    pack_differences,
    pack_entry,
    pack_event,
    pack_record,
    seal,
)
from lowwater.stores.shared import (
    EVENT_COLUMNS,
    TURN_COLUMNS,
    AccountFallback,
    Conceal,
    DamagedVersion,
    EntryRow,
    Growth,
    MessageRow,
    event_values,
    growth_of,
    landmark,
    load_base,
    restore_carried,
    restore_entries,
    restore_event,
    restore_messages,
    restore_record,
    turn_values,
)

if TYPE_CHECKING:
    from lowwater.core.recall.index_terms import Term
    from lowwater.core.recall.ranking import Candidate, Place

Row = tuple[Any, ...]
Result = TypeVar("Result")


class SessionRow(Struct, frozen=True, kw_only=True):
    """A row of `sessions`; a session that does not exist has the id 0. `carried` is the sealed state, None if none was stored."""

    name: str
    id: int = 0
    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0
    about: About = About()
    carried: object = None


_HEAD = "id, version, entries, messages, tokens"
_ABOUT = ("title", "source", "parent", "ended_at", "ended_because")
_LISTED = "id, name, version, entries, messages, turns, compactions, model, coalesce(opened_at, 0.0), coalesce(changed_at, 0.0)"


def insertion(table: str, columns: Sequence[str]) -> str:
    """Return the statement that inserts one row."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - our own names


_ENTRY = ("session", "position", "version", "at", "kind", "messages", "tokens", "body")
_MESSAGE = ("session", "number", "content", "tokens")
_INSERT_TURN = insertion("turns", ("session", "version", *TURN_COLUMNS, "body"))
_INSERT_EVENT = insertion("compaction_events", ("session", "version", "ordinal", *EVENT_COLUMNS, "body"))


class AppendRows(Struct, frozen=True, kw_only=True):
    """What an append writes into the tables of a session."""

    session: int
    version: int
    new: Append
    entries: Sequence[Row]
    messages: Sequence[Row]
    growth: Growth


class Queries(ABC):
    """What a store reads and writes inside one transaction; a database adds what it does in its own way.

    Values stand as `?` in a statement. The tables have the same names and columns in both databases.
    """

    CARRIED: ClassVar[str]
    """The expression for the carried state of a row of `sessions`."""
    NAMED: ClassVar[tuple[str, ...]]
    """The columns that hold a session's name, first the one by which it is found."""
    NEXT_VERSION: ClassVar[str]
    """Inserts into `appends` a session and its number of entries, and returns a version that no append ever had."""
    WRITE_CARRIED: ClassVar[str]
    """Stores the carried state (the first value) of a session (the second)."""
    COPY_CARRIED: ClassVar[str]
    """Gives the session of the first value the carried state of the second."""
    LOCK_TO_WRITE: ClassVar[str] = ""
    LOCK_TO_COPY: ClassVar[str] = ""

    @abstractmethod
    def rows(self, statement: str, *values: object) -> Iterable[Row]:
        """Run a statement and return its rows, if it has any."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows."""

    @abstractmethod
    def store_contents(self, contents: Sequence[StoredMessage], conceal: Conceal) -> dict[bytes, int]:
        """Return the row id of each content by its key; new contents are inserted and indexed, existing rows are not touched."""

    @abstractmethod
    def contents(self, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
        """Return key and bytes of the messages with these keys, in any order."""

    @abstractmethod
    def accounts(self, names: Sequence[str] | None) -> list[Account]:
        """Return the accounts of these sessions or of all, most recently changed first, or raise DamagedStore."""

    @abstractmethod
    def record_fingerprint(self, fingerprint: Fingerprint) -> None:
        """Record the digests a session was last seen with, if the session is stored."""

    @abstractmethod
    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes]) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""

    def body(self, stored: object) -> object:
        """Return the bytes of a message as they were before the database shortened them."""
        return stored

    def named(self, session: str) -> tuple[object, ...]:
        """Return the values of the columns that hold a session's name."""
        return (session,)

    def row(self, statement: str, *values: object) -> Row | None:
        """Return the first row, None if there is none."""
        return next(iter(self.rows(statement, *values)), None)

    def head(self, session: str, lock: str = "") -> SessionRow:
        """Return the session's row without what is not needed to write it; locked if asked to (`FOR UPDATE`, `FOR SHARE`)."""
        query = f"SELECT {_HEAD} FROM sessions WHERE {self.NAMED[0]} = ? {lock}"  # noqa: S608 - our own words
        return self._session(session, self.row(query, self.named(session)[0]))

    def find(self, session: str) -> SessionRow:
        """Return the session's whole row, or an empty one."""
        query = f"SELECT {_HEAD}, {', '.join(_ABOUT)}, {self.CARRIED} FROM sessions WHERE {self.NAMED[0]} = ?"  # noqa: S608 - likewise
        row = self.row(query, self.named(session)[0])
        if row is None:
            return SessionRow(name=session)
        return replace(self._session(session, row), about=_about(row[5:-1]), carried=row[-1])

    def _session(self, name: str, row: Row | None) -> SessionRow:
        if row is None:
            return SessionRow(name=name)
        id, version, entries, messages, tokens = row[:5]
        return SessionRow(
            name=name, id=id, version=version, entries=entries, messages=messages, tokens=tokens
        )

    # Reading a session

    def read(self, session: str, since: int, until: int | None) -> Stored:
        """Return what was appended after `since` and not after `until`, or raise StaleLedger or DamagedStore."""
        now = self.find(session)
        first = self._entries_at(now, since)
        version, end = (now.version, now.entries) if until is None else self._last_version_by(now.id, until)
        with self.damage_reported(now):
            entries = tuple(self._entries(now.id, first, end))
        return Stored(
            version=version, entries=entries, carried=restore_carried(session, now.carried), about=now.about
        )

    def outline(self, session: str) -> Outline:
        """Return a session without its entries, or raise DamagedStore."""
        now = self.find(session)
        landmarks = self.rows(
            "SELECT position, kind, at, messages, tokens FROM entries "
            "WHERE session = ? AND kind <> 'appended' ORDER BY position",
            now.id,
        )
        return Outline(
            version=now.version,
            entries=now.entries,
            messages=now.messages,
            tokens=now.tokens,
            landmarks=tuple(landmark(*row) for row in landmarks),
            carried=restore_carried(session, now.carried),
            about=now.about,
        )

    def entries(self, session: str, first: int, end: int, version: int) -> list[Entry]:
        """Return the entries at these positions, or raise StaleLedger or DamagedStore."""
        now = self.head(session)
        self._entries_at(now, version)
        with self.damage_reported(now):
            return list(self._entries(now.id, max(first, 0), min(end, now.entries)))

    def messages(self, session: str, first: int, end: int, version: int) -> list[Numbered]:
        """Return the messages with these numbers, or raise StaleLedger or DamagedStore."""
        now = self.head(session)
        self._entries_at(now, version)
        numbers = range(max(first, 1), min(end, now.messages + 1))
        rows = self.rows(
            "SELECT number, tokens, key, body FROM messages JOIN contents ON contents.id = content "
            "WHERE session = ? AND number >= ? AND number < ? ORDER BY number",
            *(now.id, numbers.start, numbers.stop),
        )
        found = (
            MessageRow(number=number, tokens=tokens, key=key, body=self.body(body))
            for number, tokens, key, body in rows
        )

        def version_of(number: int) -> int:
            query = "SELECT version FROM entries WHERE session = ? AND messages < ? ORDER BY position DESC LIMIT 1"
            row = self.row(query, now.id, number)
            return row[0] if row else 0

        with self.damage_reported(now):
            return list(restore_messages(numbers, found, version_of))

    def _entries_at(self, session: SessionRow, version: int) -> int:
        """Return how many entries a session had at a version, or raise StaleLedger if it never had that version."""
        if not version:
            return 0
        row = self.row("SELECT entries FROM appends WHERE session = ? AND version = ?", session.id, version)
        if row is None:
            raise StaleLedger(session.name, expected=version, found=session.version)
        return int(row[0])

    def _last_version_by(self, id: int, until: int) -> tuple[int, int]:
        """Return the last version that is not after `until`, and how many entries the session had then."""
        row = self.row(
            "SELECT version, entries FROM appends WHERE session = ? AND version <= ? ORDER BY version DESC LIMIT 1",
            *(id, until),
        )
        return (row[0], row[1]) if row else (0, 0)

    def _entries(self, id: int, first: int, end: int) -> Iterator[Entry]:
        found = self.rows(
            "SELECT version, position, body FROM entries WHERE session = ? AND position >= ? AND position < ? "
            "ORDER BY position",
            *(id, first, end),
        )
        rows = (
            EntryRow(version=version, position=position, sealed=body) for version, position, body in found
        )
        return restore_entries(rows, self.contents, lambda position: self._entry_body(id, position))

    def _entry_body(self, id: int, position: int) -> object:
        row = self.row("SELECT body FROM entries WHERE session = ? AND position = ?", id, position)
        return row[0] if row else None

    @contextmanager
    def damage_reported(self, session: SessionRow) -> Iterator[None]:
        """Turn DamagedVersion into DamagedStore, with the session's name and the last version before the damage."""
        try:
            yield
        except DamagedVersion as damage:
            whole, _ = self._last_version_by(session.id, damage.version - 1)
            raise damage.reported(session.name, whole) from damage

    # Search

    def search(self, words: str, session: str | None, limit: int) -> list[Hit]:
        """Return the messages that match best: what has most of the words is looked at closely, and ranked by one rule for all stores."""
        from lowwater.core.recall.index_terms import read_question  # noqa: PLC0415 - for those who search
        from lowwater.core.recall.ranking import Corpus, likely, rank  # noqa: PLC0415 - likewise

        question = read_question(words)
        of = None if session is None else self.head(session)
        if not question.terms or limit <= 0 or (of is not None and not of.id):
            return []
        contents = [self.contents_having(term) for term in question.terms]
        found = _Found(self, of, frozenset().union(*contents))
        having = [[place for content in each for place in found.places.get(content, ())] for each in contents]
        corpus = Corpus(messages=found.messages, tokens=found.tokens, having=tuple(map(len, having)))
        best = likely(having, corpus, limit)
        where = self.places_of(question.words, {found.content_of(place) for place in best})
        ranked = rank(question, {place: found.candidate(place, where) for place in best}, corpus)
        return list(islice(found.hits(ranked), limit))

    @abstractmethod
    def contents_having(self, term: "Term") -> set[int]:
        """Return the contents that have a term of a question."""

    @abstractmethod
    def messages_with(
        self, contents: Collection[int], session: int | None
    ) -> Iterable[tuple[int, int, int, int]]:
        """Return session, number, content and size of the messages with these contents, in one session or in all."""

    @abstractmethod
    def places_of(self, words: Sequence[str], contents: Collection[int]) -> dict[int, dict[str, list[int]]]:
        """Return where words of the index stand in these contents, in order, by content and word."""

    # Lists and accounts

    def sessions(self) -> list[Listed]:
        """Return all sessions, most recently changed first."""
        return list(self.listed().values())

    def listed(self, where: str = "", *values: object) -> dict[int, Listed]:
        """Return the sessions that fit a condition by their ids, most recently changed first."""
        query = f"SELECT {', '.join(_ABOUT)}, {_LISTED} FROM sessions {where} ORDER BY version DESC"  # noqa: S608 - our own names
        size, fields = len(_ABOUT), Listed.__struct_fields__
        return {
            row[size]: Listed(about=_about(row[:size]), **dict(zip(fields, row[size + 1 :], strict=False)))
            for row in self.rows(query, *values)
        }

    def account(self, id: int, listed: Listed, turns: Sequence[Row], events: Sequence[Row]) -> Account:
        """Return the account of a session from the versions and bytes of its records and events, or raise DamagedStore."""
        with self.damage_reported(SessionRow(name=listed.name, id=id)):
            return Account(
                session=listed,
                records=tuple(restore_record(version, body) for version, body in turns),
                events=tuple(restore_event(version, body) for version, body in events),
                turns_before=records_before_events(
                    [version for version, _ in turns], [version for version, _ in events]
                ),
            )

    def secret(self) -> bytes:
        """Return the random bytes that were drawn when the tables were created."""
        row = self.row("SELECT body FROM secret")
        assert row is not None
        return bytes(row[0])

    # Writing

    def append(
        self, session: str, expected: int, new: Append, packed: Sequence[Packed], conceal: Conceal
    ) -> int:
        """Write an append whose entries are `packed`, and return the new version, or raise StaleLedger."""
        now = self.head(session, self.LOCK_TO_WRITE)
        if now.version != expected:
            raise StaleLedger(session, expected=expected, found=now.version)
        if new == Append():
            return expected
        if not now.id:
            now = self._begin(session, About())
        version = self._next_version(now.id, now.entries + len(packed))
        contents = [content for one in packed for content in one.contents]
        ids = self.store_contents(contents, conceal)
        rows = AppendRows(
            session=now.id,
            version=version,
            new=new,
            entries=_entry_rows(now, version, self._as_differences(now, packed)),
            messages=[
                (now.id, number, ids[content.key], content.tokens)
                for number, content in enumerate(contents, start=now.messages + 1)
            ],
            growth=growth_of(new, contents),
        )
        self.write(rows)
        return version

    def write(self, rows: AppendRows) -> None:
        """Write the rows of an append, or raise UnwritableAccounts if only its accounts cannot be written."""
        id, new = rows.session, rows.new
        self.insert("entries", _ENTRY, rows.entries)
        self.insert("messages", _MESSAGE, rows.messages)
        self.write_account(id, rows.version, new)
        if new.carried is not None:
            self.rows(self.WRITE_CARRIED, seal(new.carried), id)
        if new.about is not None:
            columns = ", ".join(f"{column} = ?" for column in _ABOUT)
            self.rows(f"UPDATE sessions SET {columns} WHERE id = ?", *_values(new.about), id)  # noqa: S608 - our own names
        self._add_to_totals(id, rows.version, rows.growth)

    def write_account(self, id: int, version: int, new: Append) -> None:
        """Write the turn record and the events of an append."""
        if new.record is not None:
            whole = seal(pack_record(new.record))
            self.rows(_INSERT_TURN, id, version, *turn_values(new.record), whole)
        for ordinal, event in enumerate(new.events):
            whole = seal(pack_event(event))
            self.rows(_INSERT_EVENT, id, version, ordinal, *event_values(event), whole)

    def _add_to_totals(self, id: int, version: int, new: Growth) -> None:
        self.rows(
            "UPDATE sessions SET version = ?, entries = entries + ?, messages = messages + ?, tokens = tokens + ?, "
            "turns = turns + ?, compactions = compactions + ?, model = coalesce(?, model), "
            "opened_at = CASE WHEN opened_at <= ? THEN opened_at ELSE coalesce(?, opened_at) END, "
            "changed_at = CASE WHEN changed_at >= ? THEN changed_at ELSE coalesce(?, changed_at) END WHERE id = ?",
            *(version, new.entries, new.messages, new.tokens, new.turns, new.compactions, new.model),
            *(new.first, new.first, new.last, new.last, id),
        )

    def _begin(self, session: str, about: About) -> SessionRow:
        """Insert a new, empty session, or raise StaleLedger if it exists; waits for another process that is inserting it."""
        insert = insertion("sessions", (*self.NAMED, *_ABOUT))
        while True:
            row = self.row(
                f"{insert} ON CONFLICT DO NOTHING RETURNING id", *self.named(session), *_values(about)
            )
            if row is not None:
                return SessionRow(name=session, id=row[0])
            existing = self.head(session)
            if existing.id:
                raise StaleLedger(session, expected=0, found=existing.version)

    def _next_version(self, id: int, entries: int) -> int:
        """Return a new version for a session that now has `entries` entries."""
        row = self.row(self.NEXT_VERSION, id, entries)
        assert row is not None
        return int(row[0])

    def _as_differences(self, now: SessionRow, packed: Sequence[Packed]) -> Sequence[Packed]:
        """Return the entries with each compaction as its difference from the one before; in full if that one is damaged."""
        if not any(isinstance(one.entry, Compacted) for one in packed):
            return packed
        last = self.row(
            "SELECT position FROM entries WHERE session = ? AND kind = 'compacted' ORDER BY position DESC LIMIT 1",
            now.id,
        )
        base = None
        if last:
            with suppress(Broken, msgspec.MsgspecError):
                base = load_base(last[0], lambda position: self._entry_body(now.id, position))
        return pack_differences(packed, now.entries, base)

    def copy(self, session: str, to: str, about: About) -> int:
        """Create the session `to` with everything that `session` has except its accounts, and return its version.

        Raises StaleLedger if `to` exists and BadInput if `session` does not.
        """
        new = self._begin(to, about)
        old = self.head(session, self.LOCK_TO_COPY)
        if not old.id:
            raise BadInput(f"there is no session {session!r} to copy")
        version = self._next_version(new.id, old.entries)
        self.rows(
            "INSERT INTO entries (session, position, version, at, kind, messages, tokens, body) "
            "SELECT ?, position, ?, at, kind, messages, tokens, body FROM entries WHERE session = ?",
            *(new.id, version, old.id),
        )
        self.rows(
            "INSERT INTO messages (session, number, content, tokens) "
            "SELECT ?, number, content, tokens FROM messages WHERE session = ?",
            *(new.id, old.id),
        )
        self.rows(
            "UPDATE sessions SET version = ?, entries = old.entries, messages = old.messages, tokens = old.tokens, "
            "compactions = old.compactions, model = old.model, "
            "opened_at = (SELECT min(at) FROM entries WHERE session = old.id), "
            "changed_at = (SELECT max(at) FROM entries WHERE session = old.id) "
            "FROM sessions AS old WHERE sessions.id = ? AND old.id = ?",
            *(version, new.id, old.id),
        )
        self.rows(self.COPY_CARRIED, new.id, old.id)
        return version


class _Found:
    """The messages that have some term of a question, by their contents, and what is known of the sessions they are in."""

    def __init__(self, queries: Queries, of: SessionRow | None, contents: Collection[int]) -> None:
        self._queries = queries
        where, values = ("", ()) if of is None else (" WHERE id = ?", (of.id,))
        self._sessions = {
            id: (version, name, messages, tokens)
            for id, version, name, messages, tokens in queries.rows(
                f"SELECT id, version, name, messages, tokens FROM sessions{where}",  # noqa: S608 - our own words
                *values,
            )
        }
        self._ids = {version: id for id, (version, *_) in self._sessions.items()}
        self.messages = sum(messages for *_, messages, _ in self._sessions.values())
        self.tokens = sum(tokens for *_, tokens in self._sessions.values())
        self.places: dict[int, list[Place]] = {}
        self._messages: dict[Place, tuple[int, int]] = {}
        for session, number, content, tokens in queries.messages_with(
            contents, None if of is None else of.id
        ):
            if session in self._sessions:
                place = (self._sessions[session][0], number)
                self.places.setdefault(content, []).append(place)
                self._messages[place] = (content, tokens)

    def content_of(self, place: "Place") -> int:
        return self._messages[place][0]

    def candidate(self, place: "Place", where: dict[int, dict[str, list[int]]]) -> "Candidate":
        from lowwater.core.recall.ranking import Candidate  # noqa: PLC0415 - for those who search

        content, tokens = self._messages[place]
        return Candidate(tokens=tokens, places=where.get(content, {}))

    def hits(self, ranked: Iterable[tuple["Place", float]]) -> Iterator[Hit]:
        """Yield the messages that were ranked, as far as they exist."""
        for place, score in ranked:
            id = self._ids[place[0]]
            tokens = self._messages[place][1] if place in self._messages else self._size_of(id, place[1])
            if tokens is not None:
                yield Hit(session=self._sessions[id][1], number=place[1], tokens=tokens, score=score)

    def _size_of(self, session: int, number: int) -> int | None:
        row = self._queries.row(
            "SELECT tokens FROM messages WHERE session = ? AND number = ?", session, number
        )
        return row[0] if row else None


def _about(row: Row) -> About:
    return About(**dict(zip(_ABOUT, row, strict=True)))


def _values(about: About) -> Row:
    return tuple(getattr(about, column) for column in _ABOUT)


def _entry_rows(now: SessionRow, version: int, packed: Sequence[Packed]) -> list[Row]:
    """Return the rows of new entries, each with the number and size of the messages before it."""
    messages = accumulate((len(one.contents) for one in packed), initial=now.messages)
    sizes = (sum(content.tokens for content in one.contents) for one in packed)
    tokens = accumulate(sizes, initial=now.tokens)
    return [
        (now.id, position, version, one.entry.at, one.kind, count, size, seal(one.body))
        for position, (one, count, size) in enumerate(
            zip(packed, messages, tokens, strict=False), start=now.entries
        )
    ]


AnyQueries = TypeVar("AnyQueries", bound=Queries)


class SqlStore(ABC, Generic[AnyQueries]):
    """The methods of a store that are one query each."""

    def __init__(self, place: object, conceal: Conceal) -> None:
        self._conceal = conceal
        self._accounts = AccountFallback(place)

    @abstractmethod
    def _reading(self) -> AbstractContextManager[AnyQueries]:
        """Open a transaction that sees one consistent state, whatever others write meanwhile."""

    @abstractmethod
    def _write(self, work: Callable[[AnyQueries], Result]) -> Result:
        """Run `work` in a transaction that writes all or nothing."""

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Store an append in one transaction, or raise StaleLedger."""
        packed = [pack_entry(entry) for entry in new.entries]

        def write(new: Append) -> int:
            return self._write(lambda queries: queries.append(session, expected, new, packed, self._conceal))

        return self._accounts.write(new, write)

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        with self._reading() as queries:
            return queries.read(session, since, until)

    def outline(self, session: str, /) -> Outline:
        """Return the session without its entries."""
        with self._reading() as queries:
            return queries.outline(session)

    def entries(self, session: str, first: int, end: int, /, *, version: int) -> list[Entry]:
        """Return the entries at these positions."""
        with self._reading() as queries:
            return queries.entries(session, first, end, version)

    def messages(self, session: str, first: int, end: int, /, *, version: int) -> list[Numbered]:
        """Return the messages with these numbers."""
        with self._reading() as queries:
            return queries.messages(session, first, end, version)

    def copy(self, session: str, to: str, about: About, /) -> int:
        """Create the session `to` with the ledger of this one."""
        return self._write(lambda queries: queries.copy(session, to, about))

    def sessions(self) -> list[Listed]:
        """Return all sessions, most recently changed first."""
        with self._reading() as queries:
            return queries.sessions()

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return the turn records and events of these sessions, or of all."""
        with self._reading() as queries:
            return queries.accounts(sessions)

    def record_fingerprint(self, fingerprint: Fingerprint, /) -> None:
        """Record the digests a session was last seen with."""
        self._write(lambda queries: queries.record_fingerprint(fingerprint))

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes], /) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""
        with self._reading() as queries:
            return queries.lookup_fingerprints(tenant, keys)

    def secret(self) -> bytes:
        """Return the random bytes that were drawn when the store was made."""
        with self._reading() as queries:
            return queries.secret()
