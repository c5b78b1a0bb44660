"""The SQL of the PostgreSQL store: every function runs inside a transaction that `connections.py` opened.

The tables are those of the SQLite store. Two things differ: text is escaped, because PostgreSQL's text cannot hold a zero
byte, and writers run side by side, so they lock the rows of the session and of the contents they rely on.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar, cast

from msgspec import MsgspecError, Struct
from msgspec.structs import asdict
from psycopg.errors import UndefinedColumn, UndefinedTable

from lowwater.core.entries import Compacted, Entry
from lowwater.core.ledger import Numbered
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Landmark,
    Listed,
    Outline,
    Stored,
    records_before_events,
)
from lowwater.errors import BadInput, StaleLedger
from lowwater.stores.postgres.connections import Connection
from lowwater.stores.serialization import (
    Broken,
    Packed,
    StoredMessage,
    digest_of,
    pack_differences,
    pack_entry,
    pack_event,
    pack_record,
    seal,
)
from lowwater.stores.shared import (
    EVENT_COLUMNS,
    TURN_COLUMNS,
    Conceal,
    DamagedVersion,
    EntryRow,
    Growth,
    MessageRow,
    UnwritableAccounts,
    Value,
    event_values,
    folded_terms,
    growth_of,
    landmark,
    load_base,
    phrases_in,
    restore_carried,
    restore_entries,
    restore_event,
    restore_messages,
    restore_record,
    searchable_text,
    turn_values,
)

Restored = TypeVar("Restored")
_Bodies = list[tuple[int, object]]


class SessionRow(Struct, frozen=True, kw_only=True):
    """A row of `sessions`; a session that does not exist has the id 0."""

    id: int = 0
    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0


class PackedAppend(Struct, frozen=True, kw_only=True):
    """An append with its entries packed, once for all attempts at writing it."""

    new: Append
    entries: tuple[Packed, ...]
    contents: tuple[StoredMessage, ...]
    growth: Growth


_ESCAPE = re.compile(r"\\([\\0])")


def escape(text: str) -> str:
    r"""Return the text with `\0` for a zero byte and two backslashes for one."""
    return text.replace("\\", "\\\\").replace("\x00", "\\0")


def unescape(text: object) -> str:
    """Return the text that was escaped."""
    return _ESCAPE.sub(lambda found: "\x00" if found[1] == "0" else "\\", str(text))


def name_key(name: str) -> bytes:
    """Return the digest a session is found by, or raise UnicodeEncodeError; a name itself may be too long for an index."""
    return digest_of(name.encode())


def find(connection: Connection, session: str, lock: str = "") -> SessionRow:
    """Return the session's row, locked if asked to (`FOR UPDATE`, `FOR SHARE`)."""
    query = f"SELECT id, version, entries, messages, tokens FROM sessions WHERE key = %s {lock}"  # noqa: S608 - our own words
    row = connection.execute(query.encode(), (name_key(session),)).fetchone()
    if row is None:
        return SessionRow()
    id, version, entries, messages, tokens = cast("tuple[int, int, int, int, int]", row)
    return SessionRow(id=id, version=version, entries=entries, messages=messages, tokens=tokens)


# Reading a session

ABOUT = "title, source, parent, ended_because, ended_at"
"""The columns of `About`."""


def read(connection: Connection, session: str, since: int, until: int | None) -> Stored:
    """Return what was appended after `since` and not after `until`, or raise StaleLedger or DamagedStore."""
    now = _find_at_version(connection, session, since)
    last = now.version if until is None else version_by(connection, now.id, until)
    first, end = _entries_at(connection, now.id, since), _entries_at(connection, now.id, last)
    with damage_reported(connection, session, now.id):
        entries = tuple(_entries(connection, now.id, first, end))
        carried, about = _carried_and_about(connection, session, now)
    return Stored(version=last, entries=entries, carried=carried, about=about)


def outline(connection: Connection, session: str) -> Outline:
    """Return a session without its entries, or raise DamagedStore."""
    now = find(connection, session)
    with damage_reported(connection, session, now.id):
        carried, about = _carried_and_about(connection, session, now)
    return Outline(
        version=now.version,
        entries=now.entries,
        messages=now.messages,
        tokens=now.tokens,
        landmarks=tuple(_landmarks(connection, now.id)),
        carried=carried,
        about=about,
    )


