"""Answers that come as streams: read on the way, and whole at the end in the shape they would have had unstreamed."""

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from lowwater.errors import BadInput
from lowwater.values.message import Format
from lowwater.values.usage import Usage
from lowwater.wire.anthropic.stream import StreamedMessage
from lowwater.wire.anthropic.usage import decode_usage as anthropic_usage
from lowwater.wire.events import EventReader
from lowwater.wire.openai_chat.stream import StreamedCompletion
from lowwater.wire.openai_chat.usage import decode_usage as openai_usage
from lowwater.wire.openai_responses.stream import StreamedResponse
from lowwater.wire.reading import read_json

CUT_OFF = "the stream ended before the answer did"


class Streamed(Protocol):
    """One answer, put together from its events."""

    is_done: bool
    """Whether the provider said that this was all."""
    has_begun: bool
    """Whether something of the answer itself has come, and not only that there will be one."""
    error: str
    """What the provider said went wrong; empty if nothing did."""

    def take(self, event: bytes) -> None:
        """Add the data of one event, or raise BadInput."""
        ...

    def is_whole(self) -> bool:
        """Return whether nothing is missing if no more events come."""
        ...

    def usage(self) -> bytes:
        """Return the usage told so far as JSON; empty if none was."""
        ...

    def answer(self) -> bytes:
        """Return what came so far in the shape of a whole answer; empty if nothing did."""
        ...


class AnswerStream:
    """Reads a stream on its way to somebody else: feed it every chunk, and `end` it when no more come."""

    def __init__(self, streamed: Streamed, usage: Callable[[bytes], Usage]) -> None:
        self._events = EventReader()
        self._streamed = streamed
        self._usage = usage
        self._is_complete = False
        self.broken = ""
        """Why there will be no whole answer: the provider's error, bytes that are no events, or that it was cut off."""

    @property
    def is_done(self) -> bool:
        """Whether the whole answer is there."""
        return not self.broken and (self._is_complete or self._streamed.is_done)

    @property
    def has_begun(self) -> bool:
        """Whether something of the answer has come; a provider may refuse a prompt after opening a stream for it."""
        return self._streamed.has_begun

    @property
    def usage(self) -> Usage | None:
        """What the answer consumed, as far as was told until now; None if nothing was."""
        try:
            raw = self._streamed.usage()
            return self._usage(raw) if raw else None
        except BadInput:
            return None

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, cut anywhere; nothing is raised, whatever they are."""
        self._take(self._events.feed(chunk))

    def end(self) -> None:
        """Take note that no more bytes come."""
        self._take(self._events.end())
        if self.broken or self.is_done:
            return
        if self._streamed.is_whole():
            self._is_complete = True
        else:
            self.broken = CUT_OFF

    def answer(self) -> bytes | None:
        """Return the whole answer as JSON that `decode_response` reads; None as long as there is none."""
        if not self.is_done:
            return None
        try:
            return self._streamed.answer()
        except BadInput as error:
            self.broken = f"the streamed answer cannot be put together: {error}"
            return None

    def _take(self, events: Iterable[bytes]) -> None:
        for event in events:
            if self.broken or self._streamed.is_done:
                return
            try:
                self._streamed.take(event)
            except BadInput as error:
                self.broken = f"an event of the stream cannot be read: {error}"
            self.broken = self.broken or self._streamed.error


class _Kind(Struct, frozen=True):
    streamed: Callable[[], Streamed]
    usage: Callable[[bytes], Usage]


_KINDS: MappingProxyType[Format, _Kind] = MappingProxyType(
    {
        "anthropic": _Kind(StreamedMessage, anthropic_usage),
        "openai_chat": _Kind(StreamedCompletion, openai_usage),
        "openai_responses": _Kind(StreamedResponse, openai_usage),
    }
)


def stream_for(format: Format) -> AnswerStream:
    """Return what reads a stream of this format."""
    kind = _KINDS[format]
    return AnswerStream(kind.streamed(), kind.usage)


def answer_in_stream(text: bytes) -> bytes:
    """Return the answer in a recorded stream, as far as it was recorded; empty if there is none."""
    reader = EventReader()
    return answer_in_events([*reader.feed(text), *reader.end()])


def answer_in_events(events: Iterable[bytes]) -> bytes:
    """Return the answer in a stream's events, whatever the format; what cannot be read is left out."""
    events = list(events)
    streamed = _KINDS[_format_of(events)].streamed()
    for event in events:
        try:
            streamed.take(event)
        except BadInput:
            continue
    try:
        return streamed.answer()
    except BadInput:
        return b""


class _Typed(Struct):
    type: str = ""


def _format_of(events: Iterable[bytes]) -> Format:
    for event in events:
        try:
            kind = read_json(event, _Typed).type
        except BadInput:
            continue
        if kind == "message_start":
            return "anthropic"
        if kind.startswith("response."):
            return "openai_responses"
    return "openai_chat"
