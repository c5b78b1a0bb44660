"""Entries, turn records and events as bytes and back, without loss.

Each message is stored once, apart from the entries that contain it, under the digest of its bytes. Everything else is sealed:
its digest is stored in front of it, so that damage is noticed when it is read.
"""

import struct
import zlib
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

# The stored forms


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
_encoder = msgspec.msgpack.Encoder()
_entry_decoder: msgspec.msgpack.Decoder[StoredEntry] = msgspec.msgpack.Decoder(StoredEntry)
_item_decoder: msgspec.msgpack.Decoder[ViewItem] = msgspec.msgpack.Decoder(
    KeptRange | AlteredMessage | SummarizedSpan
)
_message_decoder = msgspec.msgpack.Decoder(Message)
_record_decoder = msgspec.msgpack.Decoder(TurnRecord)
_event_decoder: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)


# Entries and their messages


class StoredMessage(Struct, frozen=True, kw_only=True):
    """A message to be stored once, under the digest of its bytes, and its size in tokens."""

    key: bytes
    body: bytes
    message: Message
    tokens: int


class Packed(Struct, frozen=True, kw_only=True):
    """An entry to be stored: its bytes, and the messages it brings, in order."""

    entry: Entry
    body: bytes
    contents: tuple[StoredMessage, ...] = ()

    @property
    def kind(self) -> str:
        """The entry's tag."""
        return entry_kind(self.entry)


def pack_entry(entry: Entry) -> Packed:
    """Return the entry as bytes, or raise BadInput if its text is not valid Unicode, IllegalEntry if a message has no size."""
    if not isinstance(entry, Appended):
        return Packed(entry=entry, body=_encoded(entry))
    contents = tuple(_content(numbered) for numbered in appended_messages(entry))
    keys = tuple(content.key for content in contents)
    body = _encoded(AppendedKeys(at=entry.at, keys=keys, tokens=entry.tokens))
    return Packed(entry=entry, body=body, contents=contents)


def _content(numbered: Numbered) -> StoredMessage:
    message = numbered.message
    body = _encoded(replace(message, memo=b"") if message.memo else message)
    return StoredMessage(key=digest_of(body), body=body, message=message, tokens=numbered.tokens)


def appended_messages(entry: Entry) -> list[Numbered]:
    """Return the messages that an entry brings, or raise IllegalEntry if one has no size."""
    if not isinstance(entry, Appended):
        return []
    if len(entry.messages) != len(entry.tokens):
        raise IllegalEntry(f"{len(entry.messages)} messages came with {len(entry.tokens)} sizes")
    return [
        Numbered(message=message, tokens=tokens)
        for message, tokens in zip(entry.messages, entry.tokens, strict=True)
    ]


def entry_kind(entry: Entry) -> str:
    """Return the entry's tag."""
    return str(entry.__struct_config__.tag)


