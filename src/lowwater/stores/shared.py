"""What the SQLite and PostgreSQL stores share: readable columns, words for the search index, and rows back to entries."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Compacted, Entry, ModelChanged, Opened, ViewItem
from lowwater.core.events import Compaction, Event, Skip, TurnRecord
from lowwater.core.ledger import Numbered
from lowwater.core.messages import Message, texts_of
from lowwater.core.stored import Append, Landmark, LandmarkKind
from lowwater.errors import DamagedStore, UnknownForm
from lowwater.stores.serialization import (
    Base,
    Broken,
    CompactedSince,
    StoredMessage,
    digest_of,
    joined_items,
    message_keys,
    unpack_entry,
    unpack_event,
    unpack_message,
    unpack_record,
    unpack_stored,
    unseal,
)

_log = logging.getLogger("lowwater")
Value = int | float | str | None


# Readable columns

TURN_COLUMNS = (
    *("at", "model", "uncached", "cache_read", "cache_write", "cache_write_long", "output"),
    *("cost", "untouched", "removed", "decision"),
)
EVENT_COLUMNS = (
    *("at", "kind", "reason", "model", "mode", "mechanisms", "number", "tokens_before", "tokens_after"),
    *("reclaimed", "ratio", "items_before", "items_after", "first_changed", "disturbed", "summary_tokens"),
    *("summarizer", "score", "seconds", "cost", "price", "saves", "payback", "rejected"),
)


def turn_values(record: TurnRecord) -> tuple[Value, ...]:
    """Return a record's columns; the usage is NULL if the provider reported none."""
    used = record.usage
    usage: tuple[Value, ...] = (
        (None,) * 5
        if used is None
        else (used.uncached, used.cache_read, used.cache_write, used.cache_write_long, used.output)
    )
    rest = (record.cost, record.untouched, record.removed, record.decision)
    return (record.at, record.model, *usage, *rest)


def event_values(event: Event) -> tuple[Value, ...]:
    """Return an event's columns; for a skip, the size of the prompt is both the size before and after."""
    match event:
        case Compaction():
            return (
                *(event.at, "compaction", event.because.code, event.model, event.mode),
                *(",".join(event.mechanisms), event.number, event.before, event.after),
                *(event.reclaimed, event.ratio, event.items_before, event.items_after),
                *(event.first_changed, event.disturbed, event.summary_tokens, event.summarizer),
                *(event.score, event.seconds, event.cost, event.price, event.saves, event.payback),
                len(event.rejected),
            )
        case Skip():
            values: dict[str, Value] = {
                "at": event.at,
                "kind": "skip",
                "reason": event.because.code,
                "tokens_before": event.prompt,
                "tokens_after": event.prompt,
                "reclaimed": 0,
                "rejected": len(event.rejected),
            }
            return tuple(values.get(column) for column in EVENT_COLUMNS)


class Growth(Struct, frozen=True, kw_only=True):
    """What an append adds to the totals of its session; times and model are None if the append has none."""

    entries: int
    messages: int
    tokens: int
    turns: int
    compactions: int
    model: str | None
    first: float | None
    """The earliest time of anything in the append."""
    last: float | None


def growth_of(new: Append, contents: Sequence[StoredMessage]) -> Growth:
    """Return what an append with these messages adds to the totals."""
    records = () if new.record is None else (new.record,)
    times = [happened.at for happened in (*new.entries, *new.events, *records)]
    models = [entry.model for entry in new.entries if isinstance(entry, Opened | ModelChanged)]
    return Growth(
        entries=len(new.entries),
        messages=len(contents),
        tokens=sum(content.tokens for content in contents),
        turns=len(records),
        compactions=sum(isinstance(entry, Compacted) for entry in new.entries),
        model=models[-1] if models else None,
        first=min(times, default=None),
        last=max(times, default=None),
    )


def landmark(position: int, kind: str, at: float, messages: int, tokens: int) -> Landmark:
    """Return a landmark from its columns."""
    return Landmark(
        position=position, kind=cast("LandmarkKind", kind), at=at, messages=messages, tokens=tokens
    )


# Entries, messages and accounts from rows

MESSAGES_PER_QUERY = 500
"""Messages fetched in one query; SQLite takes at least 999 values."""
FetchContents = Callable[[Sequence[bytes]], Iterable[tuple[bytes, object]]]
"""Fetches contents by their keys: yields key and bytes of those that exist, in any order."""
FetchEntry = Callable[[int], object]
"""Fetches the stored bytes of an entry of the same session by its position; None if there is none."""


