"""Claude Code: one JSON line for each block, in files of sessions and of their sub-agents."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from lowwater.core.formats.anthropic import decode_message
from lowwater.core.formats.usage import Report, decode_anthropic_report
from lowwater.core.messages import Message, ToolResult
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput, MalformedMessage
from lowwater.logs.files import Line, RecordedFile, Sharing, first_objects, seconds
from lowwater.logs.gathering import STUB, gathered, text_of
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording

Kind = Literal["answer", "user", "attachment", "boundary", "prune", "link"]
SYNTHETIC = "<synthetic>"
UNNAMED = "?"
"""A sub-agent whose lines do not say which one it is."""
_MARKS = (
    {"uuid", "parentUuid", "sessionId"},
    {"type", "summary", "leafUuid"},
    {"type", "messageId", "snapshot", "isSnapshotUpdate"},
    {"type", "operation", "sessionId"},
)
"""Fields that stand together in lines of no other format."""


class Entry(Struct, frozen=True, kw_only=True, gc=False):
    """One line without its content; `link` is a line that says nothing but that others hang on."""

    kind: Kind
    at: int
    number: int
    uuid: str
    parent: str
    session: str
    thread: str
    """The sub-agent it belongs to; empty for the session itself."""
    answer: str = ""
    """The id of the answer that it is a block of."""
    request: str = ""
    real: bool = False
    """Whether a model was called for it."""
    asks: tuple[str, ...] = ()
    """The tool calls in it."""
    results: tuple[str, ...] = ()
    """The tool calls it has results of."""


class Said(Struct, frozen=True, kw_only=True):
    """What one line says."""

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
    """A line of a sub-agent, as the session that started it repeats it."""

    type: str = ""
    agentId: str | None = None  # noqa: N815
    message: Raw = Raw(b"{}")


def entries_of(file: RecordedFile) -> Iterator[Entry]:
    """Yield the lines that a tree is made of, in the order of the file; what is broken is told to the file."""
    for line in file.lines():
        try:
            entry = _entry(line)
        except BadInput as error:
            file.broken(line.number, str(error))
            continue
        if entry is not None:
            yield entry


def said_in(file: RecordedFile, entry: Entry) -> Said:
    """Return what a line says, or raise BadInput."""
    line = read_json(file.line_at(entry.at), _Line)
    if _is_echo(line):
        line = read_json(bytes(read_json(bytes(line.data), _Echo).message), _Line)
    if entry.kind in ("boundary", "prune"):
        told = line.compactMetadata if entry.kind == "boundary" else line.microcompactMetadata
        metadata = read_json(bytes(told) or b"{}", _Metadata)
        return Said(
            timestamp=line.timestamp or "",
            trigger=metadata.trigger or "",
            before=metadata.preTokens,
            removed=metadata.tokensSaved,
            cleared=metadata.compactedToolIds or (),
        )
    if entry.kind == "attachment":
        return Said(timestamp=line.timestamp or "", attachment=line.attachment)
    message = read_json(bytes(line.message), _Message)
    return Said(
        content=message.content,
        usage=message.usage,
        model=message.model,
        timestamp=line.timestamp or "",
        is_meta=bool(line.isMeta) or line.promptSource == "system",
        is_summary=bool(line.isCompactSummary),
        is_error=bool(line.isApiErrorMessage),
    )


def _entry(line: Line) -> Entry | None:
    outer = read_json(line.data, _Line)
    session, thread = outer.sessionId or "", ""
    if _is_echo(outer):
        echo = read_json(bytes(outer.data), _Echo)
        inner = read_json(bytes(echo.message), _Line)
        return _of(line, inner, session=session, thread=echo.agentId or UNNAMED, parent="")
    if not outer.uuid:
        return None
    if outer.isSidechain:
        thread = outer.agentId or UNNAMED
    parent = outer.parentUuid or outer.logicalParentUuid or ""
    return _of(line, outer, session=session, thread=thread, parent=parent)


def _of(line: Line, said: _Line, *, session: str, thread: str, parent: str) -> Entry:
    kind = _kind(said)
    outline = _Outline(content="")
    if kind in ("answer", "user"):
        outline = read_json(bytes(said.message), _Outline)
    blocks = outline.content if isinstance(outline.content, list) else []
    uuid = said.uuid or f"line {line.number}"
    return Entry(
        kind=kind,
        at=line.at,
        number=line.number,
        uuid=uuid,
        parent=parent,
        session=session,
        thread=thread,
        answer=(outline.id or uuid) if kind == "answer" else "",
        request=said.requestId or "",
        real=kind == "answer" and outline.model != SYNTHETIC and not said.isApiErrorMessage,
        asks=tuple(block.id for block in blocks if block.type == "tool_use" and block.id),
        results=tuple(
            block.tool_use_id for block in blocks if block.type == "tool_result" and block.tool_use_id
        ),
    )


def _kind(line: _Line) -> Kind:
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


class Step(Struct, kw_only=True):
    """An answer and its results, or one other line."""

    lines: list[Entry]
    parent: int | None
    results: list[Entry] = field(default_factory=list)

    @property
    def real(self) -> bool:
        """Whether a model was called for it."""
        return self.lines[0].real


def in_order(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield lines in the order of the file, but none before the one it hangs on.

    Tools and streams are written down side by side: a result may stand a line or two before the call that it answers.
    """
    lines = list(entries)
    to_come = {entry.uuid for entry in lines}
    waiting: dict[str, list[Entry]] = {}
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
    # Lines that hang on each other in a circle have no order but that of the file.
    yield from sorted((entry for held in waiting.values() for entry in held), key=lambda entry: entry.number)


