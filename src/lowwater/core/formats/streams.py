"""Streamed answers: server-sent events, put together into the answer as it would have been without streaming."""

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import decode_anthropic_usage, decode_openai_usage
from lowwater.core.messages import Format
from lowwater.core.strict_json import (
    as_strict_json,
    read_fields,
    read_json,
    read_plain,
    write_array,
    write_json,
    write_object,
)
from lowwater.errors import BadInput

CUT_OFF = "the stream ended before the answer did"
_NULL = b"null"
_EMPTY_OBJECT = Raw(b"{}")
EventFields = dict[str, Any]
T = TypeVar("T")


class _Typed(Struct):
    type: Raw = Raw(_NULL)


class PartialAnswer(Protocol):
    """An answer being put together from the events of its stream; one implementation for each format."""

    is_done: bool
    """Whether the provider has marked the end of the answer."""
    has_begun: bool
    """Whether any content has arrived, rather than only the opening events."""
    error: str
    """The provider's error; empty if there was none."""

    def take(self, event: bytes) -> None:
        """Add the data of one event, or raise BadInput."""
        ...

    def is_whole(self) -> bool:
        """Return whether the answer is complete if no more events follow."""
        ...

    def usage(self) -> bytes:
        """Return the usage reported so far as JSON; empty if none was."""
        ...

    def answer(self) -> bytes:
        """Return what has arrived so far, in the form of an answer without streaming; empty if nothing has."""
        ...


class AnswerStream:
    """Reads a stream while it is relayed: `feed` it every chunk, and call `end` when no more follow."""

    def __init__(self, partial: PartialAnswer, usage: Callable[[bytes], Usage]) -> None:
        self._events = EventReader()
        self._partial = partial
        self._usage = usage
        self._is_complete = False
        self.broken = ""
        """Why there is no complete answer: the provider's error, an unreadable event, or a stream that was cut off; else empty."""

    @property
    def is_done(self) -> bool:
        """Whether the answer is complete."""
        return not self.broken and (self._is_complete or self._partial.is_done)

    @property
    def has_begun(self) -> bool:
        """Whether any content has arrived; a provider may still refuse a prompt after opening the stream."""
        return self._partial.has_begun

    @property
    def usage(self) -> Usage | None:
        """The usage reported so far; None if none was."""
        try:
            raw = self._partial.usage()
            return self._usage(raw) if raw else None
        except BadInput:
            return None

    def feed(self, chunk: bytes) -> None:
        """Read the next chunk, which may end anywhere; this never raises, whatever the bytes."""
        self._take(self._events.feed(chunk))

    def end(self) -> None:
        """Note that no more bytes follow."""
        self._take(self._events.end())
        if self.broken or self.is_done:
            return
        if self._partial.is_whole():
            self._is_complete = True
        else:
            self.broken = CUT_OFF

    def answer(self) -> bytes | None:
        """Return the complete answer as JSON for `decode_response`; None until it is complete."""
        if not self.is_done:
            return None
        try:
            whole = self._partial.answer()
        except BadInput as error:
            self.broken = f"the streamed answer cannot be put together: {error}"
            return None
        if not whole:
            self.broken = "the stream ended without an answer"
        return whole or None

    def _take(self, events: Iterable[bytes]) -> None:
        for event in events:
            if self.broken or self._partial.is_done:
                return
            try:
                self._partial.take(as_strict_json(event))
            except BadInput as error:
                self.broken = f"an event of the stream cannot be read: {error}"
            self.broken = self.broken or self._partial.error


def stream_for(format: Format) -> AnswerStream:
    """Return a reader for a stream of this format."""
    kind = _STREAM_KINDS[format]
    return AnswerStream(kind.partial(), kind.usage)


def answer_in_stream(text: bytes) -> bytes:
    """Return the answer in a recorded stream, as far as it goes; empty if there is none."""
    reader = EventReader()
    return answer_in_events([*reader.feed(text), *reader.end()])


def answer_in_events(events: Iterable[bytes]) -> bytes:
    """Return the answer in a stream's events, whose format is detected; unreadable events are skipped."""
    events = list(events)
    partial = _STREAM_KINDS[_format_of(events)].partial()
    for event in events:
        try:
            partial.take(as_strict_json(event))
        except BadInput:
            continue
    try:
        return partial.answer()
    except BadInput:
        return b""