def entries(connection: Connection, session: str, first: int, end: int, version: int) -> list[Entry]:
    """Return the entries at these positions, or raise StaleLedger or DamagedStore."""
    now = _find_at_version(connection, session, version)
    with damage_reported(connection, session, now.id):
        return list(_entries(connection, now.id, max(first, 0), min(end, now.entries)))


def messages(connection: Connection, session: str, first: int, end: int, version: int) -> list[Numbered]:
    """Return the messages with these numbers, or raise StaleLedger or DamagedStore."""
    now = _find_at_version(connection, session, version)
    numbers = range(max(first, 1), min(end, now.messages + 1))
    rows = connection.execute(
        "SELECT number, tokens, key, body FROM messages JOIN contents ON contents.id = content "
        "WHERE session = %s AND number >= %s AND number < %s ORDER BY number",
        (now.id, numbers.start, numbers.stop),
        binary=True,
    )
    with damage_reported(connection, session, now.id):
        return list(restore_messages(numbers, map(_message_row, rows), _version_bringing(connection, now.id)))


def _find_at_version(connection: Connection, session: str, version: int) -> SessionRow:
    """Return the session, or raise StaleLedger if it never had this version; 0 fits any session."""
    now = find(connection, session)
    if version and version_by(connection, now.id, version) != version:
        raise StaleLedger(session, expected=version, found=now.version)
    return now


def version_by(connection: Connection, id: int, until: int) -> int:
    """Return the newest version of a session that is not after `until`, 0 if there is none."""
    row = connection.execute(
        "SELECT max(version) FROM appends WHERE session = %s AND version <= %s", (id, until)
    ).fetchone()
    return cast("int | None", row and row[0]) or 0


def _entries_at(connection: Connection, id: int, version: int) -> int:
    """Return how many entries a session had at one of its versions."""
    row = connection.execute(
        "SELECT entries FROM appends WHERE session = %s AND version = %s", (id, version)
    ).fetchone()
    return cast("int", row[0]) if row else 0


def _carried_and_about(connection: Connection, session: str, now: SessionRow) -> tuple[bytes, About]:
    """Return the carried state of a session, and its title, source and lineage."""
    row = connection.execute(
        f"SELECT carried, {ABOUT} FROM sessions WHERE id = %s".encode(),  # noqa: S608 - our own names
        (now.id,),
        binary=True,
    ).fetchone()
    if row is None:
        return b"", About()
    return restore_carried(session, row[0]), about_from(row[1:])


def about_from(row: Sequence[object]) -> About:
    """Return title, source and lineage of a session from its columns."""
    title, source, parent, because, ended_at = row
    return About(
        title=unescape(title),
        source=unescape(source),
        parent=unescape(parent),
        ended_because=unescape(because),
        ended_at=cast("float | None", ended_at),
    )


def _landmarks(connection: Connection, id: int) -> Iterator[Landmark]:
    rows = connection.execute(
        "SELECT position, kind, at, messages, tokens FROM entries "
        "WHERE session = %s AND kind <> 'appended' ORDER BY position",
        (id,),
    )
    return (landmark(*row) for row in cast("Iterable[tuple[int, str, float, int, int]]", rows))


def _version_bringing(connection: Connection, id: int) -> Callable[[int], int]:
    """Return a function that returns the version with which a message was stored."""

    def version_of(number: int) -> int:
        row = connection.execute(
            "SELECT version FROM entries WHERE session = %s AND messages < %s ORDER BY position DESC LIMIT 1",
            (id, number),
        ).fetchone()
        return cast("int", row[0]) if row else 0

    return version_of


def _entries(connection: Connection, id: int, first: int, end: int) -> Iterator[Entry]:
    rows = connection.execute(
        "SELECT version, position, body FROM entries "
        "WHERE session = %s AND position >= %s AND position < %s ORDER BY position",
        (id, first, end),
        binary=True,
    )
    found = (
        EntryRow(version=cast("int", version), position=cast("int", position), sealed=body)
        for version, position, body in rows
    )
    return restore_entries(
        found, lambda keys: _contents(connection, keys), lambda position: entry_body(connection, id, position)
    )


