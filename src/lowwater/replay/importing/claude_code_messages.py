"""One branch of a Claude Code session as recorded messages: blocks joined into answers, each call told once."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct, field

from lowwater.core.formats.anthropic import decode_message
from lowwater.core.formats.usage import Report, decode_anthropic_report
from lowwater.core.messages import Message, ToolResult
from lowwater.core.strict_json import read_json, write_json
from lowwater.errors import BadInput, MalformedMessage
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage
from lowwater.replay.importing.claude_code_lines import SYNTHETIC, Entry, Said, said_in
from lowwater.replay.importing.claude_code_tree import Step
from lowwater.replay.importing.gathering import STUB, text_of
from lowwater.replay.importing.lines import RecordedFile
from lowwater.replay.importing.sharing import Sharing
from lowwater.replay.importing.times import seconds


class Told(Struct, kw_only=True):
    """A branch so far."""

    sharing: Sharing
    messages: list[RecordedMessage] = field(default_factory=list)
    compactions: list[NativeCompaction] = field(default_factory=list)


class _Line(Struct, frozen=True, kw_only=True):
    entry: Entry
    said: Said
    blocks: list[Raw]


class _Joined(Struct, frozen=True, kw_only=True):
    """Several lines as one message; those that were broken are left out."""

    lines: list[_Line]
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


def told(file: RecordedFile, path: Sequence[Step], session: str) -> Told:
    """Return the messages of a branch, told as `session`."""
    so_far = Told(sharing=Sharing(session=session))
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


def _answer(file: RecordedFile, step: Step, so_far: Told) -> None:
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


def _call(file: RecordedFile, step: Step, lines: Sequence[_Line], sharing: Sharing) -> RecordedCall | None:
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


def _report(file: RecordedFile, lines: Sequence[_Line]) -> Report | None:
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


def _results(file: RecordedFile, step: Step, answer: Message, so_far: Told) -> None:
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


def _user(file: RecordedFile, entry: Entry, so_far: Told) -> None:
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


def _boundary(file: RecordedFile, entry: Entry, so_far: Told) -> None:
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


def _attachment(file: RecordedFile, entry: Entry, so_far: Told) -> None:
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
    lines: list[_Line] = []
    for entry in entries:
        try:
            said = said_in(file, entry)
        except BadInput as error:
            file.broken(entry.number, str(error))
        else:
            lines.append(_Line(entry=entry, said=said, blocks=_blocks(said.content)))
    try:
        message = _message(role, [block for line in lines for block in line.blocks])
    except BadInput:
        lines = [line for line in lines if _is_sound(file, line, role)]
        message = _message(role, [block for line in lines for block in line.blocks])
    return _Joined(lines=lines, message=message)


def _is_sound(file: RecordedFile, line: _Line, role: str) -> bool:
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
