"""The lines of a Claude Code session: what the tree of a session needs to know of each, and what it says."""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Raw, Struct

from lowwater.core.strict_json import read_json
from lowwater.errors import BadInput
from lowwater.replay.importing.lines import Line, RecordedFile

Kind = Literal["answer", "user", "attachment", "boundary", "prune", "link"]

SYNTHETIC = "<synthetic>"
UNNAMED = "?"
"""A sub-agent whose lines do not say which one it is."""


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
