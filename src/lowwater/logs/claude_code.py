"""Reads Claude Code's logs: JSON Lines with one line per content block, for sessions and their sub-agents.

Every line names its parent, so a file is a tree: `parents_first` orders the lines, `branches` finds the conversations in the
tree, and `branch_messages` turns each into messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from lowwater.core.formats.anthropic import decode_message
from lowwater.core.formats.usage import UsageReport, decode_anthropic_report
from lowwater.core.messages import Message, ToolResult
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput, MalformedMessage
from lowwater.logs.files import FileLine, LogFolder, RecordedFile, SharedCalls, first_objects, seconds
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import STUB, build_recording, text_of_content

EntryKind = Literal["answer", "user", "attachment", "boundary", "prune", "link"]
SYNTHETIC = "<synthetic>"
UNNAMED = "?"
"""A sub-agent whose lines do not name it."""


# Lines


class LogEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One line without its content; a `link` is a line without a message that is the parent of others."""

    kind: EntryKind
    at: int
    number: int
    uuid: str
    parent: str
    session: str
    thread: str
    """The sub-agent that it belongs to; empty for the session itself."""
    answer: str = ""
    """The id of the answer of which it is a block."""
    request: str = ""
    real: bool = False
    """Whether it comes from a call to a model."""
    asks: tuple[str, ...] = ()
    """The ids of the tool calls in it."""
    results: tuple[str, ...] = ()
    """The ids of the tool calls whose results it has."""


class LineContent(Struct, frozen=True, kw_only=True):
    """The content of one line."""

    content: str | list[Raw] = ""
    usage: Raw = Raw(b"")
    model: str | None = None
    timestamp: str = ""
    is_meta: bool = False
    is_summary: bool = False
    is_error: bool = False
    attachment: Raw = Raw(b"")
    trigger: str = ""
    before: int | None = None
    removed: int | None = None
    cleared: tuple[str, ...] = ()
    version: str = ""


class _Line(Struct):
    type: str = ""
    uuid: str | None = None
    parentUuid: str | None = None  # noqa: N815  # Claude Code's spelling, here and below
    logicalParentUuid: str | None = None  # noqa: N815
    sessionId: str | None = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    isSidechain: bool | None = None  # noqa: N815
    requestId: str | None = None  # noqa: N815
    subtype: str | None = None
    timestamp: str | None = None
    isMeta: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    promptSource: Any = None  # noqa: N815
    message: Raw = Raw(b"")
    attachment: Raw = Raw(b"")
    compactMetadata: Raw = Raw(b"")  # noqa: N815
    microcompactMetadata: Raw = Raw(b"")  # noqa: N815
    data: Raw = Raw(b"")
    version: str | None = None


class _Block(Struct):
    type: str = ""
    id: str | None = None
    tool_use_id: str | None = None


class _Outline(Struct):
    content: str | list[_Block]
    id: str | None = None
    model: str | None = None


class _Message(Struct):
    content: str | list[Raw]
    model: str | None = None
    usage: Raw = Raw(b"")


class _Metadata(Struct):
    trigger: str | None = None
    preTokens: int | None = None  # noqa: N815
    tokensSaved: int | None = None  # noqa: N815
    compactedToolIds: tuple[str, ...] | None = None  # noqa: N815


class _Echo(Struct):
    """A sub-agent's line, repeated in the log of the session that started it."""

    type: str = ""
    agentId: str | None = None  # noqa: N815
    message: Raw = Raw(b"{}")


def entries_of(file: RecordedFile) -> Iterator[LogEntry]:
    """Yield the lines of the tree, in the order of the file; broken lines are reported to the file."""
    for line in file.lines():
        entry = None
        with file.broken_at(line.number):
            entry = _entry(line)
        if entry is not None:
            yield entry