def entry_body(connection: Connection, id: int, position: int) -> object:
    """Return the stored bytes of one entry, None if there is none."""
    row = connection.execute(
        "SELECT body FROM entries WHERE session = %s AND position = %s", (id, position), binary=True
    ).fetchone()
    return row[0] if row else None


def _contents(connection: Connection, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
    rows = connection.execute(
        "SELECT key, body FROM contents WHERE key = ANY(%s::bytea[])", (list(keys),), binary=True
    )
    return cast("Iterable[tuple[bytes, object]]", rows)


def _message_row(row: Sequence[object]) -> MessageRow:
    number, tokens, key, body = row
    return MessageRow(number=cast("int", number), tokens=cast("int", tokens), key=key, body=body)


@contextmanager
def damage_reported(connection: Connection, session: str, id: int) -> Iterator[None]:
    """Turn DamagedVersion into DamagedStore, with the session's name and the last version before the damage."""
    try:
        yield
    except DamagedVersion as damage:
        raise damage.reported(session, version_by(connection, id, damage.version - 1)) from damage


# Lists and accounts


def sessions(connection: Connection) -> list[Listed]:
    """Return all sessions, most recently changed first."""
    return list(_listed(connection, None).values())


def accounts(connection: Connection, names: Sequence[str] | None) -> list[Account]:
    """Return the accounts of these sessions or of all, or raise DamagedStore."""
    listed = _listed(connection, None if names is None else [name_key(name) for name in names])
    ids = list(listed)
    bodies = (
        "SELECT session, version, body FROM {} WHERE session = ANY(%s::bigint[]) ORDER BY session, version"
    )
    records = _grouped(connection.execute(bodies.format("turns").encode(), (ids,), binary=True))
    events = _grouped(
        connection.execute(f"{bodies.format('compaction_events')}, ordinal".encode(), (ids,), binary=True)
    )
    found = []
    for id, session in listed.items():
        with damage_reported(connection, session.name, id):
            found.append(
                Account(
                    session=session,
                    records=_restored(records[id], restore_record),
                    events=_restored(events[id], restore_event),
                    turns_before=records_before_events(_versions(records[id]), _versions(events[id])),
                )
            )
    return found


def _listed(connection: Connection, keys: Sequence[bytes] | None) -> dict[int, Listed]:
    rows = connection.execute(
        "SELECT id, name, version, entries, messages, turns, compactions, model, coalesce(opened_at, 0), "  # noqa: S608 - our own names
        f"coalesce(changed_at, 0), {ABOUT} FROM sessions "
        "WHERE %(keys)s::bytea[] IS NULL OR key = ANY(%(keys)s::bytea[]) ORDER BY version DESC".encode(),
        {"keys": None if keys is None else list(keys)},
    )
    return {cast("int", row[0]): _listed_row(row) for row in rows}


def _listed_row(row: Sequence[object]) -> Listed:
    version, entries, messages, turns, compactions = cast("tuple[int, int, int, int, int]", row[2:7])
    opened_at, changed_at = cast("tuple[float, float]", row[8:10])
    return Listed(
        name=unescape(row[1]),
        version=version,
        entries=entries,
        messages=messages,
        turns=turns,
        compactions=compactions,
        model=unescape(row[7]),
        opened_at=opened_at,
        changed_at=changed_at,
        about=about_from(row[10:]),
    )


def _grouped(rows: Iterable[Sequence[object]]) -> dict[int, _Bodies]:
    """Return versions and bodies, by session."""
    grouped: dict[int, _Bodies] = defaultdict(list)
    for session, version, body in rows:
        grouped[cast("int", session)].append((cast("int", version), body))
    return grouped


def _versions(bodies: _Bodies) -> list[int]:
    return [version for version, _ in bodies]


def _restored(bodies: _Bodies, restore: Callable[[int, object], Restored]) -> tuple[Restored, ...]:
    return tuple(restore(version, body) for version, body in bodies)


# Search

LONGEST_TERM = 200
"""Characters of a term that are indexed; PostgreSQL takes at most 2 KB."""
MOST_RANKED = 1_000
"""Texts that are ranked by frequency of the words, for which they have to be read."""
# PostgreSQL ranks without regard to how rare a word is among all texts. The query counts that, and ranks the likeliest texts only.
_SEARCH = """
WITH wanted AS (
    SELECT query, place FROM unnest(%(queries)s::text[]::tsquery[]) WITH ORDINALITY AS given (query, place)),
found AS MATERIALIZED (
    SELECT DISTINCT place, content FROM wanted JOIN search ON terms @@ query),
texts AS (
    SELECT greatest(
        (SELECT reltuples FROM pg_class WHERE oid = 'contents'::regclass),
        (SELECT count(DISTINCT content) FROM found)) AS number),
rarity AS (
    SELECT place, ln(1 + number / count(*)) AS weight FROM found, texts GROUP BY place, number),
likely AS (
    SELECT content FROM found JOIN rarity USING (place) {within}
    GROUP BY content ORDER BY sum(weight) DESC, content DESC LIMIT %(ranked)s),
ranked AS (
    SELECT content, place, max(ts_rank(terms, query, 1)) AS rank
    FROM likely JOIN search USING (content) JOIN wanted ON terms @@ query GROUP BY content, place),
scored AS (
    SELECT content, sum(rank * weight) AS score FROM ranked JOIN rarity USING (place) GROUP BY content)
SELECT name, number, messages.tokens, score
FROM scored JOIN messages USING (content) JOIN sessions ON sessions.id = messages.session {of}
ORDER BY score DESC, version DESC, number DESC LIMIT %(limit)s
"""
_IN_ALL = _SEARCH.format(within="", of="").encode()
_IN_ONE = _SEARCH.format(
    within="WHERE content IN (SELECT content FROM messages WHERE session = %(session)s)",
    of="WHERE sessions.id = %(session)s",
).encode()


def search(connection: Connection, words: str, session: str | None, limit: int) -> list[Hit]:
    """Return the messages that contain one of the words: best match first, newest first among equals."""
    queries = tsqueries_of(words)
    if not queries or limit <= 0:
        return []
    # The planner underestimates a sequential scan: it does not count the large values that are stored outside the rows.
    connection.execute("SET LOCAL enable_seqscan = off")
    rows = connection.execute(
        _IN_ALL if session is None else _IN_ONE,
        {
            "queries": queries,
            "session": None if session is None else find(connection, session).id,
            "ranked": max(MOST_RANKED, limit),
            "limit": limit,
        },
    )
    return [
        Hit(
            session=unescape(name),
            number=cast("int", number),
            tokens=cast("int", tokens),
            score=cast("float", score),
        )
        for name, number, tokens, score in rows
    ]


def tsqueries_of(words: str) -> list[str]:
    """Return each word of a search as a `tsquery` literal; terms are letters and digits, so none needs quotes."""
    queries = (
        " <-> ".join(term[:LONGEST_TERM] for term in folded_terms(phrase)) for phrase in phrases_in(words)
    )
    return list(dict.fromkeys(query for query in queries if query))


# Fingerprints


def record_fingerprint(connection: Connection, fingerprint: Fingerprint) -> None:
    """Record the digests a session was last seen with, if it is stored; its row is locked, so that only one set is the newest."""
    session = find(connection, fingerprint.session, "FOR UPDATE")
    if not session.id:
        return
    connection.execute("UPDATE trails SET newest = false WHERE session = %s AND newest", (session.id,))
    connection.execute(
        "INSERT INTO trails (tenant, key, session, hint, newest) SELECT %s, key, %s, %s, true FROM unnest(%s::bytea[]) AS key "
        "ON CONFLICT (tenant, key, session) DO UPDATE SET hint = excluded.hint, newest = true",
        (
            escape(fingerprint.tenant),
            session.id,
            escape(fingerprint.hint),
            list(dict.fromkeys(fingerprint.keys)),
        ),
    )


def lookup_fingerprints(connection: Connection, tenant: str, keys: Sequence[bytes]) -> list[FingerprintMatch]:
    """Return the sessions that were once seen with one of these digests."""
    rows = connection.execute(
        "SELECT trails.key, name, hint, newest FROM trails JOIN sessions ON sessions.id = trails.session "
        "WHERE tenant = %s AND trails.key = ANY(%s::bytea[])",
        (escape(tenant), list(keys)),
    )
    return [
        FingerprintMatch(
            key=bytes(cast("bytes", key)), session=unescape(name), hint=unescape(hint), newest=bool(newest)
        )
        for key, name, hint, newest in rows
    ]


def secret(connection: Connection) -> bytes:
    """Return the random bytes that were drawn when the tables were created."""
    row = connection.execute("SELECT body FROM secret").fetchone()
    assert row is not None
    return bytes(cast("bytes", row[0]))


# Appending


def _insert(table: str, *columns: str) -> bytes:
    marks = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})".encode()  # noqa: S608 - our own names