def branches(file: RecordedFile, entries: Sequence[Entry]) -> Iterator[list[Step]]:
    """Yield the conversations of one thread from first step to last: the newest, then those that were left.

    A branch counts if a model was called on it that no newer one shares.
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


def _steps(file: RecordedFile, entries: Sequence[Entry]) -> list[Step]:
    steps: list[Step] = []
    home: dict[str, int | None] = {}
    answers: dict[tuple[str, str], int] = {}
    asked: dict[str, int] = {}
    for entry in entries:
        if entry.uuid in home:
            continue  # a line that was written twice
        # A line whose parent was never written, or comes later, goes on where the file was.
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
            steps.append(Step(lines=[entry], parent=parent))
        home[entry.uuid] = own
        if entry.kind == "answer" and own is not None:
            answers.setdefault(answer, own)
            asked |= dict.fromkeys(entry.asks, own)
    return steps


def _newest_under(steps: Sequence[Step], end: int) -> int:
    """Return the newest step among `end` and those behind it, none of which called a model."""
    under = {end}
    for at in range(end + 1, len(steps)):
        if steps[at].parent in under:
            under.add(at)
    return max(under)


def _path(steps: Sequence[Step], end: int) -> list[Step]:
    path: list[Step] = []
    at: int | None = end
    while at is not None:
        path.append(steps[at])
        at = steps[at].parent
    return path[::-1]


class Branch(Struct, kw_only=True):
    """A branch so far."""

    sharing: Sharing
    messages: list[RecordedMessage] = field(default_factory=list)
    compactions: list[NativeCompaction] = field(default_factory=list)


class _MessageLine(Struct, frozen=True, kw_only=True):
    entry: Entry
    said: Said
    blocks: list[Raw]


class _Joined(Struct, frozen=True, kw_only=True):
    """Several lines as one message; those that were broken are left out."""

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
        """Whether the user typed it while the model was busy; notifications wait in the same queue."""
        return self.type == "queued_command" and self.commandMode != "task-notification"

    def blocks(self, whole: Raw) -> list[Raw]:
        """Return what it says as blocks: its prompt or text, else all of it as it was written."""
        if self.is_of_the_user and bytes(self.prompt)[:1] == b"[":
            return read_json(bytes(self.prompt), list[Raw])
        texts = [words for words in (self.prompt, self.content) if bytes(words)[:1] == b'"']
        return _blocks(text_of(texts[0] if texts else whole))


def told(file: RecordedFile, path: Sequence[Step], session: str) -> Branch:
    """Return the messages of a branch, told as `session`."""
    so_far = Branch(sharing=Sharing(session=session))
    for step in path:
        match step.lines[0].kind:
            case "answer":
                _answer(file, step, so_far)
            case "boundary" | "prune":
                _boundary(file, step.lines[0], so_far)
            case "attachment":
                _attachment(file, step.lines[0], so_far)
            case _:
                _user(file, step.lines[0], so_far)
    return so_far


def _answer(file: RecordedFile, step: Step, so_far: Branch) -> None:
    answer = _join(file, step.lines, "assistant")
    if not answer.lines:
        return
    first = answer.lines[0].said
    call = _call(file, step, answer.lines, so_far.sharing) if step.real else None
    synthetic = first.is_error or first.model == SYNTHETIC
    so_far.messages.append(
        RecordedMessage(
            message=answer.message,
            at=seconds(first.timestamp),
            call=call,
            kind="synthetic" if synthetic else "",
        )
    )
    _results(file, step, answer.message, so_far)
    if step.real:
        so_far.sharing.answered(len(so_far.messages))


def _call(
    file: RecordedFile, step: Step, lines: Sequence[_MessageLine], sharing: Sharing
) -> RecordedCall | None:
    """Return the call, or None if another session has told of it."""
    first = step.lines[0]
    # Without the id of a request, as behind some proxies, that of an answer may be one that others have too.
    id = f"{first.answer} {first.request or lines[0].said.timestamp}"
    if not sharing.tells(file, id):
        return None
    report = _report(file, lines)
    return RecordedCall(
        model=next((line.said.model for line in lines if line.said.model), ""),
        usage=report.usage if report else None,
        others=report.others if report else (),
        list_price=report.list_price if report else True,
        id=id,
    )


def _report(file: RecordedFile, lines: Sequence[_MessageLine]) -> Report | None:
    """Return the usage that was reported last: those written while the answer streamed know less of its output."""
    found: Report | None = None
    for line in lines:
        try:
            report = decode_anthropic_report(bytes(line.said.usage)) if bytes(line.said.usage) else None
        except BadInput as error:
            file.broken(line.entry.number, str(error))
            continue
        if report and (found is None or report.usage.output >= found.usage.output):
            found = report
    return found


def _results(file: RecordedFile, step: Step, answer: Message, so_far: Branch) -> None:
    """Add the results of an answer's calls as one message, each once, with a stub for each that was not recorded."""
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
    so_far.messages.append(
        RecordedMessage(
            message=found.message if in_place else _message("user", [*results, *beside]),
            at=seconds(found.lines[-1].said.timestamp) if found.lines else so_far.messages[-1].at,
            kind="" if recorded else "synthetic",
        )
    )


