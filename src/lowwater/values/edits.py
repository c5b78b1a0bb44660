"""Applying edits to a message: some parts replaced, some dropped, the rest untouched."""

from collections.abc import Iterable

from msgspec.structs import replace

from lowwater.errors import IllegalEntry
from lowwater.values.entries import Edit
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, ResultPart, Text, ToolResult


def apply_edits(message: Message, edits: Iterable[Edit]) -> Message:
    """Return `message` with `edits` made, in order.

    Indexes count as if nothing had been dropped; those inside a tool result count in the result as edited before.
    """
    parts: list[AnyPart | None] = list(message.parts)
    inside: dict[int, list[ResultPart | None]] = {}
    for edit in edits:
        at, *rest = edit.path or (-1,)
        if not 0 <= at < len(parts):
            raise _no_such_part(edit, message)
        if not rest:
            parts[at] = edit.by
            inside.pop(at, None)
            continue
        result = parts[at]
        if not isinstance(result, ToolResult) or len(rest) > 1 or not 0 <= rest[0] < len(result.parts):
            raise _no_such_part(edit, message)
        inside.setdefault(at, list(result.parts))[rest[0]] = _result_part(edit.by)
    for at, within in inside.items():
        result = parts[at]
        assert isinstance(result, ToolResult)
        parts[at] = replace(result, parts=tuple(part for part in within if part is not None))
    return message.with_parts([part for part in parts if part is not None])


def _no_such_part(edit: Edit, message: Message) -> IllegalEntry:
    return IllegalEntry(f"no part {edit.path} to edit in a message of {len(message.parts)} parts")


def _result_part(part: AnyPart | None) -> ResultPart | None:
    if part is None or isinstance(part, Text | Image | Document | Opaque):
        return part
    raise IllegalEntry(f"a {part.kind} cannot stand inside a tool result")


def merge_edits(old: Iterable[Edit], new: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits that do both: a new one replaces older ones at its place and inside it."""
    added = tuple(new)
    places = {edit.path for edit in added}
    kept = [edit for edit in old if not any(edit.path[: len(place)] == place for place in places)]
    return tuple(sorted((*kept, *added), key=lambda edit: edit.path))
