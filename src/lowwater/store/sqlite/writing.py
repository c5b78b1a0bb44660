"""One append, inside a transaction."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec import MsgspecError, Struct
from msgspec.structs import asdict

from lowwater.core.entries import Compacted
from lowwater.core.stored import About, Append
from lowwater.errors import StaleLedger
from lowwater.store.accounts_apart import UnwritableAccounts
from lowwater.store.columns import EVENT_COLUMNS, TURN_COLUMNS, event_values, turn_values
from lowwater.store.growth import growth_of
from lowwater.store.indexing import Conceal
from lowwater.store.packing import Content, Packed, pack_event, pack_record, pack_since
from lowwater.store.restoring import base_at
from lowwater.store.sealing import Broken, seal
from lowwater.store.sqlite.catching_up import AT_ONCE, catch_up, waiting
from lowwater.store.sqlite.reading import entry_body


class _Session(Struct, frozen=True, kw_only=True):
    id: int
    entries: int = 0
    messages: int = 0
    tokens: int = 0


def _insert(table: str, *columns: str) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608  # our own names


_INSERT_ENTRY = _insert(
    "entries", "session", "position", "version", "at", "kind", "messages", "tokens", "body"
)
_INSERT_MESSAGE = _insert("messages", "session", "number", "content", "tokens")
_INSERT_TURN = _insert("turns", "session", "version", *TURN_COLUMNS, "body")
_INSERT_EVENT = _insert("compaction_events", "session", "version", "ordinal", *EVENT_COLUMNS, "body")
_LOOKS = 16
"""How many contents come between two looks at how far the index is behind."""
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
    """Write what is new, of which `packed` are the entries, and return the new version, or raise StaleLedger."""
    now = _at_version(connection, session, expected)
    if new == Append():
        return expected
    if now is None:
        now = _Session(id=begin(connection, session, About()))
    version = next_version(connection, now.id, now.entries + len(packed))
    contents = [content for one in packed for content in one.contents]
    packed = _told_by_changes(connection, now, packed)
    _write_entries(connection, now, version, packed)
    _write_messages(connection, now, contents, conceal)
    try:
        _write_account(connection, now.id, version, new)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        raise UnwritableAccounts(str(error)) from error
    _write_besides(connection, now.id, new)
    grown = {"id": now.id, "version": version, **asdict(growth_of(new, contents))}
    connection.execute(_UPDATE_SESSION, grown)
    return version


def _told_by_changes(
    connection: sqlite3.Connection, now: _Session, packed: Sequence[Packed]
) -> Sequence[Packed]:
    """Return the entries with compactions told by what they change; one whose predecessor is damaged is written in full."""
    if not any(isinstance(one.entry, Compacted) for one in packed):
        return packed
    row = connection.execute(
        "SELECT position FROM entries WHERE session = ? AND kind = 'compacted' ORDER BY position DESC LIMIT 1",
        (now.id,),
    ).fetchone()
    base = None
    if row:
        with suppress(Broken, MsgspecError):
            base = base_at(row[0], lambda position: entry_body(connection, now.id, position))
    return pack_since(packed, now.entries, base)


def begin(connection: sqlite3.Connection, session: str, about: About) -> int:
    """Write the row of a session that has nothing yet and return its id."""
    row = connection.execute(
        "INSERT INTO sessions (name, title, source, parent, ended_at, ended_because) "
        "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        (session, about.title, about.source, about.parent, about.ended_at, about.ended_because),
    ).fetchone()
    return int(row[0])


def next_version(connection: sqlite3.Connection, session: int, entries: int) -> int:
    """Give a session of this id a version that no append had before; it leads to so many entries."""
    row = connection.execute(
        "INSERT INTO appends (session, entries) VALUES (?, ?) RETURNING version", (session, entries)
    ).fetchone()
    return int(row[0])


def _at_version(connection: sqlite3.Connection, session: str, expected: int) -> _Session | None:
    row = connection.execute(
        "SELECT id, entries, messages, tokens, version FROM sessions WHERE name = ?", (session,)
    ).fetchone()
    found = row[4] if row else 0
    if found != expected:
        raise StaleLedger(session, expected=expected, found=found)
    return _Session(id=row[0], entries=row[1], messages=row[2], tokens=row[3]) if row else None


def _write_entries(
    connection: sqlite3.Connection, now: _Session, version: int, packed: Iterable[Packed]
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
    connection: sqlite3.Connection, now: _Session, contents: Sequence[Content], conceal: Conceal
) -> None:
    rows = [
        (now.id, number, _content_id(connection, content), content.tokens)
        for number, content in enumerate(contents, start=now.messages + 1)
    ]
    connection.executemany(_INSERT_MESSAGE, rows)
    if any(content % _LOOKS == 0 for _, _, content, _ in rows) and waiting(connection) >= AT_ONCE:
        catch_up(connection, conceal)


def _content_id(connection: sqlite3.Connection, content: Content) -> int:
    """Return where the content is; what is known is touched in no way."""
    new = connection.execute(
        "INSERT INTO contents (key, body) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id",
        (content.key, content.body),
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


def _write_besides(connection: sqlite3.Connection, id: int, new: Append) -> None:
    if new.carried is not None:
        connection.execute("INSERT OR REPLACE INTO carried VALUES (?, ?)", (id, seal(new.carried)))
    if new.about is not None:
        about = new.about
        connection.execute(
            "UPDATE sessions SET title = ?, source = ?, parent = ?, ended_at = ?, ended_because = ? WHERE id = ?",
            (about.title, about.source, about.parent, about.ended_at, about.ended_because, id),
        )