def unpack_entry(
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
        return Compacted(at=stored.at, mechanisms=stored.mechanisms, items=joined)
    return stored


def unpack_stored(body: bytes) -> StoredEntry:
    """Return an entry in its stored form, or raise msgspec.MsgspecError."""
    return _entry_decoder.decode(body)


def message_keys(body: bytes) -> tuple[bytes, ...]:
    """Return the keys of the messages that a packed entry brings, or raise msgspec.MsgspecError."""
    stored = _entry_decoder.decode(body)
    return stored.keys if isinstance(stored, AppendedKeys) else ()


def unpack_message(body: bytes) -> Message:
    """Return the message these bytes are, or raise msgspec.MsgspecError."""
    return _message_decoder.decode(body)


# Compactions as differences

DEEPEST = 16
"""The longest chain of compactions stored as differences; the next one is written in full."""


class Base(Struct, frozen=True, kw_only=True):
    """A compaction that the next one may be stored as a difference from."""

    position: int
    items: tuple[ViewItem, ...]
    depth: int = 0
    """How many compactions have to be read before this one can be; 0 if it is stored in full."""


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
            base = Base(position=position, items=entry.items, depth=depth)
        result.append(one if body is one.body else replace(one, body=body))
    return result


def _difference(entry: Compacted, base: Base) -> CompactedSince:
    places = {_encoded(item): index for index, item in enumerate(base.items)}
    pieces: list[Copied | bytes] = []
    for item in entry.items:
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


def joined_items(base: Sequence[ViewItem], pieces: Iterable[Copied | bytes]) -> tuple[ViewItem, ...]:
    """Return the view of a compaction that was stored as a difference, or raise msgspec.MsgspecError."""
    items: list[ViewItem] = []
    for piece in pieces:
        if isinstance(piece, Copied):
            items += base[piece.first : piece.first + piece.count]
        else:
            items.append(_item_decoder.decode(piece))
    return tuple(items)


# A shorter form for messages

_SHRUNK = b"\xc1"
"""The first byte of a message in the shorter form; msgpack never uses it."""
_LENGTHS = struct.Struct("<III")
"""The lengths of what comes before the bytes cut out, of these themselves, and of what comes after them."""
_PREFIX = len(_SHRUNK) + _LENGTHS.size
_SHORTEST = 256
"""Bytes below which cutting them out saves little; a short message of a tool loop has some five hundred."""
_MOST_RATIO = 1_032
"""How many bytes deflate makes of one at most."""
_DICTIONARY = 32 * 1024
"""What deflate can refer back to."""


def shrunk(content: StoredMessage) -> bytes:
    """Return the bytes of a message in a shorter form, if there is one; `restored` returns them as they were.

    A message has its text twice: in its parts, and in the bytes it arrived in (`Wire.raw`), which are cut out here and
    compressed with what comes before them as the dictionary. The parts stay readable in a damaged file.
    """
    body, wire = content.body, content.message.wire
    at = body.rfind(wire.raw) if wire is not None and len(wire.raw) >= _SHORTEST else -1
    if wire is None or at < 0:
        return body
    head, tail = body[:at], body[at + len(wire.raw) :]
    if not head.endswith(_binary_header(len(wire.raw))):
        return body
    compressor = zlib.compressobj(level=1, wbits=-zlib.MAX_WBITS, zdict=head[-_DICTIONARY:])
    raw = compressor.compress(wire.raw) + compressor.flush()
    short = _SHRUNK + _LENGTHS.pack(at, len(wire.raw), len(tail)) + head + tail + raw
    return short if len(short) < len(body) else body


def restored(stored: bytes) -> bytes:
    """Return the bytes that `shrunk` was given; other bytes come back as they are.

    If the compressed part is damaged, zeros stand in its place: the digest shows the damage, and the rest can still be read.
    """
    if stored[:1] != _SHRUNK or len(stored) < _PREFIX:
        return stored
    at, size, rest = _LENGTHS.unpack_from(stored, len(_SHRUNK))
    head, tail = stored[_PREFIX : _PREFIX + at], stored[_PREFIX + at : _PREFIX + at + rest]
    compressed = stored[_PREFIX + at + rest :]
    if not head.endswith(_binary_header(size)):
        # The lengths are damaged or forged: nothing is inflated for them.
        return head + tail
    try:
        decompressor = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=head[-_DICTIONARY:])
        raw = decompressor.decompress(compressed, size + 1)
    except zlib.error:
        raw = b""
    if len(raw) != size:
        raw = bytes(min(size, _MOST_RATIO * len(compressed)))
    return head + raw + tail


def _binary_header(size: int) -> bytes:
    """Return what msgpack writes before this many bytes."""
    if size < 1 << 8:
        return b"\xc4" + size.to_bytes(1, "big")
    return b"\xc5" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xc6" + size.to_bytes(4, "big")


# Records and events


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


# Digests and seals

KEY_BYTES = 16


class Broken(Exception):
    """The bytes are not what was written; raised and caught inside the store."""


def seal(body: bytes) -> bytes:
    """Return the bytes with their digest in front."""
    return digest_of(body) + body


def unseal(sealed: object) -> bytes:
    """Return the bytes that were sealed, or raise Broken."""
    if isinstance(sealed, bytes) and digest_of(sealed[KEY_BYTES:]) == sealed[:KEY_BYTES]:
        return sealed[KEY_BYTES:]
    raise Broken("it is not what was written")


def digest_of(body: bytes) -> bytes:
    """Return the digest that identifies these bytes."""
    return blake2b(body, digest_size=KEY_BYTES).digest()


def _encoded(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise BadInput(
            f"text with half a character (a lone surrogate) cannot be stored: {error.reason}"
        ) from None
