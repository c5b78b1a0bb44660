"""Reads OpenCode's sessions, from its database, its files or an export."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.strict_json import write_json
from lowwater.errors import BadInput
from lowwater.logs.files import (
    Database,
    LogFolder,
    RecordedFile,
    fields_in,
    given_text,
    has_columns,
    json_items,
    open_database,
    seconds,
    without_lone_surrogates,
)
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import between_tags, build_recording, decode_chat_fields

_AGENT = "opencode"


# What OpenCode writes

TokenCount = int | float | None


class TimeSpan(Struct):
    """When something began and ended, in milliseconds."""

    created: Any = None
    completed: Any = None
    start: Any = None
    end: Any = None
    compacted: Any = None
    """When the output of a tool was cleared."""


class _Cache(Struct):
    read: TokenCount = None
    write: TokenCount = None


class OpencodeTokens(Struct):
    """The tokens of a call; `input` excludes what was read from the cache or written to it."""

    input: TokenCount = None
    output: TokenCount = None
    reasoning: TokenCount = None
    total: TokenCount = None
    cache: _Cache | None = None

    @property
    def usage(self) -> Usage | None:
        """The usage in parts that do not overlap; None if there was no prompt.

        Versions that record a total count reasoning beside the output; older ones count it as part of the output.
        """
        cache = self.cache or _Cache()
        figures = (self.input, cache.read, cache.write, self.output)
        uncached, read, written, output = map(_count, figures)
        beyond = _count(self.total) - uncached - read - written
        output = max(output, min(beyond, output + _count(self.reasoning)))
        usage = Usage(uncached=uncached, cache_read=read, cache_write=written, output=output)
        return usage if usage.prompt else None


class SessionInfo(Struct):
    """A session without its messages."""

    id: str = ""
    parent: str | None = field(default=None, name="parentID")
    time: TimeSpan | None = None
    directory: str | None = None


class MessageInfo(Struct):
    """A message without its parts."""

    role: str
    id: str = ""
    model: str | None = field(default=None, name="modelID")
    parent: str | None = field(default=None, name="parentID")
    time: TimeSpan | None = None
    tokens: OpencodeTokens | None = None
    summary: Any = None
    error: Any = None
    system: Any = None

    @property
    def begun(self) -> float | None:
        """When it began; for an answer, when it was asked for."""
        return seconds(self.time.created) if self.time else None

    @property
    def is_summary(self) -> bool:
        """Whether this is a finished answer that replaces everything before it (a summary)."""
        ended = self.time is not None and self.time.completed is not None
        return self.role == "assistant" and self.summary is True and self.error is None and ended


class File(Struct):
    """An attachment, mostly a picture as a data URL."""

    mime: str = ""
    url: str = ""
    filename: str | None = None


class ToolState(Struct):
    """The state of a tool call, with its result."""

    status: str = ""
    input: Raw = Raw(b"{}")
    output: str | None = None
    error: str | None = None
    time: TimeSpan | None = None
    attachments: list[File] | None = None


class OpencodePart(Struct):
    """One part of a message; each type has only some of these fields."""

    type: str
    text: str = ""
    synthetic: bool | None = None
    ignored: bool | None = None
    time: TimeSpan | None = None
    mime: str = ""
    url: str = ""
    filename: str | None = None
    call: str = field(default="", name="callID")
    tool: str = ""
    state: ToolState | None = None
    tokens: OpencodeTokens | None = None
    auto: bool | None = None


class OpencodeMessage(Struct, frozen=True, kw_only=True):
    """A message with its parts, in order, as they were read."""

    where: str
    info: MessageInfo
    parts: tuple[OpencodePart, ...]


def _count(figure: TokenCount) -> int:
    return int(figure) if figure is not None and 0 <= figure < 1 << 53 else 0


# Messages of a session

_ASKS_FOR_SUMMARY, _RAN_A_TOOL = "What did we do so far?", "The following tool was executed by the user"
_INTERRUPTED = "[Tool execution was interrupted]"
_AT_ONCE = 5.0
"""Outputs cleared within this many seconds belong to one prune."""
_NOT_SENT = ("text/plain", "application/x-directory")
"""Files of these types are also included as text next to their part."""


class OpencodeConversation:
    """Turns the messages of a session into recorded messages and compactions."""

    def __init__(self, file: RecordedFile, told: Sequence[OpencodeMessage]) -> None:
        self.messages: list[RecordedMessage] = []
        self.compactions: list[NativeCompaction] = []
        self._file = file
        self._summed_up = {one.info.parent for one in told if one.info.is_summary}
        self._asked = {one.info.id for one in told if any(part.type == "compaction" for part in one.parts)}
        for one in told:
            if one.info.role == "user":
                self._ask(one)
            elif one.info.role == "assistant":
                self._answer(one)
            else:
                file.broken(one.where, "the role is neither user nor assistant")
        self.compactions += list(self._prunes(told))
        self.compactions.sort(key=lambda compaction: compaction.index)

    def _ask(self, told: OpencodeMessage) -> None:
        request = next((part for part in told.parts if part.type == "compaction"), None)
        texts = [part for part in told.parts if part.type == "text" and not part.ignored]
        kind = "meta" if texts and all(part.synthetic for part in texts) else ""
        if request is not None:
            kind = "synthetic"
            if told.info.id in self._summed_up:
                kind = "compact_summary"
                self._compacted(told.info, trigger="manual" if request.auto is False else "auto")
        blocks = [block for part in told.parts if (block := _block(part, marked=not kind)) is not None]
        if blocks:
            self._add({"role": "user", "content": blocks}, told.where, at=told.info.begun, kind=kind)

    def _answer(self, told: OpencodeMessage) -> None:
        info = told.info
        if not _is_sent(told):
            return
        if info.is_summary and info.parent not in self._asked:
            self._compacted(info, trigger="")  # before 1.0 there was only the summary, without a request
        steps = list(_steps(told.parts))
        asked_at = info.begun
        for step in steps:
            asked_at = self._step(step, told, asked_at, alone=len(steps) == 1)

    def _step(
        self, step: Sequence[OpencodePart], told: OpencodeMessage, asked_at: float | None, *, alone: bool
    ) -> float | None:
        """Add the answer of one call and the results of its tools; return when the last of them came."""
        info = told.info
        finished = next((part.tokens for part in step if part.type == "step-finish" and part.tokens), None)
        tokens = finished or (info.tokens if alone else None)
        call = RecordedCall(model=info.model or "", usage=tokens.usage if tokens else None, asked_at=asked_at)
        kind = "compact_summary" if info.is_summary else ""
        at = _answered(step) or (seconds(info.time.completed) if info.time else None) or info.begun
        if not self._add(_answer_of(step), told.where, at=at, kind=kind, call=call):
            return asked_at
        ended = [at]
        for part in step:
            if part.type == "tool":
                state = part.state or ToolState()
                ran = seconds(state.time.end) if state.time else None
                is_done = state.status in ("completed", "error")
                result = {"role": "tool", "tool_call_id": part.call, "name": part.tool, **_result(state)}
                self._add(result, told.where, at=ran or at, kind=kind if is_done else "synthetic")
                ended.append(ran)
        return max((time for time in ended if time is not None), default=asked_at)

    def _add(
        self, shaped: object, where: str, *, at: float | None, kind: str, call: RecordedCall | None = None
    ) -> bool:
        message = decode_chat_fields(shaped, file=self._file, where=where)
        if message is not None:
            self.messages.append(RecordedMessage(message=message, at=at, call=call, kind=kind))
        return message is not None

    def _prunes(self, told: Sequence[OpencodeMessage]) -> Iterator[NativeCompaction]:
        """Yield the prunes; results that were cleared at about the same time are one prune."""
        cleared = sorted(
            (at, part.call)
            for one in told
            for part in one.parts
            if part.state and part.state.time and (at := seconds(part.state.time.compacted)) is not None
        )
        ended: float | None = None
        calls: list[str] = []
        for at, call in cleared:
            if ended is not None and at - ended > _AT_ONCE:
                yield self._prune(ended, calls)
                calls = []
            ended = at
            calls.append(call)
        if ended is not None:
            yield self._prune(ended, calls)

    def _prune(self, at: float, calls: Sequence[str]) -> NativeCompaction:
        later = (index for index, one in enumerate(self.messages) if one.at is not None and one.at > at)
        index = next(later, len(self.messages))
        usages = (one.call.usage for one in reversed(self.messages[:index]) if one.call and one.call.usage)
        last = next(usages, None)
        return NativeCompaction(
            index=index,
            kind="prune",
            at=at,
            trigger="auto",
            before=last.prompt if last else None,
            cleared=tuple(calls),
        )

    def _compacted(self, info: MessageInfo, *, trigger: str) -> None:
        calls = (one.call.usage for one in reversed(self.messages) if one.call and one.call.usage)
        last = next(calls, None)
        self.compactions.append(
            NativeCompaction(
                index=len(self.messages), at=info.begun, trigger=trigger, before=last.prompt if last else None
            )
        )


def _steps(parts: Sequence[OpencodePart]) -> Iterator[list[OpencodePart]]:
    """Yield the parts of each call; before 1.0 one message held all calls of an answer."""
    step: list[OpencodePart] = []
    for part in parts:
        if part.type == "step-start" and _has_content(step):
            yield step
            step = []
        step.append(part)
    if _has_content(step):
        yield step


def _has_content(step: Sequence[OpencodePart]) -> bool:
    return any(part.type in ("text", "reasoning", "tool") for part in step)


def _is_sent(told: OpencodeMessage) -> bool:
    """Return whether later requests contain an answer: not one that failed, but one that the user stopped."""
    error = told.info.error
    if error is None:
        return True
    stopped = isinstance(error, dict) and error.get("name") == "MessageAbortedError"
    return stopped and any(part.type in ("text", "tool") for part in told.parts)


def _answer_of(step: Sequence[OpencodePart]) -> dict[str, object]:
    texts = [{"type": "text", "text": part.text} for part in step if part.type == "text" and part.text]
    thoughts = [part.text for part in step if part.type == "reasoning" and part.text]
    calls = [_call(part) for part in step if part.type == "tool"]
    answer: dict[str, object] = {"role": "assistant", "content": texts or None}
    if thoughts:
        answer["reasoning_content"] = "\n".join(thoughts)
    if calls:
        answer["tool_calls"] = calls
    return answer


def _call(part: OpencodePart) -> dict[str, object]:
    arguments = bytes((part.state or ToolState()).input).decode(errors="replace")
    return {"id": part.call, "type": "function", "function": {"name": part.tool, "arguments": arguments}}


def _result(state: ToolState) -> dict[str, object]:
    if state.status == "completed":
        pictures = [block for file in state.attachments or () if (block := _file(file)) is not None]
        return {"content": [{"type": "text", "text": state.output or ""}, *pictures]}
    return {"content": (state.error if state.status == "error" else None) or _INTERRUPTED, "is_error": True}


def _block(part: OpencodePart, *, marked: bool) -> dict[str, object] | None:
    """Return a content block of a user message; with `marked`, text that OpenCode added itself is put into tags."""
    match part.type:
        case "text" if part.synthetic and marked and part.text and not part.ignored:
            return {"type": "text", "text": between_tags(part.text)}
        case "text":
            return {"type": "text", "text": part.text} if part.text and not part.ignored else None
        case "file":
            return _file(File(mime=part.mime, url=part.url, filename=part.filename))
        case "compaction":
            return {"type": "text", "text": _ASKS_FOR_SUMMARY}
        case "subtask":
            return {"type": "text", "text": _RAN_A_TOOL}
        case _:
            return None


def _file(file: File) -> dict[str, object] | None:
    if not file.url or file.mime in _NOT_SENT:
        return None
    if file.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": file.url}}
    return {"type": "file", "file": {"filename": file.filename or "", "file_data": file.url}}


def _answered(step: Sequence[OpencodePart]) -> float | None:
    """Return when the answer was complete: at the end of its last text, or the start of its last tool."""
    told = []
    for part in step:
        if part.type in ("text", "reasoning") and part.time is not None:
            told.append(seconds(part.time.end))
        elif part.type == "tool" and part.state is not None and part.state.time is not None:
            told.append(seconds(part.state.time.start))
    return max((time for time in told if time is not None), default=None)


# The formats: files and a database


class OpenCodeFiles:
    """A session's file, with its messages and parts in the folders beside it, or an exported session."""

    name = _AGENT
    order = 90

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the ids are those of OpenCode."""
        fields = fields_in(head)
        return _is_session(fields) or _is_piece(fields) or _is_session(fields_in(fields.get("info", b"")))

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session; a file with a message or a part raises BadInput, because its session's file reads it."""
        data, name = file.whole(), file.path.name.partition(".")[0]
        fields = fields_in(data)
        if _is_piece(fields):
            raise BadInput("a message or part, which is read with its session")
        if "messages" in fields:
            info = file.read(fields.get("info", b""), SessionInfo, "info") or SessionInfo()
            told = _exported(fields["messages"], file)
            yield from _recording(replace(info, id=info.id or name), told, file)
        else:
            info = file.read(data, SessionInfo, "session") or SessionInfo()
            yield from _recording(replace(info, id=name), _beside(file), file)


