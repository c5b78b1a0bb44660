"""The SQL of the SQLite store: every function runs inside a transaction that `connections.py` opened.

An append writes its entries, the messages in them (each content once, under its digest), the turn record and events, the
carried state and the session's totals, all under one new version. Words are indexed for search later, in batches.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec
from msgspec import MsgspecError, Struct
from msgspec.structs import asdict

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
    digest_of,
    pack_differences,
    pack_event,
    pack_record,
    restored,
    seal,
    shrunk,
    unpack_message,
)
from lowwater.stores.shared import (
    EVENT_COLUMNS,
    TURN_COLUMNS,
    Conceal,
    DamagedVersion,
    EntryRow,
    MessageRow,
    UnwritableAccounts,
    event_values,
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

# The columns of `About`.
_ABOUT = "title, source, parent, ended_at, ended_because"


class SessionRow(Struct, frozen=True, kw_only=True):
    """A row of `sessions`, with the carried state; a session that does not exist has the id 0."""

    name: str
    id: int = 0
    version: int = 0
    entries: int = 0
    messages: int = 0
    tokens: int = 0
    about: About = About()
    carried: object = None
    """Bytes behind their digest; None if nothing was stored."""


class ListedRow(Struct, frozen=True, kw_only=True):
    """A session as `sessions` lists it, and its id."""

    id: int
    listed: Listed


def find(connection: sqlite3.Connection, name: str) -> SessionRow:
    """Return the session of this name, or an empty row."""
    row = connection.execute(
        f"SELECT {_ABOUT}, id, version, entries, messages, tokens, "  # noqa: S608  # our own names
        "(SELECT body FROM carried WHERE session = id) FROM sessions WHERE name = ?",
        (name,),
    ).fetchone()
    if row is None:
        return SessionRow(name=name)
    about, (id, version, entries, messages, tokens, carried) = _about(row[:5]), row[5:]
    return SessionRow(
        name=name,
        id=id,
        version=version,
        entries=entries,
        messages=messages,
        tokens=tokens,
        about=about,
        carried=carried,
    )


def _about(row: tuple[str, str, str, float | None, str]) -> About:
    title, source, parent, ended_at, ended_because = row
    return About(title=title, source=source, parent=parent, ended_at=ended_at, ended_because=ended_because)


# Reading a session


def read(connection: sqlite3.Connection, session: str, since: int, until: int | None) -> Stored:
    """Return what was appended after `since` and not after `until`, or raise StaleLedger or DamagedStore."""
    now = find(connection, session)
    first = _entries_at(connection, now, since)
    version, end = (
        (now.version, now.entries) if until is None else _last_version_by(connection, now.id, until)
    )
    with damage_reported(connection, now):
        entries = tuple(_entries(connection, now.id, first, end))
        return Stored(
            version=version, entries=entries, carried=restore_carried(session, now.carried), about=now.about
        )


def outline(connection: sqlite3.Connection, session: str) -> Outline:
    """Return a session without its entries, or raise DamagedStore."""
    now = find(connection, session)
    landmarks = connection.execute(
        "SELECT position, kind, at, messages, tokens FROM entries "
        "WHERE session = ? AND kind <> 'appended' ORDER BY position",
        (now.id,),
    )
    with damage_reported(connection, now):
        return Outline(
            version=now.version,
            entries=now.entries,
            messages=now.messages,
            tokens=now.tokens,
            landmarks=tuple(landmark(*row) for row in landmarks),
            carried=restore_carried(session, now.carried),
            about=now.about,
        )


def entries(connection: sqlite3.Connection, session: str, first: int, end: int, version: int) -> list[Entry]:
    """Return the entries at these positions, or raise StaleLedger or DamagedStore."""
    now = find(connection, session)
    _entries_at(connection, now, version)
    with damage_reported(connection, now):
        return list(_entries(connection, now.id, first, end))


def messages(
    connection: sqlite3.Connection, session: str, first: int, end: int, version: int
) -> list[Numbered]:
    """Return the messages with these numbers, or raise StaleLedger or DamagedStore."""
    now = find(connection, session)
    _entries_at(connection, now, version)
    numbers = range(max(first, 1), min(end, now.messages + 1))
    rows = connection.execute(
        "SELECT messages.number, messages.tokens, contents.key, contents.body "
        "FROM messages JOIN contents ON contents.id = messages.content "
        "WHERE messages.session = ? AND messages.number >= ? AND messages.number < ? ORDER BY messages.number",
        (now.id, numbers.start, numbers.stop),
    )
    found = (
        MessageRow(number=number, tokens=tokens, key=key, body=_restored(body))
        for number, tokens, key, body in rows
    )
    with damage_reported(connection, now):
        return list(restore_messages(numbers, found, _version_bringing(connection, now.id)))


def _entries_at(connection: sqlite3.Connection, session: SessionRow, version: int) -> int:
    """Return how many entries a session had at a version, or raise StaleLedger if it never had that version."""
    if not version:
        return 0
    row = connection.execute(
        "SELECT entries FROM appends WHERE session = ? AND version = ?", (session.id, version)
    ).fetchone()
    if row is None:
        raise StaleLedger(session.name, expected=version, found=session.version)
    return int(row[0])


def _last_version_by(connection: sqlite3.Connection, id: int, until: int) -> tuple[int, int]:
    """Return the last version that is not after `until`, and how many entries the session had then."""
    row = connection.execute(
        "SELECT version, entries FROM appends WHERE session = ? AND version <= ? ORDER BY version DESC LIMIT 1",
        (id, until),
    ).fetchone()
    return row or (0, 0)


def _version_bringing(connection: sqlite3.Connection, id: int) -> Callable[[int], int]:
    """Return a function that returns the version with which a message was stored."""

    def version_of(number: int) -> int:
        row = connection.execute(
            "SELECT version FROM entries WHERE session = ? AND messages < ? ORDER BY position DESC LIMIT 1",
            (id, number),
        ).fetchone()
        return int(row[0]) if row else 0

    return version_of


def _entries(connection: sqlite3.Connection, id: int, first: int, end: int) -> Iterator[Entry]:
    found = connection.execute(
        "SELECT version, position, body FROM entries WHERE session = ? AND position >= ? AND position < ? "
        "ORDER BY position",
        (id, first, end),
    )
    rows = (EntryRow(version=version, position=position, sealed=body) for version, position, body in found)
    return restore_entries(
        rows, lambda keys: _contents(connection, keys), lambda position: entry_body(connection, id, position)
    )


def entry_body(connection: sqlite3.Connection, id: int, position: int) -> object:
    """Return the stored bytes of one entry, None if there is none."""
    row = connection.execute(
        "SELECT body FROM entries WHERE session = ? AND position = ?", (id, position)
    ).fetchone()
    return row[0] if row else None


def _contents(connection: sqlite3.Connection, keys: Sequence[bytes]) -> Iterable[tuple[bytes, object]]:
    marks = ",".join("?" * len(keys))
    query = f"SELECT key, body FROM contents WHERE key IN ({marks})"  # noqa: S608 - only question marks
    return ((key, _restored(body)) for key, body in connection.execute(query, keys))


def _restored(stored: object) -> object:
    """Return the bytes of a message; what is no bytes stays what it is, and is reported as damage."""
    return restored(stored) if isinstance(stored, bytes) else stored


@contextmanager
def damage_reported(connection: sqlite3.Connection, session: SessionRow) -> Iterator[None]:
    """Turn DamagedVersion into DamagedStore, with the session's name and the last version before the damage."""
    try:
        yield
    except DamagedVersion as damage:
        whole, _ = _last_version_by(connection, session.id, damage.version - 1)
        raise damage.reported(session.name, whole) from damage


