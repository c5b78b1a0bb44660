"""Reads logs of API requests and answers, and reconstructs the sessions from them."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Response
from lowwater.core.cache.belief import chained
from lowwater.core.formats.codec import decode_response, detect, messages_in
from lowwater.core.formats.openai_responses import is_elsewhere
from lowwater.core.formats.streams import answer_in_events, answer_in_stream
from lowwater.core.messages import Format, Message
from lowwater.core.strict_json import read_fields, read_json, write_object
from lowwater.errors import BadInput
from lowwater.logs.files import (
    RecordedFile,
    fields_in,
    given_value,
    json_items,
    read_or,
    seconds,
    unquoted,
)
from lowwater.logs.recording import RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import build_recording, decode_recorded, usage_in

AGENT = "request-log"
RESPONSES: Format = "openai_responses"


# One line: a request and its answer

# Loggers use many names for the same things. The fields in which a line may have the request, and the answer:
_SENT = ("request", "request_body", "req", "proxy_server_request", "body", "params", "kwargs")
_CAME = ("response", "response_body", "res", "result", "response_obj", "completion")
# and the fields in which these may be wrapped:
_INNER_SENT = ("body", "json", "params", "data", "request", "kwargs", "content")
_INNER_CAME = ("body", "json", "message", "data", "response", "body_raw", "content")
# The fields with the time of the request, of the answer, and of either:
_ASKED = ("startTime", "start_time", "request_time", "started_at", "requested_at")
_ANSWERED = ("endTime", "end_time", "response_time", "completed_at", "finished_at", "logged_at")
_AT = ("timestamp", "ts", "time", "created_at", "datetime", "date")
_COUNTED = ("prompt_tokens", "completion_tokens")
_DEEPEST = 4


class LoggedExchange(Struct, frozen=True, kw_only=True):
    """A request and its answer, each empty if the line has none."""

    request: bytes = b""
    answer: bytes = b""
    usage: bytes = b""
    """The usage that the logger counted itself."""
    custom_id: str = ""
    """Connects the request and the result lines of a batch."""
    asked_at: float | None = None
    at: float | None = None


def exchange_in(line: bytes) -> LoggedExchange | None:
    """Return the exchange in a line, or None if it is not a line of a request log."""
    fields = fields_in(line)
    request = _request_in(fields)
    answer = next((body for name in _CAME if (body := _answer(fields.get(name, b"")))), b"")
    custom_id = read_or(fields.get("custom_id", b""), "")
    is_result = bool(custom_id) and any(name in fields for name in ("response", "result", "error"))
    if not request and not answer and not is_result:
        return None
    if not any(name in fields for name in _CAME) and not custom_id:
        return None  # without a field for an answer, this is a list of messages
    asked_at = _first(fields, _ASKED) or _inner_time(fields, _SENT)
    at = _first(fields, _ANSWERED) or _inner_time(fields, _CAME) or _first(fields, _AT)
    return LoggedExchange(
        request=request,
        answer=answer,
        usage=_counted(fields),
        custom_id=custom_id,
        asked_at=asked_at,
        at=at or _first(fields_in(answer), ("created", "created_at")) or asked_at,
    )


def _request_in(fields: dict[str, bytes]) -> bytes:
    """Return the body of the request; if the line itself has its fields, a body made of the relevant ones."""
    body = next((body for name in _SENT if (body := _request(fields.get(name, b"")))), b"")
    listed = unquoted(fields.get("messages", b""))
    if body or listed[:1] != b"[":
        return body
    own = {name: fields[name] for name in ("model", "system", "tools") if name in fields}
    around = fields_in(fields.get("model_parameters", b"")) | fields_in(fields.get("optional_params", b""))
    beside = {name: around[name] for name in ("system", "tools") if name in around}
    return write_object(beside | own | {"messages": listed})


def _request(raw: bytes, depth: int = 0) -> bytes:
    body = unquoted(raw)
    fields = fields_in(body)
    if fields.get("messages", b"")[:1] == b"[" or _is_responses_request(fields):
        return body
    return _inside(fields, _INNER_SENT, depth, _request)


def _answer(raw: bytes, depth: int = 0) -> bytes:
    if raw[:1] == b'"':
        text = read_or(raw, "")
        if text.lstrip().startswith(("data:", "event:")):
            return answer_in_stream(text.encode(errors="replace"))
    body = unquoted(raw)
    if body[:1] == b"[":
        return answer_in_events(json_items(body))
    fields = fields_in(body)
    if fields.get("choices", b"")[:1] == b"[" or _is_response(fields):
        return body
    if fields.get("role") == b'"assistant"':
        of_anthropic = fields.get("content", b"")[:1] == b"[" and "tool_calls" not in fields
        return body if of_anthropic else b'{"choices":[{"message":%b}]}' % body
    return _inside(fields, _INNER_CAME, depth, _answer)


def _is_responses_request(fields: dict[str, bytes]) -> bool:
    return fields.get("input", b"")[:1] in (b"[", b'"') and "model" in fields


def _is_response(fields: dict[str, bytes]) -> bool:
    return fields.get("output", b"")[:1] == b"[" and fields.get("object") == b'"response"'


def _inside(
    fields: dict[str, bytes], names: tuple[str, ...], depth: int, look: Callable[[bytes, int], bytes]
) -> bytes:
    if depth == _DEEPEST:
        return b""
    return next((body for name in names if (body := look(fields.get(name, b""), depth + 1))), b"")


def _counted(fields: dict[str, bytes]) -> bytes:
    if fields.get("usage", b"")[:1] == b"{":
        return fields["usage"]
    counted = {name: raw for name, raw in fields.items() if name in _COUNTED}
    return write_object(counted) if counted else b""


def _inner_time(fields: dict[str, bytes], names: tuple[str, ...]) -> float | None:
    inner = (fields_in(fields.get(name, b"")) for name in names)
    return next((time for found in inner if (time := _first(found, _AT)) is not None), None)


def _first(fields: dict[str, bytes], names: tuple[str, ...]) -> float | None:
    return next((time for name in names if (time := _seconds(fields.get(name, b""))) is not None), None)


def _seconds(raw: bytes) -> float | None:
    try:
        return seconds(read_json(raw, float | str)) if raw else None  # type: ignore[arg-type]  # a union is a type
    except BadInput:
        return None


# Batches, whose requests are in another file

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".txt")


class _Line(Struct, frozen=True):
    path: Path
    at: int


class BatchRequests:
    """Finds the requests of a batch by their custom ids, in files beside the results; only their places are kept in memory."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._lines: dict[str, _Line] | None = None

    def find(self, custom_id: str) -> bytes:
        """Return the body of a request, empty if there is none."""
        if self._lines is None:
            self._lines = dict(self._indexed())
        line = self._lines.get(custom_id)
        if line is None:
            return b""
        try:
            with RecordedFile(line.path) as file:
                exchange = exchange_in(file.line_at(line.at))
        except BadInput:
            return b""
        return exchange.request if exchange else b""

    def _indexed(self) -> Iterator[tuple[str, _Line]]:
        for path in sorted(self._results.parent.iterdir()):
            if path.suffix in _SUFFIXES and path.is_file():
                try:
                    with RecordedFile(path) as file:
                        yield from _requests_in(file)
                except BadInput:
                    continue


