"""Streamed answers: read on the way, and whole at the end in the shape they would have had unstreamed."""

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import decode_anthropic_usage as anthropic_usage
from lowwater.core.formats.usage import decode_openai_usage as openai_usage
from lowwater.core.messages import Format
from lowwater.core.strict_json import (
    read_fields,
    read_json,
    read_plain,
    write_array,
    write_json,
    write_object,
)
from lowwater.errors import BadInput

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BETWEEN = (b"\n\n", b"\r\n\r\n", b"\r\r")


class EventReader:
    """Gives the data of each event as soon as it is whole; comments and fields other than `data` are left out."""

    def __init__(self) -> None:
        self._line = bytearray(b"")
        self._data: list[bytes] = []
        self._is_first = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that end in this chunk, in order."""
        if not chunk:
            return []
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")  # the other half of a line's end
        self._after_return = chunk.endswith(b"\r")
        events: list[bytes] = []
        for piece in chunk.splitlines(keepends=True):
            self._line += piece
            if piece.endswith((b"\n", b"\r")):
                events.extend(self._end_line())
        return events

    def end(self) -> list[bytes]:
        """Return the event that no empty line ended, if there is one; nothing comes behind it."""
        return [*self._end_line(), *self._dispatch()]

    def _end_line(self) -> list[bytes]:
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        if self._is_first:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return []

    def _dispatch(self) -> list[bytes]:
        if not self._data:
            return []
        data = b"\n".join(self._data)
        self._data = []
        return [data]


def before_last_event(chunk: bytes) -> tuple[bytes, bytes]:
    """Cut a chunk in two, so that of the events in it only the last is in the second part."""
    events = chunk.rstrip(b"\r\n")
    cut = max((at + len(end) for end in _BETWEEN if (at := events.rfind(end)) >= 0), default=0)
    return chunk[:cut], chunk[cut:]


Fields = dict[str, Any]

_GROWING = ("text", "thinking", "signature", "content")
"""Fields of a block that come in pieces, by the name they have in their deltas."""
_NONE = Raw(b"{}")
_NULL = b"null"
_OWN = frozenset({"type", "delta", "usage"})
_KINDS = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "error"}
)

_OPENING = frozenset({"message_start", "error"})


class _Typed(Struct):
    type: str = ""


class _Error(Struct, frozen=True):
    type: str = ""
    message: str = ""


class _Event(Struct):
    type: str
    index: int = 0
    message: Raw = _NONE
    content_block: Raw = _NONE
    delta: Raw = _NONE
    usage: Raw = _NONE
    error: _Error = _Error()


class _Block:
    """A content block that grows: its pieces are joined once, at the end."""

    def __init__(self, opened: Fields) -> None:
        self._opened = opened
        self._pieces: dict[str, list[str]] = {}
        self._input: list[str] = []
        self._citations: list[Any] = []

    def add(self, delta: Fields) -> None:
        for name in _GROWING:
            if isinstance(delta.get(name), str):
                begun = self._opened.get(name)
                self._pieces.setdefault(name, [begun if isinstance(begun, str) else ""]).append(delta[name])
        if isinstance(delta.get("partial_json"), str):
            self._input.append(delta["partial_json"])
        if "citation" in delta:
            self._citations.append(delta["citation"])

    def whole(self) -> bytes:
        block: Fields = self._opened | {name: "".join(said) for name, said in self._pieces.items()}
        if self._citations:
            block["citations"] = [*(block.get("citations") or []), *self._citations]
        written = "".join(self._input)
        if written.strip():
            block["input"] = Raw(_as_object(written.encode(errors="replace")))
        return write_json(block)


class StreamedMessage:
    """The answer of one call."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._message: dict[str, bytes] = {}
        self._usage: dict[str, bytes] | None = None
        self._blocks: dict[int, _Block] = {}

    def take(self, event: bytes) -> None:
        """Add one event; figures of the usage that come later count."""
        if read_json(event, _Typed).type not in _KINDS:
            return
        said = read_json(event, _Event)
        self.has_begun = self.has_begun or said.type not in _OPENING
        match said.type:
            case "message_start":
                self._message = read_fields(bytes(said.message))
                self._usage = _figures(self._message.get("usage", _NULL))
            case "content_block_start":
                self._blocks[said.index] = _Block(_plain(said.content_block))
            case "content_block_delta":
                self._blocks.setdefault(said.index, _Block({"type": "text", "text": ""})).add(
                    _plain(said.delta)
                )
            case "message_delta":
                self._end(said, read_fields(event))
            case "message_stop":
                self.is_done = True
            case _:
                self.error = f"{said.error.type or 'error'}: {said.error.message}"

    def is_whole(self) -> bool:
        """Without its last event there may be more to come."""
        return self.is_done

    def usage(self) -> bytes:
        """Return the usage told so far as JSON; empty if none was."""
        return b"" if self._usage is None else write_object(self._usage)

    def answer(self) -> bytes:
        """Return what came so far as a message; empty if nothing did."""
        if not self._message and not self._blocks:
            return b""
        fields = self._message | {
            "role": b'"assistant"',
            "content": write_array([b.whole() for b in self._blocks.values()]),
        }
        if self._usage is not None:
            fields["usage"] = write_object(self._usage)
        return write_object(fields)

    def _end(self, said: _Event, fields: dict[str, bytes]) -> None:
        later = {name: told for name, told in (_figures(said.usage) or {}).items() if told != _NULL}
        if later:
            self._usage = (self._usage or {}) | later
        self._message |= read_fields(bytes(said.delta))
        self._message |= {name: raw for name, raw in fields.items() if name not in _OWN}


