"""Messages seen before: read once, known again by their bytes."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock

from msgspec import Struct

from lowwater.ingest.likeness import likeness
from lowwater.values.message import Format, Message
from lowwater.wire.formats import decode_messages, messages_in

_BESIDES = 400
"""Bytes that a decoded message takes beside its own."""


class Read(Struct, frozen=True, kw_only=True):
    """A message, and what makes it the same as another that a client wrote differently."""

    message: Message
    likeness: bytes


class Remembering:
    """Decodes messages; those used last are kept, up to so many bytes. Any thread may use it."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._read: OrderedDict[tuple[Format, bytes], Read] = OrderedDict()
        self._lock = Lock()

    def read(self, raws: Sequence[bytes], format: Format) -> list[Read]:
        """Return the messages in these bytes, or raise a BadInput."""
        raws = messages_in(raws, format)
        with self._lock:
            known = [self._read.get((format, raw)) for raw in raws]
            for raw, read in zip(raws, known, strict=True):
                if read is not None:
                    self._read.move_to_end((format, raw))
        missing = [raw for raw, read in zip(raws, known, strict=True) if read is None]
        new = iter([_read(message) for message in decode_messages(missing, format)])
        together = [next(new) if read is None else read for read in known]
        self._keep(raws, together, known, format)
        return together

    def _keep(
        self, raws: Sequence[bytes], together: Sequence[Read], known: Sequence[Read | None], format: Format
    ) -> None:
        with self._lock:
            for raw, read, before in zip(raws, together, known, strict=True):
                if before is None and (format, raw) not in self._read:
                    self._read[format, raw] = read
                    self._bytes += len(raw) + _BESIDES
            while self._bytes > self._most and self._read:
                (_, oldest), _ = self._read.popitem(last=False)
                self._bytes -= len(oldest) + _BESIDES


def _read(message: Message) -> Read:
    return Read(message=message, likeness=likeness(message))


def chain_of(likenesses: Sequence[bytes], before: bytes = b"") -> list[bytes]:
    """Return for each message a key of the whole list up to it."""
    keys: list[bytes] = []
    for each in likenesses:
        before = blake2b(before + each, digest_size=16).digest()
        keys.append(before)
    return keys