def line_content(file: RecordedFile, entry: LogEntry) -> LineContent:
    """Return the content of a line, or raise BadInput."""
    line = read_json(file.line_at(entry.at), _Line)
    if _is_echo(line):
        line = read_json(bytes(read_json(bytes(line.data), _Echo).message), _Line)
    if entry.kind in ("boundary", "prune"):
        raw = line.compactMetadata if entry.kind == "boundary" else line.microcompactMetadata
        metadata = read_json(bytes(raw) or b"{}", _Metadata)
        return LineContent(
            timestamp=line.timestamp or "",
            trigger=metadata.trigger or "",
            before=metadata.preTokens,
            removed=metadata.tokensSaved,
            cleared=metadata.compactedToolIds or (),
            version=line.version or "",
        )
    if entry.kind == "attachment":
        return LineContent(timestamp=line.timestamp or "", attachment=line.attachment)
    message = read_json(bytes(line.message), _Message)
    return LineContent(
        content=message.content,
        usage=message.usage,
        model=message.model,
        timestamp=line.timestamp or "",
        is_meta=bool(line.isMeta) or line.promptSource == "system",
        is_summary=bool(line.isCompactSummary),
        is_error=bool(line.isApiErrorMessage),
        version=line.version or "",
    )


def _entry(line: FileLine) -> LogEntry | None:
    outer = read_json(line.data, _Line)
    session, thread = outer.sessionId or "", ""
    if _is_echo(outer):
        echo = read_json(bytes(outer.data), _Echo)
        inner = read_json(bytes(echo.message), _Line)
        return _entry_of(line, inner, session=session, thread=echo.agentId or UNNAMED, parent="")
    if not outer.uuid:
        return None
    if outer.isSidechain:
        thread = outer.agentId or UNNAMED
    parent = outer.parentUuid or outer.logicalParentUuid or ""
    return _entry_of(line, outer, session=session, thread=thread, parent=parent)


def _entry_of(line: FileLine, content: _Line, *, session: str, thread: str, parent: str) -> LogEntry:
    kind = _kind(content)
    outline = _Outline(content="")
    if kind in ("answer", "user"):
        outline = read_json(bytes(content.message), _Outline)
    blocks = outline.content if isinstance(outline.content, list) else []
    uuid = content.uuid or f"line {line.number}"
    return LogEntry(
        kind=kind,
        at=line.at,
        number=line.number,
        uuid=uuid,
        parent=parent,
        session=session,
        thread=thread,
        answer=(outline.id or uuid) if kind == "answer" else "",
        request=content.requestId or "",
        real=kind == "answer" and outline.model != SYNTHETIC and not content.isApiErrorMessage,
        asks=tuple(block.id for block in blocks if block.type == "tool_use" and block.id),
        results=tuple(
            block.tool_use_id for block in blocks if block.type == "tool_result" and block.tool_use_id
        ),
    )


def _kind(line: _Line) -> EntryKind:
    match line.type:
        case "assistant":
            return "answer"
        case "user":
            return "user"
        case "attachment":
            return "attachment"
        case "system" if line.subtype == "compact_boundary":
            return "boundary"
        case "system" if line.subtype == "microcompact_boundary":
            return "prune"
        case _:
            return "link"


def _is_echo(line: _Line) -> bool:
    return line.type == "progress" and b'"agent_progress"' in bytes(line.data)


# Branches: the conversations in the tree


class BranchStep(Struct, kw_only=True):
    """A step of a conversation: an answer with its tool results, or one other line."""

    lines: list[LogEntry]
    parent: int | None
    results: list[LogEntry] = field(default_factory=list)

    @property
    def real(self) -> bool:
        """Whether it comes from a call to a model."""
        return self.lines[0].real