def _figures(usage: bytes | Raw) -> dict[str, bytes] | None:
    """Return the fields of a usage; None if it is no object: an answer is never lost for its numbers."""
    try:
        return read_fields(bytes(usage))
    except BadInput:
        return None


def _plain(raw: Raw) -> Fields:
    told = read_plain(bytes(raw))
    if not isinstance(told, dict):
        raise BadInput("an event of the stream holds no object where one belongs")
    return told


def _as_object(written: bytes) -> bytes:
    """Return a call's input as the model wrote it; no arguments at all where the output limit cut it."""
    try:
        read_fields(written)
    except BadInput:
        return b"{}"
    return written


_DONE = b"[DONE]"
_TEXTS = frozenset({"content", "refusal", "reasoning_content", "reasoning"})
"""Fields of a delta that come in pieces; of any other the last one counts."""
_LISTS = frozenset({"annotations", "reasoning_details"})
_AROUND = frozenset({"choices", "object", "error"})


class _Choice(Struct):
    index: int = 0
    delta: Raw = Raw(_NULL)
    finish_reason: str | None = None

    def said(self) -> Fields:
        """Return the fields of its delta; numbers that no float holds are no reason to lose an answer."""
        told = read_plain(bytes(self.delta)) or {}
        if not isinstance(told, dict):
            raise BadInput("the delta of a choice is no object")
        return told


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    error: Raw = Raw(_NULL)


class _ChatError(Struct, frozen=True):
    message: str = ""
    type: str | None = None
    code: Any = None


class _Call:
    """A tool call that grows."""

    def __init__(self) -> None:
        self.fields: Fields = {}
        self._pieces: dict[str, dict[str, list[str]]] = {}

    def add(self, piece: Fields) -> None:
        for name, said in piece.items():
            if name in ("function", "custom") and isinstance(said, dict):
                for inner, text in said.items():
                    if isinstance(text, str):
                        self._pieces.setdefault(name, {}).setdefault(inner, []).append(text)
            elif name != "index" and said is not None and not self.fields.get(name):
                self.fields[name] = said

    def whole(self) -> Fields:
        said = {
            name: {key: "".join(texts) for key, texts in inner.items()}
            for name, inner in self._pieces.items()
        }
        kind = "custom" if "custom" in said else "function"
        begun = {"id": "", "type": kind, kind: {}}
        whole: Fields = begun | self.fields | said
        return whole | {kind: _written(kind) | whole[kind]}


class _Message:
    """The message of one choice, and why it ended."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._fields: Fields = {"role": "assistant", "content": None}
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, _Call] = {}

    def add(self, delta: Fields) -> None:
        for name, said in delta.items():
            if name == "tool_calls":
                self._add_calls(said)
            elif name in _TEXTS and isinstance(said, str):
                self._texts.setdefault(name, []).append(said)
            elif name in _LISTS and isinstance(said, list):
                self._fields[name] = [*self._fields.get(name, []), *said]
            elif said is not None or name not in self._fields:
                self._fields[name] = said

    def whole(self) -> Fields:
        message = self._fields | {name: "".join(pieces) for name, pieces in self._texts.items()}
        if self._calls:
            message["tool_calls"] = [self._calls[at].whole() for at in sorted(self._calls)]
        return message

    def _add_calls(self, pieces: object) -> None:
        for piece in _objects(pieces):
            at = piece.get("index")
            if not isinstance(at, int):  # who leaves it out sends calls whole, or one after the other
                at = len(self._calls) if piece.get("id") else max(self._calls, default=0)
            self._calls.setdefault(at, _Call()).add(piece)


class StreamedCompletion:
    """The answer of one call, with all its choices."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._around: dict[str, bytes] = {}
        self._choices: dict[int, _Message] = {}

    def take(self, event: bytes) -> None:
        """Add one chunk; of the fields around the choices the last that is not null counts."""
        if event.strip() == _DONE:
            self.is_done = True
            return
        chunk = read_json(event, _Chunk)
        if bytes(chunk.error) != _NULL:
            self.error = _said(bytes(chunk.error))
            return
        fields = read_fields(event)
        self._around |= {name: raw for name, raw in fields.items() if name not in _AROUND and raw != _NULL}
        for choice in chunk.choices or []:
            message = self._choices.setdefault(choice.index, _Message())
            delta = choice.said()
            message.add(delta)
            self.has_begun = self.has_begun or choice.finish_reason is not None or _says_something(delta)
            message.finish_reason = choice.finish_reason or message.finish_reason

    def is_whole(self) -> bool:
        """Some servers close without the end mark; then every choice has to have said why it ended."""
        return bool(self._choices) and all(message.finish_reason for message in self._choices.values())

    def usage(self) -> bytes:
        """Return the usage told so far as JSON; empty if none was."""
        return self._around.get("usage", b"")

    def answer(self) -> bytes:
        """Return what came so far as a chat completion; empty if nothing did."""
        if not self._choices:
            return b""
        choices = [
            write_json({"index": at, "message": message.whole(), "finish_reason": message.finish_reason})
            for at, message in sorted(self._choices.items())
        ]
        return write_object(self._around | {"object": b'"chat.completion"', "choices": write_array(choices)})


