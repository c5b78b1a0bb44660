"""Entries, turn records and events as bytes and back, without loss.

Messages are stored apart from the entries that bring them, once each, under the digest of their bytes. Everything else is
sealed: stored behind its own digest, so that damage is noticed when it is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    KeptRange,
    ModelChanged,
    Opened,
    PreambleChanged,
    Retracted,
    Rewound,
    SummarizedSpan,
    ViewItem,
)
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Numbered
from lowwater.core.messages import Message
from lowwater.core.stored_form import stored_as
from lowwater.errors import BadInput, IllegalEntry

KEY_BYTES = 16

DEEPEST = 16
"""The longest chain of compactions stored as differences; the next one is written in full."""


class AppendedKeys(
    Struct,
    frozen=True,
    kw_only=True,
    tag="appended",
    rename=stored_as("appended"),
    forbid_unknown_fields=True,
):
    """An `Appended` entry with the keys of its messages instead of the messages."""

    at: float
    keys: tuple[bytes, ...]
    tokens: tuple[int, ...]


class Copied(
    Struct, frozen=True, kw_only=True, array_like=True, rename=stored_as("copied"), forbid_unknown_fields=True
):
    """`count` items of an earlier compaction's view, starting at `first`."""

    first: int
    count: int


class CompactedSince(
    Struct,
    frozen=True,
    kw_only=True,
    tag="compacted_since",
    rename=stored_as("compacted_since"),
    forbid_unknown_fields=True,
):
    """A `Compacted` entry as its difference from the one at the position `base` of the same session."""

    at: float
    mechanisms: tuple[str, ...]
    base: int
    depth: int
    """How many compactions have to be read before this one can be."""
    pieces: tuple[Copied | bytes, ...]
    """The view in order: items copied from the base, and new ones, each as bytes."""


StoredEntry = (
    Opened
    | AppendedKeys
    | PreambleChanged
    | ModelChanged
    | Compacted
    | CompactedSince
    | Rewound
    | Retracted
    | Checkpointed
)
"""The forms in which an entry is stored."""


class Content(Struct, frozen=True, kw_only=True):
    """A message to be stored once, under the digest of its bytes, and its size in tokens."""

    key: bytes
    body: bytes
    message: Message
    tokens: int


class Packed(Struct, frozen=True, kw_only=True):
    """An entry to be stored: its bytes, and the messages it brings, in order."""

    entry: Entry
    body: bytes
    contents: tuple[Content, ...] = ()

    @property
    def kind(self) -> str:
        """The entry's tag."""
        return kind_of(self.entry)


class Base(Struct, frozen=True, kw_only=True):
    """A compaction that the next one may be stored as a difference from."""

    position: int
    items: tuple[ViewItem, ...]
    depth: int = 0
    """How many compactions have to be read before this one can be; 0 if it is stored in full."""


class Broken(Exception):
    """The bytes are not what was written; raised and caught inside the store."""


_encoder = msgspec.msgpack.Encoder()

_entry_decoder: msgspec.msgpack.Decoder[StoredEntry] = msgspec.msgpack.Decoder(StoredEntry)

_item_decoder: msgspec.msgpack.Decoder[ViewItem] = msgspec.msgpack.Decoder(
    KeptRange | AlteredMessage | SummarizedSpan
)

_message_decoder = msgspec.msgpack.Decoder(Message)

_record_decoder = msgspec.msgpack.Decoder(TurnRecord)

_event_decoder: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)


def pack(entry: Entry) -> Packed:
    """Return the entry as bytes, or raise BadInput if its text is not valid Unicode, IllegalEntry if a message has no size."""
    if not isinstance(entry, Appended):
        return Packed(entry=entry, body=_encoded(entry))
    contents = tuple(_content(numbered) for numbered in messages_in(entry))
    keys = tuple(content.key for content in contents)
    body = _encoded(AppendedKeys(at=entry.at, keys=keys, tokens=entry.tokens))
    return Packed(entry=entry, body=body, contents=contents)


def _content(numbered: Numbered) -> Content:
    message = numbered.message
    body = _encoded(replace(message, memo=b"") if message.memo else message)
    return Content(key=digest(body), body=body, message=message, tokens=numbered.tokens)


def messages_in(entry: Entry) -> list[Numbered]:
    """Return the messages that an entry brings, or raise IllegalEntry if one has no size."""
    if not isinstance(entry, Appended):
        return []
    if len(entry.messages) != len(entry.tokens):
        raise IllegalEntry(f"{len(entry.messages)} messages came with {len(entry.tokens)} sizes")
    return [
        Numbered(message=message, tokens=tokens)
        for message, tokens in zip(entry.messages, entry.tokens, strict=True)
    ]