def _user(file: RecordedFile, entry: Entry, so_far: Branch) -> None:
    found = _join(file, [entry], "user")
    if not found.lines:
        return
    said = found.lines[0].said
    at = seconds(said.timestamp)
    compacted = so_far.compactions and so_far.compactions[-1].index == len(so_far.messages)
    if said.is_summary and not compacted:
        so_far.compactions.append(NativeCompaction(index=len(so_far.messages), at=at))
    kind = "compact_summary" if said.is_summary else "meta" if said.is_meta else ""
    so_far.messages.append(RecordedMessage(message=found.message, at=at, kind=kind))


def _boundary(file: RecordedFile, entry: Entry, so_far: Branch) -> None:
    try:
        said = said_in(file, entry)
    except BadInput as error:
        file.broken(entry.number, str(error))
        return
    so_far.compactions.append(
        NativeCompaction(
            index=len(so_far.messages),
            kind="prune" if entry.kind == "prune" else "summary",
            at=seconds(said.timestamp),
            trigger=said.trigger,
            before=said.before,
            removed=said.removed,
            cleared=said.cleared,
        )
    )


def _attachment(file: RecordedFile, entry: Entry, so_far: Branch) -> None:
    """Add what the harness or, while the model was busy, the user put beside the conversation."""
    try:
        said = said_in(file, entry)
        attached = read_json(bytes(said.attachment), _Attachment)
        message = _message("user", attached.blocks(said.attachment))
    except BadInput as error:
        file.broken(entry.number, str(error))
        return
    kind = "" if attached.is_of_the_user else "attachment"
    so_far.messages.append(RecordedMessage(message=message, at=seconds(said.timestamp), kind=kind))


