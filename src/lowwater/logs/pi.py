"""Reads pi's sessions: lines that name their parents, so that a file holds a tree of branches; the last line is on the newest one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_json
from lowwater.logs.files import LogFolder, RecordedFile, first_objects, seconds
from lowwater.logs.recording import Recording
from lowwater.logs.recording_builder import (
    AgentCompaction,
    ChatFields,
    ChatSession,
    GatheredAnswer,
    GatheredResult,
    InputMessage,
    function_call,
    text_of_content,
)

_HEADER = {"type", "id", "timestamp", "cwd"}
_COMPACTION = "The conversation history before this point was compacted into the following summary:"


class _Usage(Struct):
    """Token counts that do not overlap."""

    input: Tokens = None
    output: Tokens = None
    cacheRead: Tokens = None  # noqa: N815  # pi's spelling, here and below
    cacheWrite: Tokens = None  # noqa: N815


class _Block(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b"{}")
    data: str | None = None
    mimeType: str | None = None  # noqa: N815


class _Message(Struct):
    role: str = ""
    content: Raw = Raw(b'""')
    model: str | None = None
    usage: _Usage | None = None
    timestamp: Any = None
    toolCallId: str | None = None  # noqa: N815
    isError: bool | None = None  # noqa: N815
    command: str | None = None
    output: str | None = None
    excludeFromContext: bool | None = None  # noqa: N815


class _Line(Struct):
    type: str = ""
    id: str | None = None
    parentId: str | None = None  # noqa: N815
    timestamp: Any = None
    parentSession: str | None = None  # noqa: N815
    branchedFrom: str | None = None  # noqa: N815
    modelId: str | None = None  # noqa: N815
    message: Raw = Raw(b"{}")
    content: Raw = Raw(b'""')
    summary: str | None = None
    tokensBefore: int | None = None  # noqa: N815


class Pi:
    """Reads one session per file, with the branches that were left."""

    name = "pi"
    order = 25

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the first line is pi's header."""
        return any(
            fields.keys() >= _HEADER and bytes(fields["type"]) == b'"session"'
            for fields in first_objects(head)[:1]
        )

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session, then its other branches as forks."""
        tree = _Tree(file)
        for line in file.lines():
            found = file.read(line.data, _Line, line.number)
            if found is None:
                continue
            with file.broken_at(line.number):
                tree.add(found, line.number)
        yield from tree.recordings()


class _Tree:
    """One session so far."""

    def __init__(self, file: RecordedFile) -> None:
        self._file = file
        self._session = ChatSession(file)
        self._id, self._parent, self._model = "", "", ""
        self._started_at: float | None = None
        self._lengths: dict[str, int] = {}
        """How many items the branch has that ends with a line."""
        self._last = ""

    def add(self, line: _Line, where: int) -> None:
        if line.type == "session":
            self._id, self._model = line.id or "", line.modelId or ""
            self._parent = Path(line.parentSession or line.branchedFrom or "").stem.rpartition("_")[2]
            self._started_at = seconds(line.timestamp)
            return
        # Files of version 1 have neither ids nor branches.
        # A parent that is not known was on a line that could not be read: the branch goes on.
        is_known = not line.parentId or line.parentId in self._lengths
        if line.id and line.parentId != (self._last or None) and is_known:
            self._session.rewind(self._lengths.get(line.parentId or "", 0))
        self._take(line, where)
        if line.id:
            self._last = line.id
            self._lengths[line.id] = len(self._session.items)

    def recordings(self) -> Iterator[Recording]:
        yield from self._session.recordings(
            id=self._id or self._file.path.stem,
            agent=Pi.name,
            parent=self._parent,
            relation="fork" if self._parent else "",
            model=self._model,
            started_at=self._started_at,
        )

    def _take(self, line: _Line, where: int) -> None:
        at = seconds(line.timestamp)
        match line.type:
            case "message":
                self._message(read_json(bytes(line.message), _Message), line.id or "", where, at)
            case "model_change":
                self._model = line.modelId or self._model
            case "compaction":
                self._session.items.append(AgentCompaction(at=at, before=line.tokensBefore))
                self._say(f"{_COMPACTION}\n\n{line.summary or ''}", where, at, "compact_summary")
            case "branch_summary" if line.summary:
                self._say(line.summary, where, at, "meta")
            case "custom_message":
                self._say(_chat_content(line.content), where, at, "meta")
            case _:
                pass

    def _message(self, message: _Message, id: str, where: int, at: float | None) -> None:
        at = at or seconds(message.timestamp)
        match message.role:
            case "user":
                self._say(_chat_content(message.content), where, at, "")
            case "assistant":
                self._session.items.append(self._answer(message, id, where, at))
            case "toolResult" if message.toolCallId:
                result = GatheredResult(
                    content=_chat_content(message.content),
                    where=where,
                    at=at,
                    is_error=message.isError is True,
                )
                self._session.result(message.toolCallId, result)
            case "bashExecution" if not message.excludeFromContext:
                self._say(f"Ran `{message.command or ''}`\n{message.output or ''}", where, at, "meta")
            case _:
                pass

    def _answer(self, message: _Message, id: str, where: int, at: float | None) -> GatheredAnswer:
        self._model = message.model or self._model
        blocks = _blocks(message.content)
        calls = [block for block in blocks if block.type == "toolCall"]
        return GatheredAnswer(
            where=where,
            at=at,
            key=next((call.id for call in calls if call.id), id),
            model=self._model,
            texts=[block.text for block in blocks if block.text],
            thoughts=[block.thinking for block in blocks if block.thinking],
            calls=[function_call(call.id or "", call.name or "", call.arguments) for call in calls],
            usage=_usage(message.usage),
        )

    def _say(self, content: object, where: int, at: float | None, kind: str) -> None:
        fields: ChatFields = {"role": "user", "content": content}
        self._session.items.append(InputMessage(fields=fields, where=where, at=at, kind=kind))


def _usage(told: _Usage | None) -> Usage | None:
    """Return the usage of an answer; None if nothing was counted, as in answers that failed."""
    if told is None:
        return None
    usage = Usage(
        uncached=told.input or 0,
        cache_read=told.cacheRead or 0,
        cache_write=told.cacheWrite or 0,
        output=told.output or 0,
    )
    return usage if usage.prompt else None


def _blocks(content: Raw) -> list[_Block]:
    raw = bytes(content)
    if raw[:1] == b"[":
        return read_json(raw, list[_Block])
    return [_Block(type="text", text=text_of_content(content))]


def _chat_content(content: Raw) -> object:
    """Return content as a chat message has it: text, or parts if there are images."""
    blocks = _blocks(content)
    if not any(block.type == "image" and block.data for block in blocks):
        return "\n".join(block.text for block in blocks if block.text)
    return [
        {
            "type": "image_url",
            "image_url": {"url": f"data:{block.mimeType or 'image/png'};base64,{block.data}"},
        }
        if block.data
        else {"type": "text", "text": block.text}
        for block in blocks
        if block.data or block.text
    ]


FORMATS = (Pi(),)
FOLDERS = (LogFolder(agent="pi", variable="PI_CODING_AGENT_DIR", home=".pi/agent", inside="sessions"),)
