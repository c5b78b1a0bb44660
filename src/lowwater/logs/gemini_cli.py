"""Reads Gemini CLI's sessions: one JSON object, or lines that replace, add and retract messages."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_json
from lowwater.logs.files import LogFolder, RecordedFile, fields_in, is_readable, seconds
from lowwater.logs.recording import Recording
from lowwater.logs.recording_builder import (
    AgentCompaction,
    ChatSession,
    GatheredAnswer,
    GatheredResult,
    InputMessage,
    SessionItem,
    function_call,
    text_of_content,
)

# Messages


class _Tokens(Struct):
    input: Tokens = None
    output: Tokens = None
    cached: Tokens = None
    thoughts: Tokens = None
    tool: Tokens = None


class _Thought(Struct):
    subject: str | None = None
    description: str | None = None


class _ToolCall(Struct):
    id: str
    name: str = ""
    args: Raw = Raw(b"{}")
    result: Raw = Raw(b"null")
    status: str | None = None


class GeminiMessage(Struct):
    """A message as Gemini CLI writes it; `content` is text, a part, or a list of these."""

    id: str = ""
    type: str = ""
    timestamp: Any = None
    content: Raw = Raw(b'""')
    model: str | None = None
    thoughts: list[_Thought] | None = None
    toolCalls: list[_ToolCall] | None = None  # noqa: N815  # Gemini's spelling, here and below
    tokens: _Tokens | None = None


class _Response(Struct):
    response: Raw = Raw(b"null")


class _Part(Struct):
    text: str | None = None
    functionResponse: _Response | None = None  # noqa: N815


class _Output(Struct):
    output: Raw = Raw(b"")
    error: Raw = Raw(b"")


def answer_of(message: GeminiMessage, where: int | str, at: float | None) -> GatheredAnswer:
    """Return an answer with its thoughts, calls, results and counts."""
    text = text_in(message.content)
    calls = message.toolCalls or []
    results = {call.id: _result(call, where, at) for call in calls}
    thoughts = [": ".join(filter(None, (it.subject, it.description))) for it in message.thoughts or []]
    return GatheredAnswer(
        where=where,
        at=at,
        key=message.id,
        model=message.model or "",
        texts=[text] if text else [],
        thoughts=[thought for thought in thoughts if thought],
        calls=[function_call(call.id, call.name, call.args) for call in calls],
        results={call: result for call, result in results.items() if result is not None},
        usage=_usage(message.tokens) if message.tokens else None,
    )


def _result(call: _ToolCall, where: int | str, at: float | None) -> GatheredResult | None:
    """Return the result of a call, or None if there is none yet: the message is written again when it has results."""
    if bytes(call.result) in (b"null", b"[]", b""):
        return None
    return GatheredResult(content=text_in(call.result), where=where, at=at, is_error=call.status == "error")


def text_in(content: Raw) -> str:
    """Return the text of content: of its parts and of the responses of functions."""
    raw = bytes(content)
    parts = read_json(raw, list[Raw]) if raw[:1] == b"[" else [content]
    return "\n".join(text for part in parts if (text := _text_in_part(part)))


def _text_in_part(content: Raw) -> str:
    match bytes(content)[:1]:
        case b"{":
            part = read_json(bytes(content), _Part)
            return part.text or (_response(part.functionResponse.response) if part.functionResponse else "")
        case b'"':
            return text_of_content(content)
        case _:
            return ""


def _response(response: Raw) -> str:
    if bytes(response)[:1] != b"{":
        return text_of_content(response)
    said = read_json(bytes(response), _Output)
    return text_of_content(next((it for it in (said.output, said.error) if bytes(it)), response))


def _usage(tokens: _Tokens) -> Usage | None:
    """Return the usage in parts that do not overlap; Gemini's input includes cached tokens, its output excludes thoughts."""
    prompt = tokens.input or 0
    read = min(tokens.cached or 0, prompt)
    usage = Usage(
        uncached=prompt - read + (tokens.tool or 0),
        cache_read=read,
        output=(tokens.output or 0) + (tokens.thoughts or 0),
    )
    return usage if usage.prompt else None


# Sessions