class EntryRow(Struct, frozen=True, kw_only=True):
    """An entry as it is stored."""

    version: int
    position: int
    sealed: object


class MessageRow(Struct, frozen=True, kw_only=True):
    """A message as it is stored: its number and size in the session, and its content."""

    number: int
    tokens: int
    key: object
    body: object


class DamagedVersion(Exception):
    """Something that a version stored cannot be read; raised and caught inside the store."""

    def __init__(self, version: int, what: str, *, intact: bool = False) -> None:
        """Note the version; `intact` means that the bytes are as they were written, but in a form that is not known here."""
        super().__init__(what)
        self.version = version
        self.intact = intact

    def reported(self, session: str, whole: int) -> DamagedStore:
        """Return the error for the caller; `whole` is the last version before the damage, 0 if there is none."""
        if self.intact:
            upto = f", or read it here up to version {whole}" if whole else ""
            return UnknownForm(
                f"session {session!r} has {self}, which this Lowwater does not know: "
                f"use the Lowwater that stored it, or a newer one{upto}",
                session,
                whole,
            )
        way_out = f"read it up to version {whole}, or delete it" if whole else "delete it"
        salvage = "`lowwater sessions salvage NEW.db` writes everything else into a new store"
        return DamagedStore(f"session {session!r} is damaged at {self}: {way_out}; {salvage}", session, whole)


def restore_entries(
    rows: Iterable[EntryRow], fetch: FetchContents, fetch_entry: FetchEntry
) -> Iterator[Entry]:
    """Yield the entries of these rows, or raise DamagedVersion; messages are fetched for many rows in one query."""
    waiting = iter(rows)
    items: dict[int, tuple[ViewItem, ...]] = {}
    while batch := list(islice(waiting, MESSAGES_PER_QUERY)):
        messages, unknown = _messages(_keys(batch), fetch)
        for row in batch:
            try:
                entry = _entry(row, messages, items, fetch_entry)
            except (Broken, msgspec.MsgspecError) as error:
                intact = isinstance(error, msgspec.MsgspecError)
                raise DamagedVersion(row.version, f"entry {row.position} ({error})", intact=intact) from error
            except KeyError as error:
                why = unknown.get(error.args[0])
                what = f"entry {row.position} ({why or 'a message of it is gone or changed'})"
                raise DamagedVersion(row.version, what, intact=why is not None) from error
            yield entry


def _entry(
    row: EntryRow,
    messages: dict[bytes, Message],
    items: dict[int, tuple[ViewItem, ...]],
    fetch_entry: FetchEntry,
) -> Entry:
    body = unseal(row.sealed)
    stored = unpack_stored(body)
    if isinstance(stored, CompactedSince):
        load_base(stored.base, fetch_entry, items)
    entry = unpack_entry(body, messages, items)
    if isinstance(entry, Compacted):
        items[row.position] = entry.items
    return entry


def load_base(position: int, fetch: FetchEntry, known: dict[int, tuple[ViewItem, ...]] | None = None) -> Base:
    """Return a stored compaction, reading back along the chain of differences, or raise Broken or msgspec.MsgspecError."""
    known = {} if known is None else known
    waiting: list[tuple[int, CompactedSince]] = []
    at, depth = position, 0
    while at not in known:
        stored = unpack_stored(unseal(fetch(at)))
        if isinstance(stored, Compacted):
            known[at] = stored.items
        elif isinstance(stored, CompactedSince) and stored.base < at:
            waiting.append((at, stored))
            depth = depth or stored.depth
            at = stored.base
        else:
            raise Broken("a compaction before it is gone")
    for at, since in reversed(waiting):
        known[at] = joined_items(known[since.base], since.pieces)
    return Base(position=position, items=known[position], depth=depth)


def _keys(rows: Iterable[EntryRow]) -> list[bytes]:
    """Return the keys of the messages in these rows; a damaged row has none, and is reported when it is unpacked."""
    keys: dict[bytes, None] = {}
    for row in rows:
        try:
            keys.update(dict.fromkeys(message_keys(unseal(row.sealed))))
        except (Broken, msgspec.MsgspecError):
            continue
    return list(keys)


