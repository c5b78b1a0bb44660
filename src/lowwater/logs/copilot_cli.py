"""Reads Copilot CLI's sessions: streams of events, with token counts only for the session as a whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_json, write_json
from lowwater.logs.files import LogFolder, RecordedFile, first_objects, seconds
from lowwater.logs.recording import Recording
from lowwater.logs.recording_builder import (
    AgentCompaction,
    ChatSession,
    GatheredAnswer,
    GatheredResult,
    InputMessage,
    function_call,
    text_of_content,
    usage_with_cached,
)

# Token counts


class _Requests(Struct):
    count: int | None = None


class ModelUsage(Struct):
    """Token counts; the input includes cache reads and writes."""

    inputTokens: Tokens = None  # noqa: N815  # Copilot's spelling, here and below
    outputTokens: Tokens = None  # noqa: N815
    cacheReadTokens: Tokens = None  # noqa: N815
    cacheWriteTokens: Tokens = None  # noqa: N815


class CopilotMetrics(Struct):
    """The sum of one model's calls."""

    requests: _Requests | None = None
    usage: ModelUsage | None = None

    @property
    def is_one_call(self) -> bool:
        """Whether they are the counts of a single call."""
        return self.requests is not None and self.requests.count == 1


class CompactionUsage(ModelUsage):
    """The usage of a compaction, with the field names of older and newer versions."""

    input: Tokens = None
    output: Tokens = None
    cachedInput: Tokens = None  # noqa: N815


def usage_of(metrics: CopilotMetrics) -> Usage | None:
    """Return the counts in parts that do not overlap; None if there are none."""
    used = metrics.usage
    if used is None or not used.inputTokens:
        return None
    return usage_with_cached(
        used.inputTokens,
        read=used.cacheReadTokens,
        written=used.cacheWriteTokens,
        output=used.outputTokens,
    )


def spent(used: CompactionUsage) -> Usage:
    """Return the usage of a compaction in parts that do not overlap."""
    return usage_with_cached(
        used.inputTokens or used.input,
        read=used.cacheReadTokens or used.cachedInput,
        written=used.cacheWriteTokens,
        output=used.outputTokens or used.output,
    )


# Events

_KNOWN = frozenset(
    {
        "session.start",
        "session.model_change",
        "session.shutdown",
        "session.snapshot_rewind",
        "session.compaction_complete",
        "system.message",
        "system.notification",
        "user.message",
        "assistant.message",
        "tool.execution_complete",
    }
)
"""Events that are part of the conversation; others are ignored, whatever they contain."""


class _Event(Struct):
    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    agentId: str | None = None  # noqa: N815  # Copilot's spelling, here and below
    data: Raw = Raw(b"{}")


class _Request(Struct):
    toolCallId: str  # noqa: N815
    name: str = ""
    arguments: Raw = Raw(b"{}")


class _Failure(Struct):
    message: str | None = None


class _Data(Struct):
    """The data of an event; each type has some of these fields."""

    sessionId: str | None = None  # noqa: N815
    startTime: Any = None  # noqa: N815
    selectedModel: str | None = None  # noqa: N815
    newModel: str | None = None  # noqa: N815
    content: str | None = None
    transformedContent: str | None = None  # noqa: N815
    source: str | None = None
    parentToolCallId: str | None = None  # noqa: N815
    messageId: str | None = None  # noqa: N815
    apiCallId: str | None = None  # noqa: N815
    model: str | None = None
    reasoningText: str | None = None  # noqa: N815
    toolRequests: list[_Request] | None = None  # noqa: N815
    toolCallId: str | None = None  # noqa: N815
    success: bool | None = None
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")
    preCompactionTokens: int | None = None  # noqa: N815
    trigger: str | None = None
    summaryContent: str | None = None  # noqa: N815
    compactionTokensUsed: CompactionUsage | None = None  # noqa: N815
    upToEventId: str | None = None  # noqa: N815
    modelMetrics: dict[str, CopilotMetrics] | None = None  # noqa: N815


class _Content(Struct):
    content: str | None = None


class CopilotCli:
    """Reads one session per file; its sub-agents are in the same stream."""

    name = "copilot-cli"
    order = 30

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether a line has the envelope of events, with a dot in its type."""
        return any(
            {"type", "data", "id", "timestamp", "parentId"} <= line.keys() and b"." in bytes(line["type"])
            for line in first_objects(head)
        )

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session and its sub-agents; if a file has several sessions, each when the next begins."""
        stream = _Stream(file)
        for line in file.lines():
            event = file.read(line.data, _Event, line.number)
            if event is None or event.type not in _KNOWN:
                continue
            with file.broken_at(line.number):
                data = read_json(bytes(event.data), _Data)
                if stream.ends_before(event, data):
                    yield from stream.recordings()
                    stream = _Stream(file)
                stream.add(event, data, line.number)
        yield from stream.recordings()