def _format_of(events: Iterable[bytes]) -> Format:
    for event in events:
        try:
            kind = _type_of(event)
        except BadInput:
            continue
        if kind == "message_start":
            return "anthropic"
        if kind.startswith("response."):
            return "openai_responses"
    return "openai_chat"


def _type_of(event: bytes) -> str:
    """Return the type of an event, empty if it has none that is a text; raise BadInput if the event is no object."""
    return _text(read_json(event, _Typed).type)


def _text(raw: Raw) -> str:
    """Return a text, empty if it is something else: oddities beside the content must not lose an answer."""
    return _read_or(bytes(raw), "")


def _read_or(raw: bytes, default: T) -> T:
    """Return what is read as a value of the default's type, or the default."""
    try:
        return read_json(raw, type(default))
    except BadInput:
        return default


# Server-sent events

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class EventReader:
    """Parses server-sent events from chunks; comments and fields other than `data` are ignored."""

    def __init__(self) -> None:
        self._line = bytearray(b"")
        self._data: list[bytes] = []
        self._is_first = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of each event that is complete with this chunk."""
        if not chunk:
            return []
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")  # the second half of a line ending
        self._after_return = chunk.endswith(b"\r")
        events: list[bytes] = []
        for piece in chunk.splitlines(keepends=True):
            self._line += piece
            if piece.endswith((b"\n", b"\r")):
                events.extend(self._end_line())
        return events

    def end(self) -> list[bytes]:
        """Return the last event if no empty line ended it; call this when the stream has ended."""
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
    """Split a chunk in two, with only its last event in the second part."""
    events = chunk.rstrip(b"\r\n")
    cut = max((at + len(end) for end in _EVENT_ENDS if (at := events.rfind(end)) >= 0), default=0)
    return chunk[:cut], chunk[cut:]


# Anthropic

_ANTHROPIC_EVENTS = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "error"}
)
_ANTHROPIC_OPENING = frozenset({"message_start", "error"})
_ANTHROPIC_PIECES = ("text", "thinking", "signature", "content")
"""Fields of a block that arrive in pieces; deltas have them under the same name."""
_EVENT_FIELDS = frozenset({"type", "delta", "usage"})


class _AnthropicError(Struct, frozen=True):
    type: str = ""
    message: str = ""


class _AnthropicEvent(Struct):
    type: str = ""
    index: int = 0
    message: Raw = _EMPTY_OBJECT
    content_block: Raw = _EMPTY_OBJECT
    delta: Raw = _EMPTY_OBJECT
    usage: Raw = _EMPTY_OBJECT
    error: Raw = _EMPTY_OBJECT


class AnthropicPartial:
    """A PartialAnswer from Anthropic's Messages API."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._message: dict[str, bytes] = {}
        self._usage: dict[str, bytes] | None = None
        self._blocks: dict[int, _GrowingBlock] = {}

    def take(self, event: bytes) -> None:
        """Add one event; later usage figures replace earlier ones."""
        if _type_of(event) not in _ANTHROPIC_EVENTS:
            return
        parsed = read_json(event, _AnthropicEvent)
        self.has_begun = self.has_begun or parsed.type not in _ANTHROPIC_OPENING
        match parsed.type:
            case "message_start":
                self._message = read_fields(bytes(parsed.message))
                self._usage = _fields_or_none(self._message.get("usage", _NULL))
            case "content_block_start":
                self._blocks[parsed.index] = _GrowingBlock(_read_object(parsed.content_block))
            case "content_block_delta":
                block = self._blocks.setdefault(parsed.index, _GrowingBlock({"type": "text", "text": ""}))
                block.add(_read_object(parsed.delta))
            case "message_delta":
                self._end(parsed, read_fields(event))
            case "message_stop":
                self.is_done = True
            case _:
                error = _read_or(bytes(parsed.error), _AnthropicError())
                self.error = f"{error.type or 'error'}: {error.message}"

    def is_whole(self) -> bool:
        """Return whether the last event has arrived; without it, more may follow."""
        return self.is_done

    def usage(self) -> bytes:
        """Return the usage reported so far as JSON; empty if none was."""
        return b"" if self._usage is None else write_object(self._usage)

    def answer(self) -> bytes:
        """Return what has arrived so far as a message; empty if nothing has."""
        if not self._message and not self._blocks:
            return b""
        fields = self._message | {
            "role": b'"assistant"',
            "content": write_array([b.whole() for b in self._blocks.values()]),
        }
        if self._usage is not None:
            fields["usage"] = write_object(self._usage)
        return write_object(fields)

    def _end(self, event: _AnthropicEvent, fields: dict[str, bytes]) -> None:
        later = {name: raw for name, raw in (_fields_or_none(event.usage) or {}).items() if raw != _NULL}
        if later:
            self._usage = (self._usage or {}) | later
        self._message |= _fields_or_none(event.delta) or {}
        self._message |= {name: raw for name, raw in fields.items() if name not in _EVENT_FIELDS}