class OpenCodeDatabase:
    """All sessions of a database, one in memory at a time."""

    name = _AGENT
    order = 80

    def recognises(self, head: bytes, path: Path) -> bool:
        """Return whether the tables are those of OpenCode."""
        return has_columns(head, path, session="parent_id", message="data", part="message_id")

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield each session, oldest first."""
        with open_database(file.path) as database:
            sessions = list(database.rows("SELECT * FROM session ORDER BY id"))
            for row in sessions:
                info = SessionInfo(
                    id=str(row["id"]),
                    parent=given_text(row["parent_id"]),
                    directory=given_text(row["directory"]) if "directory" in row.keys() else None,  # noqa: SIM118 - a row of a database
                )
                for recording in _recording(info, _stored(info.id, database, file), file):
                    yield replace(recording, started_at=seconds(row["time_created"]))


def _recording(info: SessionInfo, told: Sequence[OpencodeMessage], file: RecordedFile) -> Iterator[Recording]:
    """Yield the session if it has messages and was not read before: the database also contains what was in files."""
    conversation = OpencodeConversation(file, told)
    place = str(file.path)
    if not conversation.messages or file.first_recorder(f"{_AGENT}:{info.id}", place) != place:
        return
    prompts = (one.info.system for one in told if isinstance(one.info.system, str) and one.info.system)
    prompt = next(prompts, "")
    yield build_recording(
        file,
        id=info.id,
        agent=_AGENT,
        messages=conversation.messages,
        compactions=conversation.compactions,
        system=write_json(prompt) if prompt else b"",
        started_at=seconds(info.time.created) if info.time else None,
        project=info.directory or "",
        parent=info.parent or "",
        relation="subagent" if info.parent else "",
    )


class _Raw(Struct, frozen=True):
    """One JSON object and where it was found."""

    where: str
    data: bytes


def _beside(file: RecordedFile) -> list[OpencodeMessage]:
    """Return the messages of a session from the folders beside its file."""
    session = file.path.name.partition(".")[0]
    for base in file.path.parents[:3]:
        if (base / "message" / session).is_dir():
            each = (
                _told(_contents(path), _parts_beside(base, session, path), file)
                for path in sorted((base / "message" / session).glob("*.json"))
            )
            return _in_order(each)
    return []


def _parts_beside(base: Path, session: str, message: Path) -> Iterator[_Raw]:
    """Yield the parts of a message; before version 0.6 they were one folder deeper."""
    name = message.name.partition(".")[0]
    for folder in (base / "part" / name, base / "part" / session / name):
        for path in sorted(folder.glob("*.json")):
            yield _contents(path)


def _contents(path: Path) -> _Raw:
    """Return the content of a file; a file that cannot be opened counts as empty, which is reported as broken."""
    try:
        data = path.read_bytes()
    except OSError:
        data = b""
    where = f"{path.parent.name}/{path.name}"
    return _Raw(where, without_lone_surrogates(data) if b"\\u" in data else data)


def _exported(messages: bytes, file: RecordedFile) -> list[OpencodeMessage]:
    each: list[OpencodeMessage | None] = []
    for at, item in enumerate(json_items(messages)):
        fields = fields_in(item)
        parts = [
            _Raw(f"messages[{at}].parts[{n}]", raw)
            for n, raw in enumerate(json_items(fields.get("parts", b"")))
        ]
        each.append(_told(_Raw(f"messages[{at}]", fields.get("info", b"")), parts, file))
    return _in_order(each)


def _stored(session: str, database: Database, file: RecordedFile) -> list[OpencodeMessage]:
    """Return the messages of a session from a database, up to the first damage."""
    parts: dict[str, list[_Raw]] = {}
    each: list[OpencodeMessage | None] = []
    try:
        found = database.rows(
            "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id", session
        )
        for message, rows in groupby(found, key=lambda row: str(row["message_id"])):
            parts[message] = [_Raw(f"part {row['id']}", _bytes(row["data"])) for row in rows]
        for row in database.rows("SELECT id, data FROM message WHERE session_id = ? ORDER BY id", session):
            id = str(row["id"])
            told = _told(_Raw(f"message {id}", _bytes(row["data"])), parts.get(id, []), file)
            each.append(told and replace(told, info=replace(told.info, id=id)))
    except BadInput as error:
        file.broken(f"session {session}", str(error))
    return _in_order(each)


def _told(raw: _Raw, parts: Iterable[_Raw], file: RecordedFile) -> OpencodeMessage | None:
    info = file.read(raw.data, MessageInfo, raw.where)
    if info is None:
        return None
    read = (file.read(part.data, OpencodePart, part.where) for part in parts)
    return OpencodeMessage(where=raw.where, info=info, parts=tuple(part for part in read if part is not None))


def _in_order(each: Iterable[OpencodeMessage | None]) -> list[OpencodeMessage]:
    """Return the messages in the order in which they began; ids grow with time, too."""
    return sorted(
        (one for one in each if one is not None), key=lambda one: (one.info.begun or 0.0, one.info.id)
    )


def _is_session(fields: dict[str, bytes]) -> bool:
    return fields.get("id", b"").startswith(b'"ses') and {"time", "version"} <= fields.keys()


def _is_piece(fields: dict[str, bytes]) -> bool:
    is_message = fields.get("id", b"").startswith(b'"msg') and {"role", "sessionID"} <= fields.keys()
    return is_message or (
        fields.get("id", b"").startswith(b'"prt') and {"type", "messageID"} <= fields.keys()
    )


def _bytes(told: object) -> bytes:
    text = told.encode(errors="replace") if isinstance(told, str) else b""
    return without_lone_surrogates(text) if b"\\u" in text else text


FORMATS = (OpenCodeDatabase(), OpenCodeFiles())
FOLDERS = (
    LogFolder(agent="OpenCode", variable="XDG_DATA_HOME", home=".local/share", inside="opencode/opencode.db"),
    LogFolder(agent="OpenCode", variable="XDG_DATA_HOME", home=".local/share", inside="opencode/storage"),
)