def _join(file: RecordedFile, entries: Sequence[Entry], role: str) -> _Joined:
    """Return what lines of one role say together."""
    lines: list[_MessageLine] = []
    for entry in entries:
        try:
            said = said_in(file, entry)
        except BadInput as error:
            file.broken(entry.number, str(error))
        else:
            lines.append(_MessageLine(entry=entry, said=said, blocks=_blocks(said.content)))
    try:
        message = _message(role, [block for line in lines for block in line.blocks])
    except BadInput:
        lines = [line for line in lines if _is_sound(file, line, role)]
        message = _message(role, [block for line in lines for block in line.blocks])
    return _Joined(lines=lines, message=message)


def _is_sound(file: RecordedFile, line: _MessageLine, role: str) -> bool:
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


class ClaudeCode:
    """Sessions with their forks, and sub-agents as sessions of their own."""

    name = "claude-code"

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Tell whether a line has the fields that Claude Code gives to each."""
        return any(mark <= found.keys() for found in first_objects(head) for mark in _MARKS)

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield sessions first, each with its newest branch before those it left, then sub-agents."""
        for (thread, _), entries in sorted(_threads(file).items(), key=lambda item: item[0][0] != ""):
            for at, path in enumerate(branches(file, entries)):
                yield from _recording(file, thread, path, is_newest=at == 0)


def _threads(file: RecordedFile) -> dict[tuple[str, str], list[Entry]]:
    """Return the lines of each sub-agent, or of none, in each session.

    A line belongs where the one it hangs on does: in a resumed session, older lines have the session's older name.
    """
    threads: dict[tuple[str, str], list[Entry]] = {}
    homes: dict[str, tuple[str, str]] = {}
    for entry in in_order(entries_of(file)):
        above = homes.get(entry.parent, ("", ""))
        thread = entry.thread
        if thread == UNNAMED:
            thread = above[0] or entry.uuid
        home = above if entry.parent in homes and above[0] == thread else (thread, entry.session)
        lines = threads.setdefault(home, [])
        # What a session repeats of a sub-agent says nothing of where it hangs.
        chained = replace(entry, parent=lines[-1].uuid) if thread and not entry.parent and lines else entry
        homes.setdefault(entry.uuid, home)
        lines.append(chained)
    return threads


def _recording(file: RecordedFile, thread: str, path: list[Step], *, is_newest: bool) -> Iterator[Recording]:
    """Yield the branch, unless others have told all its calls."""
    session = path[-1].lines[-1].session or file.path.stem
    whole = f"{session}/{thread}" if thread else session
    id = whole if is_newest else f"{whole}/{path[-1].lines[0].uuid}"
    said = told(file, path, id)
    if not said.messages or said.sharing.is_copy:
        return
    recording = gathered(
        file, id=id, agent=ClaudeCode.name, messages=said.messages, compactions=said.compactions
    )
    if not is_newest:
        yield said.sharing.related(recording, parent=whole, relation="fork")
    elif thread:
        yield said.sharing.related(recording, parent=session, relation="subagent")
    else:
        yield said.sharing.related(recording)
