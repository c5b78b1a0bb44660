"""What of a message changed between two views: which part, and the text it was and is."""

from collections.abc import Iterable

from msgspec import Struct

from lowwater.values.native_block import said_in
from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.values.view import Item, Summary, parts_of


class PartChange(Struct, frozen=True, kw_only=True):
    """One part that is shown otherwise; nothing where it was or is not shown."""

    path: tuple[int, ...]
    """As in an edit: its index, and for something inside a tool result the index there; empty for a summary."""
    what: str
    was: str
    now: str


def changed_parts(before: Item, after: Item) -> tuple[PartChange, ...]:
    """Return the parts of a message that two views show differently, in order."""
    was, now = _shown(before), _shown(after)
    return tuple(
        PartChange(
            path=path,
            what=_what(was.get(path) or now[path], path),
            was=_text(was.get(path)),
            now=_text(now.get(path)),
        )
        for path in sorted(was.keys() | now.keys())
        if was.get(path) != now.get(path)
    )


def changed_summary(before: Iterable[Item], after: Iterable[Item]) -> tuple[PartChange, ...]:
    """Return the summaries of one view as replaced by those of another; nothing if neither has any."""
    was, now = _summaries(before), _summaries(after)
    return (PartChange(path=(), what="summary", was=was, now=now),) if was or now else ()


def _shown(item: Item) -> dict[tuple[int, ...], AnyPart]:
    """Return what an item shows by path; a result by the parts inside it, if there are any."""
    return {
        path: part
        for path, part in parts_of(item)
        if not isinstance(part, ToolResult) or not any(True for _ in part.parts)
    }


def _summaries(items: Iterable[Item]) -> str:
    return "\n\n".join(said_in(item.message) for item in items if isinstance(item, Summary))


def _what(part: AnyPart, path: tuple[int, ...]) -> str:
    inside = "tool result" if len(path) > 1 else ""
    match part:
        case Text():
            return inside or "text"
        case _:
            kind = part.kind.replace("_", " ")
            return f"{kind} in a {inside}" if inside else kind


def _text(part: AnyPart | None) -> str:
    match part:
        case None | ToolResult():
            return ""
        case Text() | Thinking():
            return part.text
        case ToolCall():
            return f"{part.name} {part.arguments}"
        case Image() | Document():
            return f"[{part.kind}: {len(part.data):,} characters]"
        case Opaque():
            return part.body