_INSERT_TURN = _insert("turns", "session", "version", *TURN_COLUMNS, "body")
_INSERT_EVENT = _insert("compaction_events", "session", "version", "ordinal", *EVENT_COLUMNS, "body")


def pack_append(new: Append) -> PackedAppend:
    """Pack the entries of an append, or raise BadInput or IllegalEntry."""
    entries = tuple(pack_entry(entry) for entry in new.entries)
    contents = tuple(content for packed in entries for content in packed.contents)
    return PackedAppend(new=new, entries=entries, contents=contents, growth=growth_of(new, contents))


def append(
    connection: Connection, session: str, expected: int, packed: PackedAppend, conceal: Conceal
) -> int:
    """Write an append and return the new version, or raise StaleLedger."""
    now = find(connection, session, "FOR UPDATE")
    if now.version != expected:
        raise StaleLedger(session, expected=expected, found=now.version)
    if packed.new == Append():
        return expected
    if not now.id:
        now = begin(connection, session, About())
    version = next_version(connection, now.id, now.entries + len(packed.entries))
    ids = store_contents(
        connection, packed.contents, lambda content: searchable_text(content.message, conceal)
    )
    entries = _as_differences(connection, now, packed.entries)
    try:
        with connection.pipeline():
            _write_entries(connection, now, version, entries)
            _write_messages(connection, now, packed.contents, ids)
            _write_account(connection, now.id, version, packed.new)
            store_carried(connection, now.id, packed.new.carried)
            store_about(connection, now.id, packed.new.about)
            update_totals(connection, now.id, version, packed.growth)
    except (UndefinedTable, UndefinedColumn) as error:
        if packed.new.record is None and not packed.new.events:
            raise
        # In a pipeline, the driver takes the statements after the failed one for prepared, but the server does not have them.
        connection.close()
        # Which statement failed is unknown. If it was not one of the accounts, writing without them fails again.
        raise UnwritableAccounts(error.diag.message_primary or type(error).__name__) from error
    return version