# Lists and accounts


def sessions(connection: sqlite3.Connection) -> list[Listed]:
    """Return all sessions, most recently changed first."""
    return [row.listed for row in all_sessions(connection)]


def all_sessions(connection: sqlite3.Connection) -> list[ListedRow]:
    """Return all sessions with their ids, most recently changed first."""
    rows = connection.execute(
        f"SELECT {_ABOUT}, id, name, version, entries, messages, turns, compactions, model, "  # noqa: S608  # our own names
        "coalesce(opened_at, 0.0), coalesce(changed_at, 0.0) FROM sessions ORDER BY version DESC"
    )
    fields = Listed.__struct_fields__
    return [
        ListedRow(id=row[5], listed=Listed(about=_about(row[:5]), **dict(zip(fields, row[6:], strict=False))))
        for row in rows
    ]


def accounts(connection: sqlite3.Connection, names: Sequence[str] | None) -> list[Account]:
    """Return the accounts of these sessions or of all, most recently changed first, or raise DamagedStore."""
    wanted = None if names is None else set(names)
    return [
        _account(connection, row)
        for row in all_sessions(connection)
        if wanted is None or row.listed.name in wanted
    ]


def _account(connection: sqlite3.Connection, row: ListedRow) -> Account:
    turns = connection.execute(
        "SELECT version, body FROM turns WHERE session = ? ORDER BY version", (row.id,)
    ).fetchall()
    events = connection.execute(
        "SELECT version, body FROM compaction_events WHERE session = ? ORDER BY version, ordinal", (row.id,)
    ).fetchall()
    with damage_reported(connection, SessionRow(name=row.listed.name, id=row.id)):
        return Account(
            session=row.listed,
            records=tuple(restore_record(version, body) for version, body in turns),
            events=tuple(restore_event(version, body) for version, body in events),
            turns_before=records_before_events(
                [version for version, _ in turns], [version for version, _ in events]
            ),
        )


