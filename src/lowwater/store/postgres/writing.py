"""One append, inside a transaction."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import cast

from msgspec import MsgspecError, Struct
from psycopg.errors import UndefinedColumn, UndefinedTable

from lowwater.core.entries import Compacted
from lowwater.core.stored import About, Append
from lowwater.errors import StaleLedger
from lowwater.store.accounts_apart import UnwritableAccounts
from lowwater.store.columns import EVENT_COLUMNS, TURN_COLUMNS, Value, event_values, turn_values
from lowwater.store.growth import Growth, growth_of
from lowwater.store.indexing import Conceal, words_of
from lowwater.store.packing import Content, Packed, pack, pack_event, pack_record, pack_since
from lowwater.store.postgres.contents import keep_contents
from lowwater.store.postgres.reading import entry_body
from lowwater.store.postgres.schema import Connection
from lowwater.store.postgres.sessions import Session, begin, carry, describe, find, grow, next_version
from lowwater.store.postgres.texts import stored
from lowwater.store.restoring import base_at
from lowwater.store.sealing import Broken, seal


def _insert(table: str, *columns: str) -> bytes:
    marks = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})".encode()  # noqa: S608 - our own names


_INSERT_TURN = _insert("turns", "session", "version", *TURN_COLUMNS, "body")
_INSERT_EVENT = _insert("compaction_events", "session", "version", "ordinal", *EVENT_COLUMNS, "body")


class Ready(Struct, frozen=True, kw_only=True):
    """An append with its entries packed, once for all attempts to write it."""

    new: Append
    entries: tuple[Packed, ...]
    contents: tuple[Content, ...]
    growth: Growth


def ready(new: Append) -> Ready:
    """Return the append ready to be written, or raise BadInput or IllegalEntry."""
    entries = tuple(pack(entry) for entry in new.entries)
    contents = tuple(content for packed in entries for content in packed.contents)
    return Ready(new=new, entries=entries, contents=contents, growth=growth_of(new, contents))


def append(connection: Connection, session: str, expected: int, ready: Ready, conceal: Conceal) -> int:
    """Write what is new, and return the new version, or raise StaleLedger."""
    now = find(connection, session, "FOR UPDATE")
    if now.version != expected:
        raise StaleLedger(session, expected=expected, found=now.version)
    if ready.new == Append():
        return expected
    if not now.id:
        now = begin(connection, session, About())
    version = next_version(connection, now.id, now.entries + len(ready.entries))
    ids = keep_contents(connection, ready.contents, lambda content: words_of(content.message, conceal))
    entries = _told_by_changes(connection, now, ready.entries)
    try:
        with connection.pipeline():
            _write_entries(connection, now, version, entries)
            _write_messages(connection, now, ready.contents, ids)
            _write_account(connection, now.id, version, ready.new)
            carry(connection, now.id, ready.new.carried)
            describe(connection, now.id, ready.new.about)
            grow(connection, now.id, version, ready.growth)
    except (UndefinedTable, UndefinedColumn) as error:
        if ready.new.record is None and not ready.new.events:
            raise
        # The driver takes the statements behind the failed one for prepared, and the server has none of them.
        connection.close()
        # Which statement it was is not told: without the accounts it fails again if it was another.
        raise UnwritableAccounts(error.diag.message_primary or type(error).__name__) from error
    return version


def _told_by_changes(connection: Connection, now: Session, packed: Sequence[Packed]) -> Sequence[Packed]:
    """Return the entries with compactions told by what they change; one whose predecessor is damaged is written in full."""
    if not any(isinstance(one.entry, Compacted) for one in packed):
        return packed
    row = connection.execute(
        "SELECT position FROM entries WHERE session = %s AND kind = 'compacted' ORDER BY position DESC LIMIT 1",
        (now.id,),
    ).fetchone()
    base = None
    if row:
        with suppress(Broken, MsgspecError):
            base = base_at(cast("int", row[0]), lambda position: entry_body(connection, now.id, position))
    return pack_since(packed, now.entries, base)


def _write_entries(connection: Connection, now: Session, version: int, entries: Sequence[Packed]) -> None:
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
    connection: Connection, now: Session, contents: Sequence[Content], ids: dict[bytes, int]
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
        connection.execute(_INSERT_TURN, (id, version, *_readable(turn_values(new.record)), whole))
    for ordinal, event in enumerate(new.events):
        whole = seal(pack_event(event))
        connection.execute(_INSERT_EVENT, (id, version, ordinal, *_readable(event_values(event)), whole))


def _readable(values: Iterable[Value]) -> Iterable[Value]:
    return (stored(value) if isinstance(value, str) else value for value in values)