def _says_something(delta: Fields) -> bool:
    """Return whether there is more in a chunk than the role of who will speak."""
    return any(value for name, value in delta.items() if name != "role")


def _objects(told: object) -> Iterator[Fields]:
    yield from (one for one in (told if isinstance(told, list) else []) if isinstance(one, dict))


def _written(kind: str) -> Fields:
    return {"name": "", "arguments" if kind == "function" else "input": ""}


def _said(raw: bytes) -> str:
    try:
        error = read_json(raw, _ChatError)
    except BadInput:
        return f"error: {raw.decode(errors='replace')[:200]}"
    return f"{error.type or error.code or 'error'}: {error.message}"


_RESPONSES_NULL = Raw(b"null")
_ENDS = frozenset({"response.completed", "response.incomplete"})
_BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})

_RESPONSES_OPENING = _BEGINS | {"response.failed", "error", "keepalive"}


class _ResponsesError(Struct, frozen=True):
    code: Any = None
    type: str | None = None
    message: str | None = None


class _ResponsesEvent(Struct):
    type: str = ""
    response: Raw = _RESPONSES_NULL
    item: Raw = _RESPONSES_NULL
    output_index: int = 0
    # An `error` event says what it has to say itself, or in an object of its own.
    code: Any = None
    message: str | None = None
    error: _ResponsesError | None = None


class _Failed(Struct):
    error: _ResponsesError | None = None


class _Usage(Struct):
    usage: Raw = _RESPONSES_NULL


class _Output(Struct):
    output: list[Raw] | None = None


class StreamedResponse:
    """The answer of one call: its last event has all of it, or the items that were done are its output."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._response = b""
        self._items: dict[int, bytes] = {}

    def take(self, event: bytes) -> None:
        """Add one event; the pieces of items are repeated when an item is done."""
        said = read_json(event, _ResponsesEvent)
        self.has_begun = self.has_begun or said.type not in _RESPONSES_OPENING
        if said.type in _BEGINS or said.type in _ENDS:
            if bytes(said.response)[:1] != b"{":
                raise BadInput(f"a {said.type} without a response")
            self._response = bytes(said.response)
            self.is_done = said.type in _ENDS
        elif said.type == "response.output_item.done":
            self._items[said.output_index] = bytes(said.item)
        elif said.type == "response.failed":
            self.error = _responses_text(read_json(bytes(said.response), _Failed).error)
        elif said.type == "error":
            self.error = _responses_text(said.error or _ResponsesError(code=said.code, message=said.message))

    def is_whole(self) -> bool:
        """Without its last event there may be more to come."""
        return self.is_done

    def usage(self) -> bytes:
        """Return the usage told so far as JSON; empty if none was."""
        usage = read_json(self._response, _Usage).usage if self._response else _RESPONSES_NULL
        return b"" if bytes(usage) == b"null" else bytes(usage)

    def answer(self) -> bytes:
        """Return what came so far as a response, byte for byte if it came whole; empty if nothing did."""
        if not self._response:
            return b""
        if not self._items or read_json(self._response, _Output).output:
            return self._response
        # Some backends leave the output out of the last event.
        items = [self._items[at] for at in sorted(self._items)]
        return write_object(read_fields(self._response) | {"output": write_array(items)})


def _responses_text(error: _ResponsesError | None) -> str:
    if error is None:
        return "error: the response failed"
    return f"{error.code or error.type or 'error'}: {error.message or ''}"


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


_STREAM_KINDS: MappingProxyType[Format, _Kind] = MappingProxyType(
    {
        "anthropic": _Kind(StreamedMessage, anthropic_usage),
        "openai_chat": _Kind(StreamedCompletion, openai_usage),
        "openai_responses": _Kind(StreamedResponse, openai_usage),
    }
)


def stream_for(format: Format) -> AnswerStream:
    """Return what reads a stream of this format."""
    kind = _STREAM_KINDS[format]
    return AnswerStream(kind.streamed(), kind.usage)


def answer_in_stream(text: bytes) -> bytes:
    """Return the answer in a recorded stream, as far as it was recorded; empty if there is none."""
    reader = EventReader()
    return answer_in_events([*reader.feed(text), *reader.end()])


def answer_in_events(events: Iterable[bytes]) -> bytes:
    """Return the answer in a stream's events, whatever the format; what cannot be read is left out."""
    events = list(events)
    streamed = _STREAM_KINDS[_format_of(events)].streamed()
    for event in events:
        try:
            streamed.take(event)
        except BadInput:
            continue
    try:
        return streamed.answer()
    except BadInput:
        return b""


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