def kind_of(entry: Entry) -> str:
    """Return the entry's tag."""
    return str(entry.__struct_config__.tag)


def pack_differences(packed: Sequence[Packed], first: int, base: Base | None) -> list[Packed]:
    """Return packed entries with each compaction as its difference from the one before, where that is shorter.

    `first` is the position of the first entry, and `base` the last compaction before it. A view changes little from one
    compaction to the next; in full, most of it would be written again each time.
    """
    result: list[Packed] = []
    for position, one in enumerate(packed, start=first):
        entry, body, depth = one.entry, one.body, 0
        if isinstance(entry, Compacted):
            if base is not None and base.depth < DEEPEST:
                since = _difference(entry, base)
                encoded = _encoded(since)
                if len(encoded) < len(body):
                    body, depth = encoded, since.depth
            base = Base(position=position, items=entry.stands, depth=depth)
        result.append(one if body is one.body else replace(one, body=body))
    return result


def _difference(entry: Compacted, base: Base) -> CompactedSince:
    places = {_encoded(item): index for index, item in enumerate(base.items)}
    pieces: list[Copied | bytes] = []
    for item in entry.stands:
        body = _encoded(item)
        place = places.get(body)
        last = pieces[-1] if pieces else None
        if place is None:
            pieces.append(body)
        elif isinstance(last, Copied) and last.first + last.count == place:
            pieces[-1] = replace(last, count=last.count + 1)
        else:
            pieces.append(Copied(first=place, count=1))
    return CompactedSince(
        at=entry.at,
        mechanisms=entry.mechanisms,
        base=base.position,
        depth=base.depth + 1,
        pieces=tuple(pieces),
    )


def unpack(
    body: bytes, messages: Mapping[bytes, Message], items: Mapping[int, tuple[ViewItem, ...]] | None = None
) -> Entry:
    """Return the entry these bytes are, or raise msgspec.MsgspecError.

    `messages` must have its messages by key, and `items` the view of the compaction it is a difference from, by position;
    otherwise KeyError is raised.
    """
    stored = _entry_decoder.decode(body)
    if isinstance(stored, AppendedKeys):
        return Appended(
            at=stored.at, messages=tuple(messages[key] for key in stored.keys), tokens=stored.tokens
        )
    if isinstance(stored, CompactedSince):
        joined = joined_items((items or {})[stored.base], stored.pieces)
        return Compacted(at=stored.at, mechanisms=stored.mechanisms, stands=joined)
    return stored


def unpack_stored(body: bytes) -> StoredEntry:
    """Return an entry in its stored form, or raise msgspec.MsgspecError."""
    return _entry_decoder.decode(body)


def joined_items(base: Sequence[ViewItem], pieces: Iterable[Copied | bytes]) -> tuple[ViewItem, ...]:
    """Return the view of a compaction that was stored as a difference, or raise msgspec.MsgspecError."""
    items: list[ViewItem] = []
    for piece in pieces:
        if isinstance(piece, Copied):
            items += base[piece.first : piece.first + piece.count]
        else:
            items.append(_item_decoder.decode(piece))
    return tuple(items)


def keys_in(body: bytes) -> tuple[bytes, ...]:
    """Return the keys of the messages that a packed entry brings, or raise msgspec.MsgspecError."""
    stored = _entry_decoder.decode(body)
    return stored.keys if isinstance(stored, AppendedKeys) else ()


def unpack_message(body: bytes) -> Message:
    """Return the message these bytes are, or raise msgspec.MsgspecError."""
    return _message_decoder.decode(body)


def pack_record(record: TurnRecord) -> bytes:
    """Return the record as bytes."""
    return _encoded(record)


def unpack_record(body: bytes) -> TurnRecord:
    """Return the record these bytes are, or raise msgspec.MsgspecError."""
    return _record_decoder.decode(body)


def pack_event(event: Event) -> bytes:
    """Return the event as bytes."""
    return _encoded(event)


def unpack_event(body: bytes) -> Event:
    """Return the event these bytes are, or raise msgspec.MsgspecError."""
    return _event_decoder.decode(body)


def seal(body: bytes) -> bytes:
    """Return the bytes with their digest in front."""
    return digest(body) + body


def unseal(sealed: object) -> bytes:
    """Return the bytes that were sealed, or raise Broken."""
    if isinstance(sealed, bytes) and digest(sealed[KEY_BYTES:]) == sealed[:KEY_BYTES]:
        return sealed[KEY_BYTES:]
    raise Broken("it is not what was written")


def digest(body: bytes) -> bytes:
    """Return the digest that identifies these bytes."""
    return blake2b(body, digest_size=KEY_BYTES).digest()


def _encoded(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise BadInput(f"text with half a character cannot be stored: {error.reason}") from None