class _Record(Struct, rename={"set": "$set", "rewind_to": "$rewindTo"}):
    """One line, or the whole file: a message if it has an id and a type, else a change of the session."""

    id: str | None = None
    type: str | None = None
    sessionId: str | None = None  # noqa: N815  # Gemini's spelling, here and below
    startTime: Any = None  # noqa: N815
    kind: str | None = None
    messages: list[Raw] | None = None
    set: Raw = Raw(b"")
    rewind_to: str | None = None


class GeminiCli:
    """Reads one session per file; those of sub-agents are in a folder named after their parent."""

    name = "gemini-cli"
    order = 40

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the object around the messages, or the line before them, has Gemini CLI's fields."""
        names = fields_in(head).keys()
        return {"sessionId", "startTime"} <= names and bool({"projectHash", "messages", "kind"} & names)

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session and the branches that were retracted."""
        chat = _Chat(file)
        lines = file.lines()
        first = next(lines, None)
        if first is not None and fields_in(first.data) and is_readable(first.data, _Record):
            chat.add(first.data, first.number)
            for line in lines:
                chat.add(line.data, line.number)
        else:
            file.take_broken()
            chat.add(file.whole(), 1)
        yield from chat.recordings()


class _Chat:
    """One session so far."""

    def __init__(self, file: RecordedFile) -> None:
        self._file = file
        self._id = ""
        self._kind = ""
        self._started_at: float | None = None
        self._session = ChatSession(file)
        self._known: dict[str, int] = {}

    def add(self, data: bytes, where: int | str) -> None:
        with self._file.broken_at(where):
            record = read_json(data, _Record)
            if record.rewind_to is not None:
                # If the message is not known, all messages are retracted.
                self._back_to(self._known.get(record.rewind_to, 0))
            elif record.id and record.type:
                self._message(read_json(data, GeminiMessage), where)
            elif bytes(record.set):
                self._change(read_json(bytes(record.set), _Record), where)
            else:
                self._change(record, where)

    def recordings(self) -> Iterator[Recording]:
        subagent = self._kind == "subagent"
        parent = self._file.path.parent.name
        return self._session.recordings(
            id=self._id or self._file.path.stem,
            agent=GeminiCli.name,
            parent=parent if subagent else "",
            relation="subagent" if subagent else "",
            started_at=self._started_at,
        )

    def _change(self, record: _Record, where: int | str) -> None:
        self._id = record.sessionId or self._id
        self._kind = record.kind or self._kind
        self._started_at = seconds(record.startTime) or self._started_at
        if record.messages is not None:
            self._replace(record.messages, where)

    def _replace(self, raws: Sequence[Raw], where: int | str) -> None:
        """Take a new list of messages: a shorter one is a rewind, one with another beginning is a compaction."""
        read = (
            self._file.read(bytes(raw), GeminiMessage, f"{where} message {number}")
            for number, raw in enumerate(raws, start=1)
        )
        messages = [message for message in read if message is not None]
        places = [self._known.get(message.id) for message in messages]
        compacts = bool(self._known) and bool(places) and places[0] is None
        if compacts:
            self._session.items.append(AgentCompaction(at=seconds(messages[0].timestamp)))
        elif self._known and None not in places:
            self._back_to(1 + max((place for place in places if place is not None), default=-1))
        for number, (message, place) in enumerate(zip(messages, places, strict=True), start=1):
            if place is None:
                self._message(message, f"{where} message {number}", is_summary=compacts and number == 1)

    def _back_to(self, place: int) -> None:
        self._session.rewind(place)
        self._known = {id: known for id, known in self._known.items() if known < place}

    def _message(self, message: GeminiMessage, where: int | str, *, is_summary: bool = False) -> None:
        at = seconds(message.timestamp)
        item: SessionItem
        match message.type:
            case "gemini":
                item = answer_of(message, where, at)
            case "user":
                fields = {"role": "user", "content": text_in(message.content)}
                item = InputMessage(
                    fields=fields, where=where, at=at, kind="compact_summary" if is_summary else ""
                )
            case _:
                return
        place = len(self._session.items)
        if message.id:
            place = self._known.setdefault(message.id, place)
        if place < len(self._session.items):
            self._session.items[place] = item
        else:
            self._session.items.append(item)


FORMATS = (GeminiCli(),)
FOLDERS = (LogFolder(agent="Gemini CLI", home=".gemini", inside="tmp"),)