def begin(connection: Connection, session: str, about: About) -> SessionRow:
    """Insert a new, empty session, or raise StaleLedger if it exists; waits for another process that is inserting it."""
    while True:
        row = connection.execute(
            "INSERT INTO sessions (key, name, title, source, parent, ended_because, ended_at) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING RETURNING id",
            (name_key(session), escape(session), *_about_values(about)),
        ).fetchone()
        if row is not None:
            return SessionRow(id=cast("int", row[0]))
        existing = find(connection, session)
        if existing.id:
            raise StaleLedger(session, expected=0, found=existing.version)


def next_version(connection: Connection, id: int, entries: int) -> int:
    """Return a new version for a session that now has `entries` entries; no append ever had it before.

    The session's row is locked, so its versions grow in the order they are committed.
    """
    row = connection.execute(
        "INSERT INTO appends (session, version, entries) VALUES (%s, nextval('versions'), %s) RETURNING version",
        (id, entries),
    ).fetchone()
    assert row is not None
    return cast("int", row[0])


def _as_differences(connection: Connection, now: SessionRow, packed: Sequence[Packed]) -> Sequence[Packed]:
    """Return the entries with each compaction as its difference from the one before; in full if that one is damaged."""
    if not any(isinstance(one.entry, Compacted) for one in packed):
        return packed
    row = connection.execute(
        "SELECT position FROM entries WHERE session = %s AND kind = 'compacted' ORDER BY position DESC LIMIT 1",
        (now.id,),
    ).fetchone()
    base = None
    if row:
        with suppress(Broken, MsgspecError):
            base = load_base(cast("int", row[0]), lambda position: entry_body(connection, now.id, position))
    return pack_differences(packed, now.entries, base)


