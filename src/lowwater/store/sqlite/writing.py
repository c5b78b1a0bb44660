"""One append, inside a transaction."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import cast

from msgspec import Struct

from lowwater.errors import StaleLedger
from lowwater.store.indexing import words_of
from lowwater.store.packing import Content, Packed, pack_record
from lowwater.store.sealing import seal
from lowwater.values.entries import Appended
from lowwater.values.turn_record import TurnRecord


class _Session(Struct, frozen=True, kw_only=True):
    id: int
    entries: int
    messages: int


def append(
    connection: sqlite3.Connection,
    session: str,
    expected: int,
    entries: Sequence[Packed],
    record: TurnRecord | None,
) -> int:
    """Write entries and record, and return the new version, or raise StaleLedger."""
    times = [packed.entry.at for packed in entries] + ([record.at] if record is not None else [])
    now = _at_version(connection, session, expected)
    if not times:
        return expected
    if now is None:
        now = _begin(connection, session, times[0])
    version = _inserted(connection, "INSERT INTO appends (session) VALUES (?)", (now.id,))
    connection.executemany(
        "INSERT INTO entries (session, version, position, at, kind, body) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (now.id, version, position, packed.entry.at, packed.kind, seal(packed.body))
            for position, packed in enumerate(entries, start=now.entries)
        ),
    )
    numbered = [sized for packed in entries for sized in _sized(packed)]
    _write_messages(connection, now, numbered)
    if record is not None:
        _write_record(connection, now.id, version, record)
    connection.execute(
        "UPDATE sessions SET version = ?, entries = ?, messages = ?, turns = turns + ?, changed_at = ? WHERE id = ?",
        (
            version,
            now.entries + len(entries),
            now.messages + len(numbered),
            int(record is not None),
            times[-1],
            now.id,
        ),
    )
    return version


def _at_version(connection: sqlite3.Connection, session: str, expected: int) -> _Session | None:
    row = connection.execute(
        "SELECT id, entries, messages, version FROM sessions WHERE name = ?", (session,)
    ).fetchone()
    found = row[3] if row else 0
    if found != expected:
        raise StaleLedger(session, expected=expected, found=found)
    return _Session(id=row[0], entries=row[1], messages=row[2]) if row else None


def _begin(connection: sqlite3.Connection, session: str, at: float) -> _Session:
    id = _inserted(
        connection,
        "INSERT INTO sessions (name, version, entries, messages, turns, opened_at, changed_at) "
        "VALUES (?, 0, 0, 0, 0, ?, ?)",
        (session, at, at),
    )
    return _Session(id=id, entries=0, messages=0)


class _Sized(Struct, frozen=True, kw_only=True):
    content: Content
    tokens: int


def _sized(packed: Packed) -> Iterable[_Sized]:
    if isinstance(packed.entry, Appended):
        for content, tokens in zip(packed.contents, packed.entry.tokens, strict=True):
            yield _Sized(content=content, tokens=tokens)


def _write_messages(connection: sqlite3.Connection, session: _Session, sized: Sequence[_Sized]) -> None:
    rows = [
        (session.id, number, _content_id(connection, one.content), one.tokens)
        for number, one in enumerate(sized, start=session.messages + 1)
    ]
    connection.executemany(
        "INSERT INTO messages (session, number, content, tokens) VALUES (?, ?, ?, ?)", rows
    )


def _content_id(connection: sqlite3.Connection, content: Content) -> int:
    """Return where the content is; what is new is written and indexed, what is known is touched in no way."""
    known = connection.execute("SELECT id FROM contents WHERE key = ?", (content.key,)).fetchone()
    if known:
        return int(known[0])
    new = _inserted(connection, "INSERT INTO contents (key, body) VALUES (?, ?)", (content.key, content.body))
    words = words_of(content.message)
    if words:
        connection.execute("INSERT INTO search (rowid, text) VALUES (?, ?)", (new, words))
    return new


def _write_record(connection: sqlite3.Connection, session: int, version: int, record: TurnRecord) -> None:
    used = record.usage
    figures = (
        (None,) * 5
        if used is None
        else (used.uncached, used.cache_read, used.cache_write, used.cache_write_long, used.output)
    )
    kept = seal(pack_record(record.outdated()))
    connection.execute(
        "INSERT INTO turns (session, version, at, model, uncached, cache_read, cache_write, cache_write_long, "
        "output, cost, decision, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session, version, record.at, record.model, *figures, record.cost, record.decision, kept),
    )
    connection.execute("UPDATE sessions SET newest = ? WHERE id = ?", (seal(pack_record(record)), session))


def _inserted(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> int:
    return cast("int", connection.execute(statement, values).lastrowid)