class _Stream:
    """One session so far; its threads are its sub-agents by their ids, and itself under an empty id."""

    def __init__(self, file: RecordedFile) -> None:
        self._file = file
        self._id = ""
        self._model = ""
        self._system = ""
        self._started_at: float | None = None
        self._threads: dict[str, ChatSession] = {"": ChatSession(file)}
        self._metrics: dict[str, CopilotMetrics] = {}
        self._compacting: list[CompactionUsage] = []
        self._places: dict[str, int] = {}

    def ends_before(self, event: _Event, data: _Data) -> bool:
        """Return whether another session begins here."""
        return event.type == "session.start" and bool(self._id) and data.sessionId != self._id

    def add(self, event: _Event, data: _Data, number: int) -> None:
        at = seconds(event.timestamp)
        thread = event.agentId or data.parentToolCallId or ""
        session = self._threads.setdefault(thread, ChatSession(self._file))
        if event.id and not thread:
            self._places[event.id] = len(session.items)
        match event.type:
            case "session.start":
                self._id = data.sessionId or ""
                self._model = data.selectedModel or ""
                self._started_at = seconds(data.startTime) or at
            case "session.model_change":
                self._model = data.newModel or self._model
            case "session.shutdown":
                self._metrics |= data.modelMetrics or {}
            case "session.snapshot_rewind" if data.upToEventId in self._places:
                session.rewind(self._places[data.upToEventId])
            case "session.compaction_complete" if data.success is not False:
                self._compacted(session, data, number, at)
            case "system.message" if not thread:
                self._system = self._system or data.content or ""
            case "user.message" | "system.notification":
                text = data.transformedContent or data.content or ""
                is_user = event.type == "user.message" and data.source in (None, "user")
                session.items.append(_said(text, number, at, "" if is_user else "meta"))
            case "assistant.message":
                self._answer(session, data, number, at)
            case "tool.execution_complete" if data.toolCallId:
                _result(session, data, number, at)
            case _:
                pass

    def recordings(self) -> Iterator[Recording]:
        self._count()
        id = self._id or self._file.path.stem
        for thread, session in self._threads.items():
            yield from session.recordings(
                id=f"{id}/{thread}" if thread else id,
                agent=CopilotCli.name,
                parent=id if thread else "",
                relation="subagent" if thread else "",
                model=self._model,
                system=write_json(self._system) if self._system and not thread else b"",
                started_at=None if thread else self._started_at,
            )

    def _answer(self, session: ChatSession, data: _Data, number: int, at: float | None) -> None:
        key = data.apiCallId or data.messageId or ""
        last = session.items[-1] if session.items else None
        if isinstance(last, GatheredAnswer) and key and last.key == key:
            answer = last
        else:
            answer = GatheredAnswer(where=number, at=at, key=key, model=data.model or self._model)
            answer.others += [spent(used) for used in self._compacting]
            self._compacting = []
            session.items.append(answer)
        answer.texts += [data.content] if data.content else []
        answer.thoughts += [data.reasoningText] if data.reasoningText else []
        answer.calls += [
            function_call(request.toolCallId, request.name, request.arguments)
            for request in data.toolRequests or []
        ]

    def _compacted(self, session: ChatSession, data: _Data, number: int, at: float | None) -> None:
        session.items.append(
            AgentCompaction(at=at, trigger=data.trigger or "", before=data.preCompactionTokens)
        )
        if data.compactionTokensUsed is not None:
            self._compacting.append(data.compactionTokensUsed)
        if data.summaryContent:
            session.items.append(_said(data.summaryContent, number, at, "compact_summary"))

    def _count(self) -> None:
        """Give the session's counts to its call if there is only one; they cannot be divided among several."""
        answers = [
            item
            for session in self._threads.values()
            for item in session.items
            if isinstance(item, GatheredAnswer)
        ]
        metrics = list(self._metrics.values())
        if len(answers) == 1 and len(metrics) == 1 and metrics[0].is_one_call:
            answers[0].usage = usage_of(metrics[0])


def _said(text: str, number: int, at: float | None, kind: str) -> InputMessage:
    return InputMessage(fields={"role": "user", "content": text}, where=number, at=at, kind=kind)


def _result(session: ChatSession, data: _Data, number: int, at: float | None) -> None:
    text = ""
    if bytes(data.result)[:1] == b"{":
        text = read_json(bytes(data.result), _Content).content or ""
    elif bytes(data.error)[:1] == b"{":
        text = read_json(bytes(data.error), _Failure).message or ""
    elif bytes(data.result):
        text = text_of_content(data.result)
    result = GatheredResult(content=text, where=number, at=at, is_error=data.success is False)
    session.result(data.toolCallId or "", result)


FORMATS = (CopilotCli(),)
FOLDERS = tuple(
    LogFolder(agent="Copilot CLI", variable="COPILOT_HOME", home=".copilot", inside=name)
    for name in ("session-state", "history-session-state")
)