# Search, and the index, which is behind by up to one batch

# CROSS JOIN fixes the join order: the index is queried once, and not for each message of a session.
_SEARCH = """SELECT sessions.name, messages.number, messages.tokens, -bm25(search) AS score
    FROM search CROSS JOIN messages ON messages.content = search.rowid
    CROSS JOIN sessions ON sessions.id = messages.session
    WHERE search MATCH :words AND (:session IS NULL OR sessions.name = :session)
    ORDER BY score DESC, sessions.version DESC, messages.number DESC LIMIT :limit"""
INDEX_BATCH = 256
"""How many messages are indexed together: merging the index for each one would cost more than writing it."""
_CHECK_EVERY = 16
"""How many new contents pass between two checks of how far the index is behind."""


def search(connection: sqlite3.Connection, words: str, session: str | None, limit: int) -> list[Hit]:
    """Return the messages that contain one of the words: best match first, newest first among equals."""
    phrases = phrases_in(words)
    if not phrases or limit <= 0:
        return []
    query = " OR ".join(f'"{phrase}"' for phrase in phrases)
    rows = connection.execute(_SEARCH, {"words": query, "session": session, "limit": limit})
    return [
        Hit(session=name, number=number, tokens=tokens, score=score) for name, number, tokens, score in rows
    ]


def unindexed(connection: sqlite3.Connection) -> int:
    """Return about how many messages are not in the index yet; 0 if all are."""
    (behind,) = connection.execute(
        "SELECT coalesce((SELECT max(id) FROM contents), 0) - indexed FROM counters"
    ).fetchone()
    return int(behind)


def index_new_messages(connection: sqlite3.Connection, conceal: Conceal) -> None:
    """Index all messages that are not in the index yet."""
    if not unindexed(connection):
        return
    words = _new_words(connection, conceal)
    connection.executemany("INSERT OR REPLACE INTO search (rowid, text) VALUES (?, ?)", words)
    connection.execute("UPDATE counters SET indexed = coalesce((SELECT max(id) FROM contents), 0)")


def _new_words(connection: sqlite3.Connection, conceal: Conceal) -> Iterator[tuple[int, str]]:
    rows = connection.execute(
        "SELECT id, key, body FROM contents WHERE id > (SELECT indexed FROM counters) ORDER BY id"
    )
    for id, key, stored in rows:
        body = _restored(stored)
        # Damaged contents, or those in an unknown form, have no words; reading their session reports them.
        if isinstance(body, bytes) and digest_of(body) == key:
            with suppress(msgspec.MsgspecError):
                words = searchable_text(unpack_message(body), conceal)
                if words:
                    yield id, words


