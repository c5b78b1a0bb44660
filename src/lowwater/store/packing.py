"""Entries, records and events as bytes and back, without loss; messages apart from them, each known by a digest of all its bytes.

`Message.digest` says that two messages mean the same. The key here says that they are the same to the last byte of their wire
form, because a message has to leave as it came.
"""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.errors import BadInput, IllegalEntry
from lowwater.values.entries import (
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    ModelChanged,
    Opened,
    PreambleChanged,
    Rewound,
    TakenBack,
)
from lowwater.values.events import Event
from lowwater.values.ledger import Numbered
from lowwater.values.message import Message
from lowwater.values.turn_record import TurnRecord

KEY_BYTES = 16


class AppendedKeys(Struct, frozen=True, kw_only=True, tag="appended"):
    """An `Appended` entry that names its messages instead of holding them."""

    at: float
    keys: tuple[bytes, ...]
    tokens: tuple[int, ...]


_Kept = (
    Opened | AppendedKeys | PreambleChanged | ModelChanged | Compacted | Rewound | TakenBack | Checkpointed
)

_encoder = msgspec.msgpack.Encoder()
_entry_decoder: msgspec.msgpack.Decoder[_Kept] = msgspec.msgpack.Decoder(_Kept)
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


def unpack(body: bytes, messages: Mapping[bytes, Message]) -> Entry:
    """Return the entry these bytes are, or raise msgspec.MsgspecError; `messages` has those it names, or KeyError is raised."""
    kept = _entry_decoder.decode(body)
    if not isinstance(kept, AppendedKeys):
        return kept
    return Appended(at=kept.at, messages=tuple(messages[key] for key in kept.keys), tokens=kept.tokens)


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
