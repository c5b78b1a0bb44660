"""Messages seen before: read once, known again by their bytes."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock
from weakref import ref

from msgspec import Struct
from msgspec.structs import force_setattr

from lowwater.core.formats.codec import decode_messages, messages_in
from lowwater.core.messages import Format, Message
from lowwater.core.reconcile import likeness

_BESIDES = 1_000
"""Bytes that a decoded message takes beside its own, as measured with messages of one or two parts."""


class Read(Struct, frozen=True, kw_only=True, weakref=True, eq=False):
    """A message, and what makes it the same as another that a client wrote differently."""

    message: Message
    likeness: bytes
    raw: bytes = b""
    """The bytes it was read from."""
    next: "ref[Read] | None" = None
    """What came behind it last time; never set it."""
    chained: tuple[bytes, bytes] = (b"", b"")
    """The key of a list up to it that was asked for last, behind the key before it; never set it."""


class Remembering:
    """Decodes messages; those used last are kept, up to so many bytes. Any thread may use it."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._read: OrderedDict[tuple[Format, bytes], Read] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The memory that the messages kept take, about."""
        return self._bytes

    def read(self, raws: Sequence[bytes], format: Format) -> list[Read]:
        """Return the messages in these bytes, or raise a BadInput."""
        raws = messages_in(raws, format)
        known = self._known(raws, format)
        missing = [raw for raw, read in zip(raws, known, strict=True) if read is None]
        new = iter(map(_read, decode_messages(missing, format), missing))
        together = [next(new) if read is None else read for read in known]
        self._keep(together, format)
        return together

    def _known(self, raws: Sequence[bytes], format: Format) -> list[Read | None]:
        """Return what was read before; a list that only grew is compared with the last one and not looked up."""
        known: list[Read | None] = []
        found: Read | None = None
        with self._lock:
            for raw in raws:
                last = None if found is None or found.next is None else found.next()
                found = last if last is not None and last.raw == raw else self._read.get((format, raw))
                known.append(found)
        return known

    def _keep(self, together: Sequence[Read], format: Format) -> None:
        with self._lock:
            before: Read | None = None
            for read in together:
                key = (format, read.raw)
                if key in self._read:
                    self._read.move_to_end(key)
                else:
                    self._read[key] = read
                    self._bytes += len(read.raw) + _BESIDES
                if before is not None and (before.next is None or before.next() is not read):
                    force_setattr(before, "next", ref(read))
                before = read
            while self._bytes > self._most and self._read:
                (_, oldest), _ = self._read.popitem(last=False)
                self._bytes -= len(oldest) + _BESIDES


def _read(message: Message, raw: bytes) -> Read:
    return Read(message=message, likeness=likeness(message), raw=raw)


def keys_of(read: Sequence[Read]) -> tuple[bytes, ...]:
    """Return for each message a key of the whole list up to it, as `chain_of` does; those of last time are remembered."""
    keys: list[bytes] = []
    before = b""
    for each in read:
        # Looked at once: another thread may ask for the same message behind others.
        behind, key = each.chained
        if behind != before or not key:
            (key,) = chain_of([each.likeness], before)
            force_setattr(each, "chained", (before, key))
        before = key
        keys.append(key)
    return tuple(keys)


def chain_of(likenesses: Sequence[bytes], before: bytes = b"") -> list[bytes]:
    """Return for each message a key of the whole list up to it."""
    keys: list[bytes] = []
    for each in likenesses:
        before = blake2b(before + each, digest_size=16).digest()
        keys.append(before)
    return keys