def lower_index_mark(connection: sqlite3.Connection) -> None:
    """Lower the mark up to which contents are indexed, after a deletion: SQLite may use the deleted row ids again."""
    connection.execute(
        "UPDATE counters SET indexed = min(indexed, coalesce((SELECT max(id) FROM contents), 0))"
    )


# Fingerprints

_LOOKUP = (
    "SELECT key, name, hint, newest FROM trails JOIN sessions ON sessions.id = trails.session "
    "WHERE tenant = ? AND key IN"
)
FINGERPRINTS_PER_QUERY = 500
"""Keys in one query; SQLite takes at least 999 values."""


def record_fingerprint(connection: sqlite3.Connection, fingerprint: Fingerprint) -> None:
    """Record the digests a session was last seen with, if the session is stored."""
    row = connection.execute("SELECT id FROM sessions WHERE name = ?", (fingerprint.session,)).fetchone()
    if row is None:
        return
    connection.execute("UPDATE trails SET newest = 0 WHERE session = ? AND newest", row)
    connection.executemany(
        "INSERT INTO trails (tenant, key, session, hint, newest) VALUES (?, ?, ?, ?, 1) "
        "ON CONFLICT DO UPDATE SET hint = excluded.hint, newest = 1",
        [(fingerprint.tenant, key, row[0], fingerprint.hint) for key in fingerprint.keys],
    )


def lookup_fingerprints(
    connection: sqlite3.Connection, tenant: str, keys: Sequence[bytes]
) -> list[FingerprintMatch]:
    """Return the sessions that were once seen with one of these digests."""
    found: list[FingerprintMatch] = []
    for start in range(0, len(keys), FINGERPRINTS_PER_QUERY):
        asked = keys[start : start + FINGERPRINTS_PER_QUERY]
        rows = connection.execute(f"{_LOOKUP} ({', '.join('?' * len(asked))})", (tenant, *asked))
        found += [
            FingerprintMatch(key=key, session=name, hint=hint, newest=bool(newest))
            for key, name, hint, newest in rows
        ]
    return found


def secret(connection: sqlite3.Connection) -> bytes:
    """Return the random bytes that were drawn when the file was created."""
    (body,) = connection.execute("SELECT body FROM secret").fetchone()
    return bytes(body)


def adopt(
    connection: sqlite3.Connection, secret: bytes, trails: Sequence[tuple[str, tuple[object, ...]]]
) -> None:
    """Take over the secret of another file and its fingerprints, whose keys were made with that secret."""
    if not secret:
        return
    connection.execute("UPDATE secret SET body = ?", (secret,))
    connection.executemany(
        "INSERT OR IGNORE INTO trails (tenant, key, session, hint, newest) "
        "SELECT ?, ?, id, ?, ? FROM sessions WHERE name = ?",
        [(tenant, key, hint, newest, name) for name, (tenant, key, _, hint, newest) in trails],
    )


# Appending


def _insert(table: str, *columns: str) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608  # our own names


_INSERT_ENTRY = _insert(
    "entries", "session", "position", "version", "at", "kind", "messages", "tokens", "body"
)
_INSERT_MESSAGE = _insert("messages", "session", "number", "content", "tokens")
_INSERT_TURN = _insert("turns", "session", "version", *TURN_COLUMNS, "body")
_INSERT_EVENT = _insert("compaction_events", "session", "version", "ordinal", *EVENT_COLUMNS, "body")
_UPDATE_SESSION = """UPDATE sessions SET version = :version, entries = entries + :entries,
    messages = messages + :messages, tokens = tokens + :tokens, turns = turns + :turns,
    compactions = compactions + :compactions, model = coalesce(:model, model),
    opened_at = coalesce(min(opened_at, :first), opened_at, :first),
    changed_at = coalesce(max(changed_at, :last), changed_at, :last) WHERE id = :id"""