class _GrowingBlock:
    """A content block whose pieces are joined at the end."""

    def __init__(self, opened: EventFields) -> None:
        self._opened = opened
        self._pieces: dict[str, list[str]] = {}
        self._input: list[str] = []
        self._citations: list[Any] = []

    def add(self, delta: EventFields) -> None:
        for name in _ANTHROPIC_PIECES:
            if isinstance(delta.get(name), str):
                begun = self._opened.get(name)
                self._pieces.setdefault(name, [begun if isinstance(begun, str) else ""]).append(delta[name])
        if isinstance(delta.get("partial_json"), str):
            self._input.append(delta["partial_json"])
        if "citation" in delta:
            self._citations.append(delta["citation"])

    def whole(self) -> bytes:
        block: EventFields = self._opened | {name: "".join(pieces) for name, pieces in self._pieces.items()}
        if self._citations:
            block["citations"] = [*(block.get("citations") or []), *self._citations]
        written = "".join(self._input)
        if written.strip():
            block["input"] = Raw(_whole_input(written.encode(errors="replace")))
        return write_json(block)


def _fields_or_none(raw: bytes | Raw) -> dict[str, bytes] | None:
    """Return the fields of an object, None if it is none: what is wrong beside the content must not lose an answer."""
    try:
        return read_fields(bytes(raw))
    except BadInput:
        return None


def _read_object(raw: Raw) -> EventFields:
    value = read_plain(bytes(raw))
    if not isinstance(value, dict):
        raise BadInput("an event of the stream lacks a JSON object where one is expected")
    return value


def _whole_input(written: bytes) -> bytes:
    """Return a call's input as the model wrote it, or an empty object if the output limit cut it short."""
    try:
        read_fields(written)
    except BadInput:
        return b"{}"
    return written


# OpenAI chat

_DONE = b"[DONE]"
_CHAT_PIECES = frozenset({"content", "refusal", "reasoning_content", "reasoning"})
"""Fields of a delta that arrive in pieces; any other field is replaced by its last value."""
_CHAT_LISTS = frozenset({"annotations", "reasoning_details"})
_CHUNK_FIELDS = frozenset({"choices", "object", "error"})


class _Choice(Struct):
    index: Raw = Raw(_NULL)
    delta: Raw = Raw(_NULL)
    finish_reason: Raw = Raw(_NULL)

    @property
    def is_last(self) -> bool:
        """Whether the choice ends here, even if its reason is none that anybody can read."""
        return bytes(self.finish_reason) not in (_NULL, b'""')

    def fields(self) -> EventFields:
        """Return the fields of the delta; numbers too large for a float must not lose an answer."""
        value = read_plain(bytes(self.delta)) or {}
        if not isinstance(value, dict):
            raise BadInput("the delta of a choice is not a JSON object")
        return value


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    error: Raw = Raw(_NULL)


class _ChatError(Struct, frozen=True):
    message: str = ""
    type: str | None = None
    code: Any = None