def _requests_in(file: RecordedFile) -> Iterator[tuple[str, _Line]]:
    if b'"custom_id"' not in file.head():
        return
    for line in file.lines():
        exchange = exchange_in(line.data)
        if exchange is not None and exchange.custom_id and exchange.request:
            yield exchange.custom_id, _Line(file.path, line.at)


# Sessions: requests that extend each other

AT_HAND = 256 << 20
"""The most bytes of messages held in memory at a time."""


class LoggedRequest(Struct, frozen=True, kw_only=True):
    """The parts of a request that a session needs."""

    messages: tuple[Message, ...] = ()
    system: bytes = b""
    tools: bytes = b""
    model: str = ""


class _Session(Struct, kw_only=True):
    """A session being reconstructed."""

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
    """The sessions of one log that are in memory, ordered by their last requests."""

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
        """Yield the messages of a request; a message is decoded, or counted as broken, only the first time it is sent."""
        for raw in raws:
            key = blake2b(raw, digest_size=16, person=format.encode()[:16]).digest()
            if key not in self._decoded:
                self._remembered += len(raw)
                if self._remembered > self._at_hand:
                    self._decoded.clear()
                    self._remembered = len(raw)
                self._decoded[key] = decode_recorded(raw, format, file=self._file, where=where)
            message = self._decoded[key]
            if message is not None:
                yield message

    def take(
        self,
        asked: LoggedRequest,
        response: Response,
        *,
        asked_at: float | None,
        at: float | None,
        name: str = "",
    ) -> Iterator[Recording]:
        """Add one exchange, and yield the sessions evicted from memory for it."""
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
        """Yield the sessions still in memory."""
        while self._open:
            yield self._closed(next(iter(self._open)))

    def _place(self, keys: Sequence[bytes], messages: Sequence[Message]) -> _Place:
        """Return the latest point of a session that the messages continue, even if the client repeats the answer differently."""
        for length in range(len(keys), 0, -1):
            key = keys[length - 1]
            if key in self._answered:
                return _Place(self._answered[key], length, key)
            before = keys[length - 2] if length > 1 else b""
            if messages[length - 1].role == "assistant" and before in self._asked:
                return _Place(self._asked[before], length, before)
        return _NOWHERE

    def _begin(self, asked: LoggedRequest, place: _Place, name: str) -> _Session:
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
        """Add new messages to a session, and make it the most recently used."""
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
        return build_recording(
            self._file,
            id=session.id,
            agent=AGENT,
            messages=session.messages,
            system=session.system,
            tools=session.tools,
            parent=session.parent,
            relation="fork" if session.parent else "",
            shared=session.shared,
        )