def append(
    connection: sqlite3.Connection,
    session: str,
    expected: int,
    new: Append,
    packed: Sequence[Packed],
    *,
    conceal: Conceal,
) -> int:
    """Write an append whose entries are `packed`, and return the new version, or raise StaleLedger."""
    now = _find_at_version(connection, session, expected)
    if new == Append():
        return expected
    if not now.id:
        now = SessionRow(name=session, id=begin(connection, session, About()))
    version = next_version(connection, now.id, now.entries + len(packed))
    contents = [content for one in packed for content in one.contents]
    packed = _as_differences(connection, now, packed)
    _write_entries(connection, now, version, packed)
    _write_messages(connection, now, contents, conceal)
    try:
        _write_account(connection, now.id, version, new)
    except sqlite3.OperationalError as error:
        # SQLITE_ERROR: a table or column is missing, and not that the disk is full or the file is locked.
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        raise UnwritableAccounts(str(error)) from error
    _write_state_and_about(connection, now.id, new)
    grown = {"id": now.id, "version": version, **asdict(growth_of(new, contents))}
    connection.execute(_UPDATE_SESSION, grown)
    return version


def _find_at_version(connection: sqlite3.Connection, session: str, expected: int) -> SessionRow:
    """Return the session, without its carried state, or raise StaleLedger if it is at another version."""
    row = connection.execute(
        "SELECT id, entries, messages, tokens, version FROM sessions WHERE name = ?", (session,)
    ).fetchone()
    found = row[4] if row else 0
    if found != expected:
        raise StaleLedger(session, expected=expected, found=found)
    if row is None:
        return SessionRow(name=session)
    return SessionRow(name=session, id=row[0], entries=row[1], messages=row[2], tokens=row[3])


def begin(connection: sqlite3.Connection, session: str, about: About) -> int:
    """Insert the row of a new, empty session and return its id."""
    row = connection.execute(
        "INSERT INTO sessions (name, title, source, parent, ended_at, ended_because) "
        "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        (session, about.title, about.source, about.parent, about.ended_at, about.ended_because),
    ).fetchone()
    return int(row[0])


def next_version(connection: sqlite3.Connection, session: int, entries: int) -> int:
    """Return a new version for a session that now has `entries` entries; no append ever had it before."""
    row = connection.execute(
        "INSERT INTO appends (session, entries) VALUES (?, ?) RETURNING version", (session, entries)
    ).fetchone()
    return int(row[0])


def _as_differences(
    connection: sqlite3.Connection, now: SessionRow, packed: Sequence[Packed]
) -> Sequence[Packed]:
    """Return the entries with each compaction as its difference from the one before; in full if that one is damaged."""
    if not any(isinstance(one.entry, Compacted) for one in packed):
        return packed
    row = connection.execute(
        "SELECT position FROM entries WHERE session = ? AND kind = 'compacted' ORDER BY position DESC LIMIT 1",
        (now.id,),
    ).fetchone()
    base = None
    if row:
        with suppress(Broken, MsgspecError):
            base = load_base(row[0], lambda position: entry_body(connection, now.id, position))
    return pack_differences(packed, now.entries, base)


def _write_entries(
    connection: sqlite3.Connection, now: SessionRow, version: int, packed: Iterable[Packed]
) -> None:
    rows = []
    messages, tokens = now.messages, now.tokens
    for position, one in enumerate(packed, start=now.entries):
        body = seal(one.body)
        rows.append((now.id, position, version, one.entry.at, one.kind, messages, tokens, body))
        messages += len(one.contents)
        tokens += sum(content.tokens for content in one.contents)
    connection.executemany(_INSERT_ENTRY, rows)


def _write_messages(
    connection: sqlite3.Connection, now: SessionRow, contents: Sequence[StoredMessage], conceal: Conceal
) -> None:
    rows = [
        (now.id, number, _content_id(connection, content), content.tokens)
        for number, content in enumerate(contents, start=now.messages + 1)
    ]
    connection.executemany(_INSERT_MESSAGE, rows)
    if any(content % _CHECK_EVERY == 0 for _, _, content, _ in rows) and unindexed(connection) >= INDEX_BATCH:
        index_new_messages(connection, conceal)


def _content_id(connection: sqlite3.Connection, content: StoredMessage) -> int:
    """Return the row id of a content, which is inserted if it is new; an existing row is not touched."""
    new = connection.execute(
        "INSERT INTO contents (key, body) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id",
        (content.key, shrunk(content)),
    ).fetchone()
    known = "SELECT id FROM contents WHERE key = ?"
    (id,) = new or connection.execute(known, (content.key,)).fetchone()
    return int(id)