def _write_entries(connection: Connection, now: SessionRow, version: int, entries: Sequence[Packed]) -> None:
    if not entries:
        return
    messages, tokens = [now.messages], [now.tokens]
    for packed in entries:
        messages.append(messages[-1] + len(packed.contents))
        tokens.append(tokens[-1] + sum(content.tokens for content in packed.contents))
    connection.execute(
        "INSERT INTO entries (session, position, version, at, kind, messages, tokens, body) "
        "SELECT %s, %s + place - 1, %s, at, kind, messages, tokens, body "
        "FROM unnest(%s::double precision[], %s::text[], %s::bigint[], %s::bigint[], %s::bytea[]) "
        "WITH ORDINALITY AS new (at, kind, messages, tokens, body, place)",
        (
            now.id,
            now.entries,
            version,
            [packed.entry.at for packed in entries],
            [packed.kind for packed in entries],
            messages[:-1],
            tokens[:-1],
            [seal(packed.body) for packed in entries],
        ),
    )


def _write_messages(
    connection: Connection, now: SessionRow, contents: Sequence[StoredMessage], ids: dict[bytes, int]
) -> None:
    if not contents:
        return
    connection.execute(
        "INSERT INTO messages (session, number, content, tokens) SELECT %s, %s + place, content, tokens "
        "FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY AS new (content, tokens, place)",
        (
            now.id,
            now.messages,
            [ids[content.key] for content in contents],
            [content.tokens for content in contents],
        ),
    )


def _write_account(connection: Connection, id: int, version: int, new: Append) -> None:
    if new.record is not None:
        whole = seal(pack_record(new.record))
        connection.execute(_INSERT_TURN, (id, version, *_escaped(turn_values(new.record)), whole))
    for ordinal, event in enumerate(new.events):
        whole = seal(pack_event(event))
        connection.execute(_INSERT_EVENT, (id, version, ordinal, *_escaped(event_values(event)), whole))


def _escaped(values: Iterable[Value]) -> Iterable[Value]:
    return (escape(value) if isinstance(value, str) else value for value in values)


def store_carried(connection: Connection, id: int, carried: bytes | None) -> None:
    """Store the carried state, unless there is nothing new."""
    if carried is not None:
        connection.execute("UPDATE sessions SET carried = %s WHERE id = %s", (seal(carried), id))


def store_about(connection: Connection, id: int, about: About | None) -> None:
    """Store title, source and lineage, unless there is nothing new."""
    if about is not None:
        connection.execute(
            "UPDATE sessions SET title = %s, source = %s, parent = %s, ended_because = %s, ended_at = %s WHERE id = %s",
            (*_about_values(about), id),
        )


def _about_values(about: About) -> tuple[str | float | None, ...]:
    texts = (about.title, about.source, about.parent, about.ended_because)
    return (*map(escape, texts), about.ended_at)


def update_totals(connection: Connection, id: int, version: int, growth: Growth) -> None:
    """Add what an append brought to the session's totals."""
    model = None if growth.model is None else escape(growth.model)
    connection.execute(
        "UPDATE sessions SET version = %(version)s, entries = entries + %(entries)s, messages = messages + %(messages)s, "
        "tokens = tokens + %(tokens)s, turns = turns + %(turns)s, compactions = compactions + %(compactions)s, "
        "model = coalesce(%(model)s, model), opened_at = least(opened_at, %(first)s), "
        "changed_at = greatest(changed_at, %(last)s) WHERE id = %(id)s",
        {**asdict(growth), "model": model, "version": version, "id": id},
    )


# Contents and their words

CONTENTS_PER_STATEMENT = 500
"""Messages written in one statement."""
TERMS_PER_ROW = 1_000
"""Terms in one row: a `tsvector` takes 1 MB and 256 positions per term, so a long text has several rows."""
OVERLAP = 16
"""Terms that a row repeats from the one before, so that phrases of up to so many terms are found across rows."""


def store_contents(
    connection: Connection, contents: Iterable[StoredMessage], words: Callable[[StoredMessage], str]
) -> dict[bytes, int]:
    """Return the row id of each content by its key; new contents are inserted and indexed, existing rows are not touched."""
    wanted = {content.key: content for content in contents}
    keys = sorted(wanted)
    ids: dict[bytes, int] = {}
    for start in range(0, len(keys), CONTENTS_PER_STATEMENT):
        missing = keys[start : start + CONTENTS_PER_STATEMENT]
        while missing:
            ids |= _lock_known(connection, missing)
            new = _insert_new(connection, [wanted[key] for key in missing if key not in ids])
            _index(connection, {id: words(wanted[key]) for key, id in new.items()})
            ids |= new
            # Whatever another process inserted or deleted between the two statements is tried again.
            missing = [key for key in missing if key not in ids]
    return ids