class ChatPartial:
    """A PartialAnswer from a chat-completions API, with all its choices."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._envelope: dict[str, bytes] = {}
        self._choices: dict[int, _GrowingMessage] = {}

    def take(self, event: bytes) -> None:
        """Add one chunk; fields beside the choices keep their last value that is not null."""
        if event.strip() == _DONE:
            self.is_done = True
            return
        chunk = read_json(event, _Chunk)
        if bytes(chunk.error) != _NULL:
            self.error = _chat_error_text(bytes(chunk.error))
            return
        fields = read_fields(event)
        self._envelope |= {
            name: raw for name, raw in fields.items() if name not in _CHUNK_FIELDS and raw != _NULL
        }
        for choice in chunk.choices or []:
            message = self._choices.setdefault(_read_or(bytes(choice.index), 0), _GrowingMessage())
            delta = choice.fields()
            message.add(delta)
            self.has_begun = self.has_begun or choice.is_last or _says_something(delta)
            message.finish_reason = _text(choice.finish_reason) or message.finish_reason
            message.is_finished = message.is_finished or choice.is_last

    def is_whole(self) -> bool:
        """Some servers close the stream without `[DONE]`; then every choice needs a finish reason."""
        return bool(self._choices) and all(message.is_finished for message in self._choices.values())

    def usage(self) -> bytes:
        """Return the usage reported so far as JSON; empty if none was."""
        return self._envelope.get("usage", b"")

    def answer(self) -> bytes:
        """Return what has arrived so far as a chat completion; empty if nothing has."""
        if not self._choices:
            return b""
        choices = [
            write_json({"index": at, "message": message.whole(), "finish_reason": message.finish_reason})
            for at, message in sorted(self._choices.items())
        ]
        return write_object(
            self._envelope | {"object": b'"chat.completion"', "choices": write_array(choices)}
        )


class _GrowingMessage:
    """The message of one choice, and why it ended."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.is_finished = False
        self._fields: EventFields = {"role": "assistant", "content": None}
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, _GrowingCall] = {}

    def add(self, delta: EventFields) -> None:
        for name, value in delta.items():
            if name == "tool_calls":
                self._add_calls(value)
            elif name in _CHAT_PIECES and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif name in _CHAT_LISTS and isinstance(value, list):
                self._fields[name] = [*self._fields.get(name, []), *value]
            elif value is not None or name not in self._fields:
                self._fields[name] = value

    def whole(self) -> EventFields:
        message = self._fields | {name: "".join(pieces) for name, pieces in self._texts.items()}
        if self._calls:
            message["tool_calls"] = [self._calls[at].whole() for at in sorted(self._calls)]
        return message

    def _add_calls(self, pieces: object) -> None:
        for piece in _dicts_in(pieces):
            at = piece.get("index")
            # Servers without an index send each call whole, or one call after another.
            if not isinstance(at, int):
                at = len(self._calls) if piece.get("id") else max(self._calls, default=0)
            self._calls.setdefault(at, _GrowingCall()).add(piece)


class _GrowingCall:
    """A tool call whose pieces are joined at the end."""

    def __init__(self) -> None:
        self.fields: EventFields = {}
        self._pieces: dict[str, dict[str, list[str]]] = {}

    def add(self, piece: EventFields) -> None:
        for name, value in piece.items():
            if name in ("function", "custom") and isinstance(value, dict):
                for inner, text in value.items():
                    if isinstance(text, str):
                        self._pieces.setdefault(name, {}).setdefault(inner, []).append(text)
            elif name != "index" and value is not None and not self.fields.get(name):
                self.fields[name] = value

    def whole(self) -> EventFields:
        joined = {
            name: {key: "".join(texts) for key, texts in inner.items()}
            for name, inner in self._pieces.items()
        }
        kind = "custom" if "custom" in joined else "function"
        defaults = {"id": "", "type": kind, kind: {}}
        whole: EventFields = defaults | self.fields | joined
        if not isinstance(whole[kind], dict):
            raise BadInput(f"the {kind} of a tool call is not a JSON object")
        return whole | {kind: _empty_call(kind) | whole[kind]}


def _empty_call(kind: str) -> EventFields:
    return {"name": "", "arguments" if kind == "function" else "input": ""}


def _says_something(delta: EventFields) -> bool:
    """Return whether a delta holds more than the role, which is all that the first chunk has."""
    return any(value for name, value in delta.items() if name != "role")


def _dicts_in(value: object) -> Iterator[EventFields]:
    yield from (item for item in (value if isinstance(value, list) else []) if isinstance(item, dict))


