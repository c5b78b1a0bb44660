"""From stored rows back to entries and records, whatever database they lie in; what is damaged is named."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import cast

import msgspec
from msgspec import Struct

from lowwater.errors import DamagedStore
from lowwater.store.packing import digest, keys_in, unpack, unpack_event, unpack_message, unpack_record
from lowwater.store.sealing import Broken, unseal
from lowwater.values.entries import Entry
from lowwater.values.events import Event
from lowwater.values.ledger import Numbered
from lowwater.values.message import Message
from lowwater.values.stored import Landmark, LandmarkKind
from lowwater.values.turn_record import TurnRecord

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

    def __init__(self, version: int, what: str) -> None:
        super().__init__(what)
        self.version = version

    def reported(self, session: str, whole: int) -> DamagedStore:
        """Return what the caller is told; `whole` is the version before the damage, 0 if there is none."""
        way_out = f"read it up to version {whole}, or delete it" if whole else "delete it"
        return DamagedStore(f"session {session!r} is damaged at {self}: {way_out}", session, whole)


Fetch = Callable[[Sequence[bytes]], Iterable[tuple[bytes, object]]]
"""Finds content by its keys: yields key and bytes of what there is, in any order."""


def restore_entries(rows: Iterable[Row], fetch: Fetch) -> Iterator[Entry]:
    """Yield the entries of these rows or raise Hurt; messages are fetched for many at once, so that no row costs a query."""
    waiting = iter(rows)
    while batch := list(islice(waiting, AT_ONCE)):
        messages = _messages(_keys(batch), fetch)
        for row in batch:
            try:
                entry = unpack(unseal(row.sealed), messages)
            except (Broken, KeyError, msgspec.MsgspecError) as error:
                why = "a message of it is gone or changed" if isinstance(error, KeyError) else error
                raise Hurt(row.version, f"entry {row.position} ({why})") from error
            yield entry


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
        yield Numbered(message=unpack_message(cast("bytes", held.body)), tokens=held.tokens)


def _is_intact(held: Held) -> bool:
    return isinstance(held.body, bytes) and digest(held.body) == held.key


def restore_event(version: int, sealed: object) -> Event:
    """Return an event that was stored with this version, or raise Hurt."""
    try:
        return unpack_event(unseal(sealed))
    except (Broken, msgspec.MsgspecError) as error:
        raise Hurt(version, f"an event ({error})") from error


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
        raise Hurt(version, f"a turn record ({error})") from error


def _keys(rows: Iterable[Row]) -> list[bytes]:
    """Return the keys that these rows name; a damaged row names none, and is found out when it is unpacked."""
    keys: dict[bytes, None] = {}
    for row in rows:
        try:
            keys.update(dict.fromkeys(keys_in(unseal(row.sealed))))
        except (Broken, msgspec.MsgspecError):
            continue
    return list(keys)


def _messages(keys: Sequence[bytes], fetch: Fetch) -> dict[bytes, Message]:
    """Return the messages with these keys; one whose bytes do not match its key is left out."""
    return {
        key: unpack_message(body)
        for start in range(0, len(keys), AT_ONCE)
        for key, body in fetch(keys[start : start + AT_ONCE])
        if isinstance(body, bytes) and digest(body) == key
    }