def _lock_known(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, int]:
    rows = connection.execute(
        "SELECT key, id FROM contents WHERE key = ANY(%s::bytea[]) ORDER BY key FOR KEY SHARE", (list(keys),)
    )
    return dict(cast("Iterable[tuple[bytes, int]]", rows))


def _insert_new(connection: Connection, contents: Sequence[StoredMessage]) -> dict[bytes, int]:
    if not contents:
        return {}
    rows = connection.execute(
        "INSERT INTO contents (key, body) SELECT * FROM unnest(%s::bytea[], %s::bytea[]) "
        "ON CONFLICT (key) DO NOTHING RETURNING key, id",
        ([content.key for content in contents], [content.body for content in contents]),
    )
    return dict(cast("Iterable[tuple[bytes, int]]", rows))


def _index(connection: Connection, words: dict[int, str]) -> None:
    rows = [(id, part, terms) for id, text in words.items() for part, terms in enumerate(tsvectors_of(text))]
    for start in range(0, len(rows), CONTENTS_PER_STATEMENT):
        contents, parts, terms = zip(*rows[start : start + CONTENTS_PER_STATEMENT], strict=True)
        connection.execute(
            "INSERT INTO search (content, part, terms) SELECT content, part, terms::tsvector "
            "FROM unnest(%s::bigint[], %s::integer[], %s::text[]) AS new (content, part, terms)",
            (list(contents), list(parts), list(terms)),
        )


def tsvectors_of(words: str) -> Iterator[str]:
    """Yield the terms of a text with their positions, as `tsvector` literals."""
    terms = folded_terms(words)
    for start in range(0, len(terms), TERMS_PER_ROW):
        row = terms[max(start - OVERLAP, 0) : start + TERMS_PER_ROW]
        yield " ".join(f"{term[:LONGEST_TERM]}:{place}" for place, term in enumerate(row, start=1))


# Copying and deleting

# Every row that a session owns, its own row last.
_OWNED = (
    b"DELETE FROM entries WHERE session = %s",
    b"DELETE FROM messages WHERE session = %s",
    b"DELETE FROM turns WHERE session = %s",
    b"DELETE FROM compaction_events WHERE session = %s",
    b"DELETE FROM appends WHERE session = %s",
    b"DELETE FROM trails WHERE session = %s",
    b"DELETE FROM sessions WHERE id = %s",
)


def copy(connection: Connection, session: str, to: str, about: About) -> int:
    """Create the session `to` with everything that `session` has except its accounts, and return its version.

    Raises StaleLedger if `to` exists and BadInput if `session` does not.
    """
    new = begin(connection, to, about)
    # Until the copy is committed only the original holds the contents, so it must not be deleted meanwhile.
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


def delete(connection: Connection, session: str) -> bool:
    """Delete a session, with the contents that no other session holds; return whether there was one."""
    now = find(connection, session, "FOR UPDATE")
    if not now.id:
        return False
    locked = lock_contents(connection, now.id)
    for statement in _OWNED:
        connection.execute(statement, (now.id,))
    delete_orphans(connection, locked)
    return True


def lock_contents(connection: Connection, session: int) -> list[int]:
    """Return the row ids of a session's contents, locked for deletion."""
    rows = connection.execute(
        "SELECT id FROM contents WHERE id IN (SELECT content FROM messages WHERE session = %s) ORDER BY key FOR UPDATE",
        (session,),
    )
    return [cast("int", id) for (id,) in rows]


def delete_orphans(connection: Connection, locked: Sequence[int]) -> None:
    """Delete those of the locked contents that no session holds any more, with their index rows."""
    connection.execute(
        "WITH orphans AS (DELETE FROM contents WHERE id = ANY(%s::bigint[]) "
        "AND NOT EXISTS (SELECT FROM messages WHERE content = contents.id) RETURNING id) "
        "DELETE FROM search USING orphans WHERE content = orphans.id",
        (list(locked),),
    )