def _messages(
    keys: Sequence[bytes], fetch: FetchContents
) -> tuple[dict[bytes, Message], dict[bytes, msgspec.MsgspecError]]:
    """Return the messages with these keys, and why some cannot be decoded; one whose bytes do not match its key is in neither."""
    messages: dict[bytes, Message] = {}
    unknown: dict[bytes, msgspec.MsgspecError] = {}
    for start in range(0, len(keys), MESSAGES_PER_QUERY):
        for key, body in fetch(keys[start : start + MESSAGES_PER_QUERY]):
            if not isinstance(body, bytes) or digest_of(body) != key:
                continue
            try:
                messages[key] = unpack_message(body)
            except msgspec.MsgspecError as error:
                unknown[key] = error
    return messages, unknown


def restore_messages(
    numbers: range, found: Iterable[MessageRow], version_of: Callable[[int], int]
) -> Iterator[Numbered]:
    """Yield the messages with these numbers, or raise DamagedVersion at the first that is gone or changed.

    `found` are the rows in order; `version_of` returns the version with which a message was stored.
    """
    waiting = iter(found)
    for number in numbers:
        row = next(waiting, None)
        if row is None or row.number != number or not _is_intact(row):
            raise DamagedVersion(version_of(number), f"message {number} (it is gone or changed)")
        try:
            message = unpack_message(cast("bytes", row.body))
        except msgspec.MsgspecError as error:
            raise DamagedVersion(version_of(number), f"message {number} ({error})", intact=True) from error
        yield Numbered(message=message, tokens=row.tokens)


def _is_intact(row: MessageRow) -> bool:
    return isinstance(row.body, bytes) and digest_of(row.body) == row.key


def restore_record(version: int, sealed: object) -> TurnRecord:
    """Return the record that was stored with this version, or raise DamagedVersion."""
    try:
        return unpack_record(unseal(sealed))
    except (Broken, msgspec.MsgspecError) as error:
        intact = isinstance(error, msgspec.MsgspecError)
        raise DamagedVersion(version, f"a turn record ({error})", intact=intact) from error


def restore_event(version: int, sealed: object) -> Event:
    """Return an event that was stored with this version, or raise DamagedVersion."""
    try:
        return unpack_event(unseal(sealed))
    except (Broken, msgspec.MsgspecError) as error:
        intact = isinstance(error, msgspec.MsgspecError)
        raise DamagedVersion(version, f"an event ({error})", intact=intact) from error


def restore_carried(session: str, sealed: object) -> bytes:
    """Return the carried state of a session, empty if nothing was stored.

    If it is damaged, that is logged and the state is ignored: the session goes on without it, because its ledger is intact.
    """
    if sealed is None:
        return b""
    try:
        return unseal(sealed)
    except Broken:
        _log.warning("session %r: its state besides the entries is damaged, and ignored", session)
        return b""


# Accounts that cannot be written


class UnwritableAccounts(Exception):
    """The tables of turn records and events cannot be written; raised and caught inside the store."""


class AccountFallback:
    """Writes appends without their record and events if only these cannot be written; logs that once."""

    def __init__(self, place: object) -> None:
        self._place = place
        self._has_logged = False

    def write(self, new: Append, write: Callable[[Append], int]) -> int:
        """Return the version that `write` gave to the append, or to as much of it as can be written."""
        try:
            return write(new)
        except UnwritableAccounts as error:
            reason = str(error)
        if not self._has_logged:
            self._has_logged = True
            _log.warning(
                "the store %s cannot record what its sessions do and cost (%s): everything else is stored; restore a copy with all "
                "of its tables, or choose another place",
                self._place,
                reason,
            )
        return write(replace(new, record=None, events=()))


# Words for the search index

Conceal = Callable[[str], str]
"""Removes secrets from a text before its words are indexed."""


def conceal_secrets(text: str) -> str:
    """Return the text with its secrets replaced."""
    from lowwater.core.secrets.redaction import conceal  # noqa: PLC0415 - hundreds of patterns, for those who index

    return conceal(text)


def conceal_nothing(text: str) -> str:
    """Return the text unchanged."""
    return text


def searchable_text(message: Message, conceal: Conceal = conceal_nothing) -> str:
    """Return all searchable text of a message, ready for the index."""
    from lowwater.core.recall.index_terms import spaced, with_parts  # noqa: PLC0415 - for those who index

    return spaced(with_parts(conceal("\n".join(texts_of(message)))))
