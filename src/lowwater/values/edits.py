"""Applying edits to a message: some parts replaced, some dropped, the rest untouched."""

from collections.abc import Iterable

from msgspec.structs import replace

from lowwater.errors import IllegalEntry
from lowwater.values.entries import Edit
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, ResultPart, Text, ToolResult


def apply_edits(message: Message, edits: Iterable[Edit]) -> Message:
    """Return `message` with `edits` made; paths count in the original message, whatever was dropped."""
    parts: list[AnyPart | None] = list(message.parts)
    inside: dict[int, list[ResultPart | None]] = {}
    for edit in edits:
        match edit.path:
            case (at,) if 0 <= at < len(parts):
                parts[at] = edit.by
            case (at, within) if 0 <= at < len(parts):
                result = message.parts[at]
                if not isinstance(result, ToolResult) or not 0 <= within < len(result.parts):
                    raise IllegalEntry(f"no part {edit.path} to edit in a message of {len(parts)} parts")
                inside.setdefault(at, list(result.parts))[within] = _result_part(edit.by)
            case _:
                raise IllegalEntry(f"no part {edit.path} to edit in a message of {len(parts)} parts")
    for at, within_parts in inside.items():
        edited = parts[at]
        if isinstance(edited, ToolResult):
            parts[at] = replace(edited, parts=tuple(part for part in within_parts if part is not None))
    return message.with_parts([part for part in parts if part is not None])


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