# The format

_LOOKED_AT = 3


class RequestLogs:
    """Reads one log per file; consecutive requests that extend each other are one session."""

    name = AGENT
    order = 110

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether one of the first lines, or the first item, is an exchange."""
        text = head.lstrip()
        if text[:1] == b"[":
            return _is_exchange(next(json_items(text), b""))
        return any(map(_is_exchange, text.split(b"\n", _LOOKED_AT)[:_LOOKED_AT]))

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each session when it has to leave memory, or when the file ends."""
        sessions, batch = Sessions(file), BatchRequests(file.path)
        told: set[bytes] = set()
        for item in _items(file):
            exchange = exchange_in(item.data)
            if exchange is None:
                file.broken(item.where, _why_none(item.data))
                continue
            if not exchange.answer:
                continue
            if exchange.custom_id and not exchange.request:
                exchange = replace(exchange, request=batch.find(exchange.custom_id))
            once = blake2b(exchange.request + exchange.answer, digest_size=16).digest()
            if once not in told:
                told.add(once)
                yield from _take(exchange, item.where, sessions, file)
        yield from sessions.rest()


class _Item(Struct, frozen=True):
    where: int | str
    data: bytes


def _is_exchange(data: bytes) -> bool:
    exchange = exchange_in(data)
    return exchange is not None and bool(exchange.answer or exchange.custom_id)


def _why_none(data: bytes) -> str:
    try:
        read_fields(data)
    except BadInput as error:
        return str(error)
    return "neither a request nor an answer"


def _items(file: RecordedFile) -> Iterator[_Item]:
    if file.head().lstrip()[:1] == b"[":
        for at, data in enumerate(json_items(file.whole())):
            yield _Item(f"item {at}", data)
    else:
        for line in file.lines():
            yield _Item(line.number, line.data)


def _take(
    exchange: LoggedExchange, where: int | str, sessions: Sessions, file: RecordedFile
) -> Iterator[Recording]:
    try:
        response = decode_response(exchange.answer)
        asked = _asked(exchange.request, where, sessions)
    except BadInput as error:
        file.broken(where, str(error))
        return
    if response.usage is None:
        response = replace(response, usage=usage_in(exchange.usage, file=file, where=where))
    yield from sessions.take(
        asked, response, asked_at=exchange.asked_at, at=exchange.at, name=exchange.custom_id
    )


def _asked(request: bytes, where: int | str, sessions: Sessions) -> LoggedRequest:
    fields = fields_in(request)
    if "messages" not in fields and "input" in fields:
        return _asked_for_response(fields, where, sessions)
    raws = list(json_items(fields.get("messages", b"")))
    format = detect(raws, fields)
    return LoggedRequest(
        messages=tuple(sessions.messages(raws, format, where)),
        system=given_value(fields.get("system", b"")),
        tools=given_value(fields.get("tools", b"")),
        model=read_or(fields.get("model", b""), ""),
    )


def _asked_for_response(fields: dict[str, bytes], where: int | str, sessions: Sessions) -> LoggedRequest:
    if is_elsewhere(fields):
        raise BadInput("the request refers to history that only the provider has: it is not in the log")
    listed = fields["input"]
    said = write_object({"role": b'"user"', "content": listed}) if listed[:1] == b'"' else b""
    raws = [said] if said else list(json_items(listed))
    return LoggedRequest(
        messages=tuple(sessions.messages(messages_in(raws, RESPONSES), RESPONSES, where)),
        system=given_value(fields.get("instructions", b"")),
        tools=given_value(fields.get("tools", b"")),
        model=read_or(fields.get("model", b""), ""),
    )


FORMATS = (RequestLogs(),)