def parents_first(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Yield lines in the order of the file, but every line after its parent.

    Claude Code writes tools and streams concurrently: a result may come a line or two before its call.
    """
    lines = list(entries)
    to_come = {entry.uuid for entry in lines}
    waiting: dict[str, list[LogEntry]] = {}
    for entry in lines:
        if entry.parent != entry.uuid and entry.parent in to_come:
            waiting.setdefault(entry.parent, []).append(entry)
            continue
        ready = [entry]
        while ready:
            first = ready.pop()
            to_come.discard(first.uuid)
            yield first
            ready += reversed(waiting.pop(first.uuid, []))
    # Lines whose parents form a cycle keep the order of the file.
    yield from sorted((entry for held in waiting.values() for entry in held), key=lambda entry: entry.number)


def branches(file: RecordedFile, entries: Sequence[LogEntry]) -> Iterator[list[BranchStep]]:
    """Yield the conversations of one thread, each from first step to last: the newest, then the abandoned ones.

    A branch counts if it has a model call that no newer branch shares.
    """
    steps = _steps(file, entries)
    if not steps:
        return
    goes_on = [False] * len(steps)
    for at in range(len(steps) - 1, -1, -1):
        parent = steps[at].parent
        if parent is not None and (steps[at].real or goes_on[at]):
            goes_on[parent] = True
    ends = [at for at, step in enumerate(steps) if step.real and not goes_on[at]]
    newest = ends.pop() if ends else len(steps) - 1
    for end in [newest, *ends]:
        yield _path(steps, _newest_under(steps, end))


def _steps(file: RecordedFile, entries: Sequence[LogEntry]) -> list[BranchStep]:
    steps: list[BranchStep] = []
    home: dict[str, int | None] = {}
    answers: dict[tuple[str, str], int] = {}
    asked: dict[str, int] = {}
    for entry in entries:
        if entry.uuid in home:
            continue  # a duplicate line
        # A line whose parent is missing, or comes later, continues the previous step.
        last = len(steps) - 1 if steps else None
        strays = entry.parent != "" or entry.kind == "boundary"
        parent = home.get(entry.parent, last if strays else None)
        known = next((asked[call] for call in entry.results if call in asked), None)
        answer = (entry.answer, entry.request)
        own: int | None
        if entry.kind == "link":
            own = parent
        elif known is not None:
            own = known
            steps[own].results.append(entry)
        elif entry.results:
            own = parent
            file.broken(entry.number, "the result of a tool call that was not recorded")
        elif answer in answers:
            own = answers[answer]
            steps[own].lines.append(entry)
        else:
            own = len(steps)
            steps.append(BranchStep(lines=[entry], parent=parent))
        home[entry.uuid] = own
        if entry.kind == "answer" and own is not None:
            answers.setdefault(answer, own)
            asked |= dict.fromkeys(entry.asks, own)
    return steps


def _newest_under(steps: Sequence[BranchStep], end: int) -> int:
    """Return the newest step among `end` and its descendants, none of which called a model."""
    under = {end}
    for at in range(end + 1, len(steps)):
        if steps[at].parent in under:
            under.add(at)
    return max(under)


def _path(steps: Sequence[BranchStep], end: int) -> list[BranchStep]:
    path: list[BranchStep] = []
    at: int | None = end
    while at is not None:
        path.append(steps[at])
        at = steps[at].parent
    return path[::-1]


# Messages of a branch


class Branch(Struct, kw_only=True):
    """The messages and compactions of a branch so far."""

    sharing: SharedCalls
    messages: list[RecordedMessage] = field(default_factory=list)
    compactions: list[NativeCompaction] = field(default_factory=list)


class _MessageLine(Struct, frozen=True, kw_only=True):
    entry: LogEntry
    content: LineContent
    blocks: list[Raw]


class _Joined(Struct, frozen=True, kw_only=True):
    """Several lines joined to one message, without broken lines."""

    lines: list[_MessageLine]
    message: Message

    @property
    def blocks(self) -> list[Raw]:
        return [block for line in self.lines for block in line.blocks]


class _Attachment(Struct):
    type: str = ""
    prompt: Raw = Raw(b"")
    content: Raw = Raw(b"")
    commandMode: Any = None  # noqa: N815  # Claude Code's spelling

    @property
    def is_of_the_user(self) -> bool:
        """Whether the user typed it while the model was busy; the same queue also holds notifications."""
        return self.type == "queued_command" and self.commandMode != "task-notification"

    def blocks(self, whole: Raw) -> list[Raw]:
        """Return its content as blocks: its prompt or text, else its whole JSON as text."""
        if self.is_of_the_user and bytes(self.prompt)[:1] == b"[":
            return read_json(bytes(self.prompt), list[Raw])
        texts = [words for words in (self.prompt, self.content) if bytes(words)[:1] == b'"']
        return _blocks(text_of_content(texts[0] if texts else whole))


def branch_messages(file: RecordedFile, path: Sequence[BranchStep], session: str) -> Branch:
    """Return the messages of a branch, recorded under the name `session`."""
    branch = Branch(sharing=SharedCalls(session=session))
    for step in path:
        match step.lines[0].kind:
            case "answer":
                _answer(file, step, branch)
            case "boundary" | "prune":
                _boundary(file, step.lines[0], branch)
            case "attachment":
                _attachment(file, step.lines[0], branch)
            case _:
                _user(file, step.lines[0], branch)
    return branch


def _answer(file: RecordedFile, step: BranchStep, branch: Branch) -> None:
    answer = _join(file, step.lines, "assistant")
    if not answer.lines:
        return
    first = answer.lines[0].content
    call = _call(file, step, answer.lines, branch.sharing) if step.real else None
    synthetic = first.is_error or first.model == SYNTHETIC
    branch.messages.append(
        RecordedMessage(
            message=answer.message,
            at=seconds(first.timestamp),
            call=call,
            kind="synthetic" if synthetic else "",
        )
    )
    _results(file, step, answer.message, branch)
    if step.real:
        branch.sharing.answered(len(branch.messages))


def _call(
    file: RecordedFile, step: BranchStep, lines: Sequence[_MessageLine], sharing: SharedCalls
) -> RecordedCall | None:
    """Return the call, or None if another session has already recorded it."""
    first = step.lines[0]
    # Without a request id, as behind some proxies, the id of the answer alone may not be unique.
    id = f"{first.answer} {first.request or lines[0].content.timestamp}"
    if not sharing.records(file, id):
        return None
    report = _report(file, lines)
    return RecordedCall(
        model=next((line.content.model for line in lines if line.content.model), ""),
        usage=report.usage if report else None,
        others=report.others if report else (),
        list_price=report.list_price if report else True,
        id=id,
    )


def _report(file: RecordedFile, lines: Sequence[_MessageLine]) -> UsageReport | None:
    """Return the report with the most output: lines written while the answer streamed have partial counts."""
    found: UsageReport | None = None
    for line in lines:
        report = None
        with file.broken_at(line.entry.number):
            report = decode_anthropic_report(bytes(line.content.usage)) if bytes(line.content.usage) else None
        if report and (found is None or report.usage.output >= found.usage.output):
            found = report
    return found


def _results(file: RecordedFile, step: BranchStep, answer: Message, branch: Branch) -> None:
    """Add the results of an answer's calls as one message, one per call, with a stub for each missing result."""
    if not answer.calls:
        return
    found = _join(file, step.results, "user")
    recorded: dict[str, Raw] = {}
    beside: list[Raw] = []
    for block, part in zip(found.blocks, found.message.parts, strict=True):
        if isinstance(part, ToolResult):
            recorded.setdefault(part.call_id, block)
        else:
            beside.append(block)
    results = [recorded.get(call.id) or _stub(call.id) for call in answer.calls]
    in_place = len(found.blocks) == len(results) and list(recorded) == [call.id for call in answer.calls]
    branch.messages.append(
        RecordedMessage(
            message=found.message if in_place else _message("user", [*results, *beside]),
            at=seconds(found.lines[-1].content.timestamp) if found.lines else branch.messages[-1].at,
            kind="" if recorded else "synthetic",
        )
    )


def _user(file: RecordedFile, entry: LogEntry, branch: Branch) -> None:
    found = _join(file, [entry], "user")
    if not found.lines:
        return
    content = found.lines[0].content
    at = seconds(content.timestamp)
    compacted = branch.compactions and branch.compactions[-1].index == len(branch.messages)
    if content.is_summary and not compacted:
        branch.compactions.append(
            NativeCompaction(index=len(branch.messages), at=at, version=content.version)
        )
    kind = "compact_summary" if content.is_summary else "meta" if content.is_meta else ""
    branch.messages.append(RecordedMessage(message=found.message, at=at, kind=kind))


def _boundary(file: RecordedFile, entry: LogEntry, branch: Branch) -> None:
    with file.broken_at(entry.number):
        content = line_content(file, entry)
        branch.compactions.append(
            NativeCompaction(
                index=len(branch.messages),
                kind="prune" if entry.kind == "prune" else "summary",
                at=seconds(content.timestamp),
                trigger=content.trigger,
                before=content.before,
                removed=content.removed,
                cleared=content.cleared,
                version=content.version,
            )
        )


def _attachment(file: RecordedFile, entry: LogEntry, branch: Branch) -> None:
    """Add an attachment: by the harness, or by the user while the model was busy."""
    with file.broken_at(entry.number):
        content = line_content(file, entry)
        attached = read_json(bytes(content.attachment), _Attachment)
        message = _message("user", attached.blocks(content.attachment))
        kind = "" if attached.is_of_the_user else "attachment"
        branch.messages.append(RecordedMessage(message=message, at=seconds(content.timestamp), kind=kind))


def _join(file: RecordedFile, entries: Sequence[LogEntry], role: str) -> _Joined:
    """Return lines of one role joined to one message."""
    lines: list[_MessageLine] = []
    for entry in entries:
        with file.broken_at(entry.number):
            content = line_content(file, entry)
            lines.append(_MessageLine(entry=entry, content=content, blocks=_blocks(content.content)))
    try:
        message = _message(role, [block for line in lines for block in line.blocks])
    except BadInput:
        lines = [line for line in lines if _is_valid(file, line, role)]
        message = _message(role, [block for line in lines for block in line.blocks])
    return _Joined(lines=lines, message=message)


def _is_valid(file: RecordedFile, line: _MessageLine, role: str) -> bool:
    try:
        _message(role, line.blocks)
    except MalformedMessage as error:
        file.broken(line.entry.number, error.problem)
        return False
    return True


def _blocks(content: str | list[Raw]) -> list[Raw]:
    if isinstance(content, str):
        return [Raw(write_json({"type": "text", "text": content}))] if content else []
    return content


def _message(role: str, blocks: Sequence[Raw]) -> Message:
    return decode_message(write_json({"role": role, "content": list(blocks)}), 0)


def _stub(call: str) -> Raw:
    return Raw(write_json({"type": "tool_result", "tool_use_id": call, "content": STUB}))


# The format

_FIELD_SETS = (
    {"uuid", "parentUuid", "sessionId"},
    {"type", "summary", "leafUuid"},
    {"type", "messageId", "snapshot", "isSnapshotUpdate"},
    {"type", "operation", "sessionId"},
)
"""Sets of fields that occur together in no other format."""


class ClaudeCode:
    """Reads sessions with their forks, and sub-agents as separate sessions."""

    name = "claude-code"
    order = 10

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether one of the first lines has Claude Code's fields."""
        return any(mark <= found.keys() for found in first_objects(head) for mark in _FIELD_SETS)

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield sessions first, each with its newest branch before the abandoned ones, then sub-agents."""
        for (thread, _), entries in sorted(_threads(file).items(), key=lambda item: item[0][0] != ""):
            for at, path in enumerate(branches(file, entries)):
                yield from _recording(file, thread, path, is_newest=at == 0)


def _threads(file: RecordedFile) -> dict[tuple[str, str], list[LogEntry]]:
    """Return the lines by sub-agent (empty for the session itself) and session.

    A line belongs to the session of its parent: in a resumed session, older lines carry the older session's name.
    """
    threads: dict[tuple[str, str], list[LogEntry]] = {}
    homes: dict[str, tuple[str, str]] = {}
    for entry in parents_first(entries_of(file)):
        above = homes.get(entry.parent, ("", ""))
        thread = entry.thread
        if thread == UNNAMED:
            thread = above[0] or entry.uuid
        home = above if entry.parent in homes and above[0] == thread else (thread, entry.session)
        lines = threads.setdefault(home, [])
        # Repeated lines of a sub-agent do not name their parent: they follow each other.
        chained = replace(entry, parent=lines[-1].uuid) if thread and not entry.parent and lines else entry
        homes.setdefault(entry.uuid, home)
        lines.append(chained)
    return threads


def _recording(
    file: RecordedFile, thread: str, path: list[BranchStep], *, is_newest: bool
) -> Iterator[Recording]:
    """Yield the branch, unless other sessions have recorded all its calls."""
    session = path[-1].lines[-1].session or file.path.stem
    whole = f"{session}/{thread}" if thread else session
    id = whole if is_newest else f"{whole}/{path[-1].lines[0].uuid}"
    branch = branch_messages(file, path, id)
    if not branch.messages or branch.sharing.is_copy:
        return
    recording = build_recording(
        file, id=id, agent=ClaudeCode.name, messages=branch.messages, compactions=branch.compactions
    )
    if not is_newest:
        yield branch.sharing.related(recording, parent=whole, relation="fork")
    elif thread:
        yield branch.sharing.related(recording, parent=session, relation="subagent")
    else:
        yield branch.sharing.related(recording)


FORMATS = (ClaudeCode(),)
FOLDERS = (
    LogFolder(agent="Claude Code", variable="CLAUDE_CONFIG_DIR", home=".claude", inside="projects"),
    LogFolder(agent="Claude Code", home=".config/claude", inside="projects"),
)