def _write_account(connection: sqlite3.Connection, id: int, version: int, new: Append) -> None:
    if new.record is not None:
        whole = seal(pack_record(new.record))
        connection.execute(_INSERT_TURN, (id, version, *turn_values(new.record), whole))
    if new.events:
        connection.executemany(
            _INSERT_EVENT,
            [
                (id, version, ordinal, *event_values(event), seal(pack_event(event)))
                for ordinal, event in enumerate(new.events)
            ],
        )


def _write_state_and_about(connection: sqlite3.Connection, id: int, new: Append) -> None:
    if new.carried is not None:
        connection.execute("INSERT OR REPLACE INTO carried VALUES (?, ?)", (id, seal(new.carried)))
    if new.about is not None:
        about = new.about
        connection.execute(
            "UPDATE sessions SET title = ?, source = ?, parent = ?, ended_at = ?, ended_because = ? WHERE id = ?",
            (about.title, about.source, about.parent, about.ended_at, about.ended_because, id),
        )


# Copying and deleting

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
# The tables whose rows a session owns.
_OWNED = ("entries", "messages", "turns", "compaction_events", "carried", "trails")
SESSIONS_PER_DELETE = 100
"""How many sessions one transaction deletes: the index is rewritten once for all of them, and other writers have to wait."""


def copy(connection: sqlite3.Connection, session: str, to: str, about: About) -> int:
    """Create the session `to` with everything that `session` has except its accounts, and return its version."""
    old, existing = find(connection, session), find(connection, to)
    if existing.id:
        raise StaleLedger(to, expected=0, found=existing.version)
    if not old.id:
        raise BadInput(f"there is no session {session!r} to copy")
    new = begin(connection, to, about)
    version = next_version(connection, new, old.entries)
    for statement in _COPIES:
        connection.execute(statement, {"from": old.id, "to": new, "version": version})
    return version


def delete(connection: sqlite3.Connection, sessions: Sequence[str]) -> int:
    """Delete sessions, with the contents that no other session holds; return how many there were."""
    found = [_id_of(connection, session) for session in dict.fromkeys(sessions)]
    ids = [id for id in found if id]
    orphans = sum([_delete_one(connection, id) for id in ids])
    _forget_versions(connection, ids)
    lower_index_mark(connection)
    if orphans:
        # FTS5 only marks deleted rows; their words leave the file when the index is merged.
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    return len(ids)


def _id_of(connection: sqlite3.Connection, session: str) -> int:
    """Return a session's id, 0 if there is none of that name."""
    row = connection.execute("SELECT id FROM sessions WHERE name = ?", (session,)).fetchone()
    return int(row[0]) if row else 0


def _delete_one(connection: sqlite3.Connection, id: int) -> int:
    """Delete one session except its versions, and return how many contents went with it."""
    contents = connection.execute("SELECT DISTINCT content FROM messages WHERE session = ?", (id,)).fetchall()
    for table in _OWNED:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (id,))  # noqa: S608 - our own names
    connection.execute("DELETE FROM sessions WHERE id = ?", (id,))
    is_held = "SELECT 1 FROM messages WHERE content = ?"
    orphans = [content for content in contents if connection.execute(is_held, content).fetchone() is None]
    connection.executemany("DELETE FROM search WHERE rowid = ?", orphans)
    connection.executemany("DELETE FROM contents WHERE id = ?", orphans)
    return len(orphans)


def _forget_versions(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Delete the versions of sessions, but keep the highest of all, for no session: otherwise SQLite would use that number again."""
    marks = ",".join("?" * len(ids))
    connection.execute(
        f"DELETE FROM appends WHERE session IN ({marks}) "  # noqa: S608 - only question marks
        "AND version < (SELECT max(version) FROM appends)",
        ids,
    )
    connection.execute(f"UPDATE appends SET session = 0, entries = 0 WHERE session IN ({marks})", ids)  # noqa: S608
