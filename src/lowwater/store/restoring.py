"""From stored rows back to entries and records, whatever database they lie in; what is damaged is named."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import cast

import msgspec
from msgspec import Struct

from lowwater.core.entries import Compacted, Entry, Stand
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Numbered
from lowwater.core.messages import Message
from lowwater.core.stored import Landmark, LandmarkKind
from lowwater.errors import DamagedStore, UnknownForm
from lowwater.store.packing import (
    Base,
    CompactedSince,
    digest,
    joined_stands,
    keys_in,
    unpack,
    unpack_event,
    unpack_kept,
    unpack_message,
    unpack_record,
)
from lowwater.store.sealing import Broken, unseal

_log = logging.getLogger("lowwater")

AT_ONCE = 500
"""Messages asked for in one query; SQLite takes at least 999 values."""


class Row(Struct, frozen=True, kw_only=True):
    """An entry as it is stored."""

    version: int
    position: int
    sealed: object


class Hurt(Exception):
    """What a version brought cannot be read; never leaves the store."""

    def __init__(self, version: int, what: str, *, intact: bool = False) -> None:
        """Note the version; `intact` says that the bytes are what was written, so that only their form is unknown."""
        super().__init__(what)
        self.version = version
        self.intact = intact

    def reported(self, session: str, whole: int) -> DamagedStore:
        """Return what the caller is told; `whole` is the version before the damage, 0 if there is none."""
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


Fetch = Callable[[Sequence[bytes]], Iterable[tuple[bytes, object]]]
"""Finds content by its keys: yields key and bytes of what there is, in any order."""


FetchEntry = Callable[[int], object]
"""Finds the stored bytes of one entry of the same session by its position; None if there is none."""


def base_at(position: int, fetch: FetchEntry, known: dict[int, tuple[Stand, ...]] | None = None) -> Base:
    """Return a stored compaction, reading those that it is told by, or raise Broken or msgspec.MsgspecError."""
    known = {} if known is None else known
    waiting: list[tuple[int, CompactedSince]] = []
    at, depth = position, 0
    while at not in known:
        kept = unpack_kept(unseal(fetch(at)))
        if isinstance(kept, Compacted):
            known[at] = kept.stands
        elif isinstance(kept, CompactedSince) and kept.base < at:
            waiting.append((at, kept))
            depth = depth or kept.depth
            at = kept.base
        else:
            raise Broken("a compaction before it is gone")
    for at, since in reversed(waiting):
        known[at] = joined_stands(known[since.base], since.pieces)
    return Base(position=position, stands=known[position], depth=depth)


def restore_entries(rows: Iterable[Row], fetch: Fetch, fetch_entry: FetchEntry) -> Iterator[Entry]:
    """Yield the entries of these rows or raise Hurt; messages are fetched for many at once, so that no row costs a query."""
    waiting = iter(rows)
    stands: dict[int, tuple[Stand, ...]] = {}
    while batch := list(islice(waiting, AT_ONCE)):
        messages, unknown = _messages(_keys(batch), fetch)
        for row in batch:
            try:
                entry = _entry(row, messages, stands, fetch_entry)
            except (Broken, msgspec.MsgspecError) as error:
                intact = isinstance(error, msgspec.MsgspecError)
                raise Hurt(row.version, f"entry {row.position} ({error})", intact=intact) from error
            except KeyError as error:
                why = unknown.get(error.args[0])
                said = f"entry {row.position} ({why or 'a message of it is gone or changed'})"
                raise Hurt(row.version, said, intact=why is not None) from error
            yield entry


def _entry(
    row: Row,
    messages: dict[bytes, Message],
    stands: dict[int, tuple[Stand, ...]],
    fetch_entry: FetchEntry,
) -> Entry:
    body = unseal(row.sealed)
    kept = unpack_kept(body)
    if isinstance(kept, CompactedSince):
        base_at(kept.base, fetch_entry, stands)
    entry = unpack(body, messages, stands)
    if isinstance(entry, Compacted):
        stands[row.position] = entry.stands
    return entry


class Held(Struct, frozen=True, kw_only=True):
    """A message as a session holds it: its number and size, and the content it was stored as."""

    number: int
    tokens: int
    key: object
    body: object


def restore_messages(
    numbers: range, found: Iterable[Held], version_of: Callable[[int], int]
) -> Iterator[Numbered]:
    """Yield the messages with these numbers, found in their order, or raise Hurt at the first that is gone or changed.

    `version_of` tells with which version a message came.
    """
    waiting = iter(found)
    for number in numbers:
        held = next(waiting, None)
        if held is None or held.number != number or not _is_intact(held):
            raise Hurt(version_of(number), f"message {number} (it is gone or changed)")
        try:
            message = unpack_message(cast("bytes", held.body))
        except msgspec.MsgspecError as error:
            raise Hurt(version_of(number), f"message {number} ({error})", intact=True) from error
        yield Numbered(message=message, tokens=held.tokens)


def _is_intact(held: Held) -> bool:
    return isinstance(held.body, bytes) and digest(held.body) == held.key


def restore_event(version: int, sealed: object) -> Event:
    """Return an event that was stored with this version, or raise Hurt."""
    try:
        return unpack_event(unseal(sealed))
    except (Broken, msgspec.MsgspecError) as error:
        intact = isinstance(error, msgspec.MsgspecError)
        raise Hurt(version, f"an event ({error})", intact=intact) from error


def restore_carried(session: str, sealed: object) -> bytes:
    """Return what a session carries besides its entries, nothing if nothing was stored.

    If that is damaged it is logged and left aside: a session goes on without it, for its ledger is whole.
    """
    if sealed is None:
        return b""
    try:
        return unseal(sealed)
    except Broken:
        _log.warning("session %r: what it carries besides its entries is damaged, and left aside", session)
        return b""


def landmark(position: int, kind: str, at: float, messages: int, tokens: int) -> Landmark:
    """Return a landmark from what is stored of it."""
    return Landmark(
        position=position, kind=cast("LandmarkKind", kind), at=at, messages=messages, tokens=tokens
    )


def restore_record(version: int, sealed: object) -> TurnRecord:
    """Return the record that was stored with this version, or raise Hurt."""
    try:
        return unpack_record(unseal(sealed))
    except (Broken, msgspec.MsgspecError) as error:
        intact = isinstance(error, msgspec.MsgspecError)
        raise Hurt(version, f"a turn record ({error})", intact=intact) from error


def _keys(rows: Iterable[Row]) -> list[bytes]:
    """Return the keys that these rows name; a damaged row names none, and is found out when it is unpacked."""
    keys: dict[bytes, None] = {}
    for row in rows:
        try:
            keys.update(dict.fromkeys(keys_in(unseal(row.sealed))))
        except (Broken, msgspec.MsgspecError):
            continue
    return list(keys)


def _messages(
    keys: Sequence[bytes], fetch: Fetch
) -> tuple[dict[bytes, Message], dict[bytes, msgspec.MsgspecError]]:
    """Return the messages with these keys, and why some are unknown; one whose bytes do not match its key is in neither."""
    messages: dict[bytes, Message] = {}
    unknown: dict[bytes, msgspec.MsgspecError] = {}
    for start in range(0, len(keys), AT_ONCE):
        for key, body in fetch(keys[start : start + AT_ONCE]):
            if not isinstance(body, bytes) or digest(body) != key:
                continue
            try:
                messages[key] = unpack_message(body)
            except msgspec.MsgspecError as error:
                unknown[key] = error
    return messages, unknown
