"""Requests threaded into sessions: one whose messages extend those of another, with its answer, goes on with it.

A request that goes on from an earlier point than the last is a fork: what it shares was told with the other. Only what
is new of each request is kept, and the sessions at hand take bounded memory: the one that rested longest is let go.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Response
from lowwater.core.cache.layout import chained
from lowwater.core.messages import Format, Message
from lowwater.logs.recording import RecordedCall, RecordedMessage, Recording
from lowwater.replay.importing.decoding import decoded
from lowwater.replay.importing.gathering import gathered
from lowwater.replay.importing.lines import RecordedFile

AGENT = "request-log"
AT_HAND = 256 << 20
"""Bytes of messages that may be kept at a time."""


class Asked(Struct, frozen=True, kw_only=True):
    """A request as far as a session needs it."""

    messages: tuple[Message, ...] = ()
    system: bytes = b""
    tools: bytes = b""
    model: str = ""


class _Session(Struct, kw_only=True):
    """A session in the making."""

    id: str
    messages: list[RecordedMessage]
    system: bytes
    tools: bytes
    parent: str = ""
    shared: int = 0
    size: int = 0
    tip: bytes = b""
    """The key of its last request with the answer; `asked` that of the request alone."""
    asked: bytes = b""


class _Place(NamedTuple):
    """How many of a request's first messages are known, from which session, and the key of that point."""

    session: str
    length: int
    key: bytes


_NOWHERE = _Place("", 0, b"")


class Sessions:
    """The sessions of one log, in order of their last requests."""

    def __init__(self, file: RecordedFile, *, at_hand: int = AT_HAND) -> None:
        self._file = file
        self._at_hand = at_hand
        self._open: dict[str, _Session] = {}
        self._answered: dict[bytes, str] = {}
        self._asked: dict[bytes, str] = {}
        self._decoded: dict[bytes, Message | None] = {}
        self._remembered = 0
        self._begun = 0
        self._names: set[str] = set()
        self._size = 0

    def messages(self, raws: Sequence[bytes], format: Format, where: int | str) -> Iterator[Message]:
        """Yield the messages of a request; each is decoded, and if it is broken counted, the first time it is sent."""
        for raw in raws:
            key = blake2b(raw, digest_size=16, person=format.encode()[:16]).digest()
            if key not in self._decoded:
                self._remembered += len(raw)
                if self._remembered > self._at_hand:
                    self._decoded.clear()
                    self._remembered = len(raw)
                self._decoded[key] = decoded(raw, format, file=self._file, where=where)
            message = self._decoded[key]
            if message is not None:
                yield message

    def take(
        self, asked: Asked, response: Response, *, asked_at: float | None, at: float | None, name: str = ""
    ) -> Iterator[Recording]:
        """Take in one exchange, and yield the sessions that are let go for it."""
        keys = chained(message.digest for message in asked.messages)
        place = self._place(keys, asked.messages)
        session = self._open.get(place.session)
        if session is None or place.key not in (session.asked, session.tip):
            session = self._begin(asked, place, name)
        new = [RecordedMessage(message=one, at=asked_at) for one in asked.messages[place.length :]]
        call = RecordedCall(
            model=response.model or asked.model,
            usage=response.usage,
            others=response.others,
            list_price=response.list_price,
            asked_at=asked_at,
        )
        new.append(RecordedMessage(message=response.message, at=at, call=call))
        self._grow(session, new, keys)
        while self._size > self._at_hand and len(self._open) > 1:
            yield self._closed(next(iter(self._open)))

    def rest(self) -> Iterator[Recording]:
        """Yield the sessions that are still at hand."""
        while self._open:
            yield self._closed(next(iter(self._open)))

    def _place(self, keys: Sequence[bytes], messages: Sequence[Message]) -> _Place:
        """Return the latest point of a session that the messages go on from, as the client tells its answer or not."""
        for length in range(len(keys), 0, -1):
            key = keys[length - 1]
            if key in self._answered:
                return _Place(self._answered[key], length, key)
            before = keys[length - 2] if length > 1 else b""
            if messages[length - 1].role == "assistant" and before in self._asked:
                return _Place(self._asked[before], length, before)
        return _NOWHERE

    def _begin(self, asked: Asked, place: _Place, name: str) -> _Session:
        self._begun += 1
        numbered = f"{name or self._file.path.name.partition('.')[0]}:{self._begun}"
        id = name if name and name not in self._names else numbered
        self._names.add(id)
        known = [RecordedMessage(message=one) for one in asked.messages[: place.length]]
        size = sum(one.message.bytes for one in known)
        self._size += size
        session = _Session(
            id=id,
            messages=known,
            system=asked.system,
            tools=asked.tools,
            parent=place.session,
            shared=place.length,
            size=size,
        )
        self._open[id] = session
        return session

    def _grow(self, session: _Session, new: Sequence[RecordedMessage], keys: Sequence[bytes]) -> None:
        """Add what is new, and make the session the last at hand."""
        session.messages += new
        size = sum(one.message.bytes for one in new)
        session.size += size
        self._size += size
        session.asked = keys[-1] if keys else b""
        session.tip = chained([new[-1].message.digest], start=session.asked)[0]
        if session.asked:
            self._asked[session.asked] = session.id
        self._answered[session.tip] = session.id
        self._open[session.id] = self._open.pop(session.id)

    def _closed(self, id: str) -> Recording:
        session = self._open.pop(id)
        self._size -= session.size
        recording = gathered(
            self._file,
            id=session.id,
            agent=AGENT,
            messages=session.messages,
            system=session.system,
            tools=session.tools,
        )
        relation = "fork" if session.parent else ""
        return replace(recording, parent=session.parent, relation=relation, shared=session.shared)