def _chat_error_text(raw: bytes) -> str:
    try:
        error = read_json(raw, _ChatError)
    except BadInput:
        return f"error: {raw.decode(errors='replace')[:200]}"
    return f"{error.type or error.code or 'error'}: {error.message}"


# OpenAI Responses

_RESPONSES_ENDS = frozenset({"response.completed", "response.incomplete"})
_RESPONSES_BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})
_RESPONSES_OPENING = _RESPONSES_BEGINS | {"response.failed", "error", "keepalive"}


class _ResponsesError(Struct, frozen=True):
    code: Any = None
    type: str | None = None
    message: str | None = None


class _ResponsesEvent(Struct):
    type: Raw = Raw(_NULL)
    response: Raw = Raw(_NULL)
    item: Raw = Raw(_NULL)
    output_index: Raw = Raw(b"0")
    # An `error` event has code and message itself, or in an `error` object.
    error: Raw = Raw(_NULL)


class _FailedResponse(Struct):
    error: _ResponsesError | None = None


class _ResponsesUsage(Struct):
    usage: Raw = Raw(_NULL)


class _ResponsesOutput(Struct):
    output: Raw = Raw(_NULL)


class ResponsesPartial:
    """A PartialAnswer from the Responses API; the last event repeats all of it, or else its output is the finished items."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._response = b""
        self._items: dict[int, bytes] = {}

    def take(self, event: bytes) -> None:
        """Add one event; deltas are ignored, because an item is repeated whole when it is done."""
        parsed = read_json(event, _ResponsesEvent)
        kind = _text(parsed.type)
        self.has_begun = self.has_begun or kind not in _RESPONSES_OPENING
        if kind in _RESPONSES_BEGINS or kind in _RESPONSES_ENDS:
            self._response = bytes(parsed.response) if bytes(parsed.response)[:1] == b"{" else self._response
            self.is_done = kind in _RESPONSES_ENDS
            if self.is_done and not self._response:
                raise BadInput(f"a {kind} without a response")
        elif kind == "response.output_item.done":
            at = _read_or(bytes(parsed.output_index), max(self._items, default=-1) + 1)
            self._items[at] = bytes(parsed.item)
        elif kind == "response.failed":
            self.error = _responses_error_text(_read_or(bytes(parsed.response), _FailedResponse()).error)
        elif kind == "error":
            inner = _read_or(bytes(parsed.error), _ResponsesError())
            own = _read_or(event, _ResponsesError())
            # In an event without an error of its own, `type` is that of the event.
            is_inner = inner != _ResponsesError()
            self.error = _responses_error_text(inner if is_inner else replace(own, type=None))

    def is_whole(self) -> bool:
        """Return whether the last event has arrived; without it, more may follow."""
        return self.is_done

    def usage(self) -> bytes:
        """Return the usage reported so far as JSON; empty if none was."""
        usage = read_json(self._response, _ResponsesUsage).usage if self._response else Raw(_NULL)
        return b"" if bytes(usage) == _NULL else bytes(usage)

    def answer(self) -> bytes:
        """Return what has arrived so far as a response, byte for byte if the last event had it all; empty if nothing has."""
        if not self._response:
            return b""
        output = read_json(self._response, _ResponsesOutput).output
        if not self._items or (bytes(output)[:1] == b"[" and bytes(output) != b"[]"):
            return self._response
        # Some servers leave `output` out of the last event.
        items = [self._items[at] for at in sorted(self._items)]
        return write_object(read_fields(self._response) | {"output": write_array(items)})


def _responses_error_text(error: _ResponsesError | None) -> str:
    if error is None:
        return "error: the response failed"
    return f"{error.code or error.type or 'error'}: {error.message or ''}"


# The formats


class _StreamKind(Struct, frozen=True):
    partial: Callable[[], PartialAnswer]
    usage: Callable[[bytes], Usage]


_STREAM_KINDS: MappingProxyType[Format, _StreamKind] = MappingProxyType(
    {
        "anthropic": _StreamKind(AnthropicPartial, decode_anthropic_usage),
        "openai_chat": _StreamKind(ChatPartial, decode_openai_usage),
        "openai_responses": _StreamKind(ResponsesPartial, decode_openai_usage),
    }
)
