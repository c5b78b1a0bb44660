"""Entries, records and events as bytes and back, without loss; messages apart from them, each known by a digest."""

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


class AppendedKeys(
    Struct,
    frozen=True,
    kw_only=True,
    tag="appended",
    rename=stored_as("appended"),
    forbid_unknown_fields=True,
):
    """An `Appended` entry that names its messages instead of holding them."""

    at: float
    keys: tuple[bytes, ...]
    tokens: tuple[int, ...]


class Copied(
    Struct, frozen=True, kw_only=True, array_like=True, rename=stored_as("copied"), forbid_unknown_fields=True
):
    """So many stands of an earlier compaction, from one of them on."""

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
    """A `Compacted` entry that says what is different from the one at the position `base` of the same session."""

    at: float
    mechanisms: tuple[str, ...]
    base: int
    depth: int
    """How many compactions have to be read before this one can be."""
    pieces: tuple[Copied | bytes, ...]
    """In order: stands of the base, and new ones, each as bytes."""


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
"""What an entry is stored as."""

DEEPEST = 16
"""How many compactions at most are told by what changed since the one before, until one is written in full again."""

_encoder = msgspec.msgpack.Encoder()
_entry_decoder: msgspec.msgpack.Decoder[StoredEntry] = msgspec.msgpack.Decoder(StoredEntry)
_stand_decoder: msgspec.msgpack.Decoder[ViewItem] = msgspec.msgpack.Decoder(
    KeptRange | AlteredMessage | SummarizedSpan
)
_message_decoder = msgspec.msgpack.Decoder(Message)
_record_decoder = msgspec.msgpack.Decoder(TurnRecord)
_event_decoder: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)


class Content(Struct, frozen=True, kw_only=True):
    """A message to be stored once, its key and its bytes; and its size where it was appended."""

    key: bytes
    body: bytes
    message: Message
    tokens: int


class Packed(Struct, frozen=True, kw_only=True):
    """An entry to be stored: its bytes, and the messages it brought, in order."""

    entry: Entry
    body: bytes
    contents: tuple[Content, ...] = ()

    @property
    def kind(self) -> str:
        """The entry's tag."""
        return kind_of(self.entry)


def pack(entry: Entry) -> Packed:
    """Return the entry as bytes, or raise BadInput if its text is no Unicode or IllegalEntry if a message has no size."""
    if not isinstance(entry, Appended):
        return Packed(entry=entry, body=_encoded(entry))
    contents = tuple(_content(numbered) for numbered in messages_in(entry))
    keys = tuple(content.key for content in contents)
    body = _encoded(AppendedKeys(at=entry.at, keys=keys, tokens=entry.tokens))
    return Packed(entry=entry, body=body, contents=contents)


class Base(Struct, frozen=True, kw_only=True):
    """A compaction that the next one may be told by."""

    position: int
    stands: tuple[ViewItem, ...]
    depth: int = 0


def pack_differences(packed: Sequence[Packed], first: int, base: Base | None) -> list[Packed]:
    """Return packed entries, the first of which gets the position `first`, with compactions told by what they changed.

    `base` is the last compaction before them. A view changes little from one compaction to the next, and most of what it shows
    would be written again each time.
    """
    told: list[Packed] = []
    for position, one in enumerate(packed, start=first):
        entry, body, depth = one.entry, one.body, 0
        if isinstance(entry, Compacted):
            if base is not None and base.depth < DEEPEST:
                since = _since(entry, base)
                shorter = _encoded(since)
                if len(shorter) < len(body):
                    body, depth = shorter, since.depth
            base = Base(position=position, stands=entry.stands, depth=depth)
        told.append(one if body is one.body else replace(one, body=body))
    return told


def _since(entry: Compacted, base: Base) -> CompactedSince:
    places = {_encoded(stand): index for index, stand in enumerate(base.stands)}
    pieces: list[Copied | bytes] = []
    for stand in entry.stands:
        body = _encoded(stand)
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


def joined_items(base: Sequence[ViewItem], pieces: Iterable[Copied | bytes]) -> tuple[ViewItem, ...]:
    """Return the stands of a compaction that was told by what it changed, or raise msgspec.MsgspecError."""
    stands: list[ViewItem] = []
    for piece in pieces:
        if isinstance(piece, Copied):
            stands += base[piece.first : piece.first + piece.count]
        else:
            stands.append(_stand_decoder.decode(piece))
    return tuple(stands)


def kind_of(entry: Entry) -> str:
    """Return the entry's tag."""
    return str(entry.__struct_config__.tag)


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


def keys_in(body: bytes) -> tuple[bytes, ...]:
    """Return the keys of the messages that a packed entry names, or raise msgspec.MsgspecError."""
    kept = _entry_decoder.decode(body)
    return kept.keys if isinstance(kept, AppendedKeys) else ()


def unpack_stored(body: bytes) -> StoredEntry:
    """Return what was stored for an entry, or raise msgspec.MsgspecError."""
    return _entry_decoder.decode(body)


def unpack(
    body: bytes, messages: Mapping[bytes, Message], stands: Mapping[int, tuple[ViewItem, ...]] | None = None
) -> Entry:
    """Return the entry these bytes are, or raise msgspec.MsgspecError.

    `messages` has those it names, and `stands` those of the compaction that it is told by, or KeyError is raised.
    """
    kept = _entry_decoder.decode(body)
    if isinstance(kept, AppendedKeys):
        return Appended(at=kept.at, messages=tuple(messages[key] for key in kept.keys), tokens=kept.tokens)
    if isinstance(kept, CompactedSince):
        joined = joined_items((stands or {})[kept.base], kept.pieces)
        return Compacted(at=kept.at, mechanisms=kept.mechanisms, stands=joined)
    return kept


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


def digest(body: bytes) -> bytes:
    """Return what tells these bytes from any others."""
    return blake2b(body, digest_size=KEY_BYTES).digest()


def _content(numbered: Numbered) -> Content:
    message = numbered.message
    body = _encoded(replace(message, memo=b"") if message.memo else message)
    return Content(key=digest(body), body=body, message=message, tokens=numbered.tokens)


def _encoded(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise BadInput(f"text with half a character cannot be stored: {error.reason}") from None


class Broken(Exception):
    """The bytes are not what was written; never leaves the store."""


def seal(body: bytes) -> bytes:
    """Return the bytes behind their digest."""
    return digest(body) + body


def unseal(sealed: object) -> bytes:
    """Return the bytes that were sealed, or raise Broken."""
    if isinstance(sealed, bytes) and digest(sealed[KEY_BYTES:]) == sealed[:KEY_BYTES]:
        return sealed[KEY_BYTES:]
    raise Broken("it is not what was written")
