"""What the mechanisms need beside the view: sizes, settings, and what the request offers."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from lowwater.ports import Tokenizer
from lowwater.values.edits import apply_edits, merge_edits
from lowwater.values.entries import Edit
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.values.preset import Preset
from lowwater.values.tools import classify
from lowwater.values.view import Edited, Item, Original, Summary, parts_of

_PICTURE_CHARS = 5_000
"""What a picture weighs among the parts of a message: about its tokens, times four."""


class Making(Struct, frozen=True, kw_only=True):
    """How placeholders and summaries are made and measured."""

    size: Callable[[Message], int]
    """Counts a message, framing included."""
    tokenizer: Tokenizer
    preset: Preset = Preset()
    digest_ratio: float = 0.15
    offers_recall: bool = False
    """The request offers the model a recall tool."""


class Result(Struct, frozen=True, kw_only=True):
    """One tool result in a view: where it is, and the call it answers."""

    item: int
    number: int
    path: tuple[int, ...]
    part: ToolResult
    call: ToolCall | None

    @property
    def tool(self) -> str:
        """The tool's name, as far as the view tells."""
        return self.call.name if self.call else ""


def calls_in(items: Iterable[Item]) -> dict[str, ToolCall]:
    """Return the calls in a view by id."""
    return {call.id: call for item in items for call in item.message.calls}


def results_in(items: Sequence[Item], indexes: Iterable[int], calls: dict[str, ToolCall]) -> list[Result]:
    """Return the tool results that are still whole in these items, in order; placeholders are not among them."""
    found: list[Result] = []
    for index in indexes:
        item = items[index]
        if isinstance(item, Summary):
            continue
        edited = {edit.path for edit in item.edits} if isinstance(item, Edited) else frozenset()
        for path, part in parts_of(item):
            if isinstance(part, ToolResult) and path not in edited:
                call = calls.get(part.call_id)
                found.append(Result(item=index, number=item.number, path=path, part=part, call=call))
    return found


def is_protected(tool: str, preset: Preset) -> bool:
    """Return whether results of this tool must never be elided or shortened; names and classes both count."""
    kind = classify(tool)
    return any(
        name in {tool, kind} or (classify(name) == kind and kind != "other") for name in preset.never_prune
    )


def edit(item: Item, edits: Iterable[Edit], size: Callable[[Message], int]) -> Item:
    """Return the item with these edits on top of those it had."""
    assert not isinstance(item, Summary), "a summary is replaced whole, never edited"
    original = item.original if isinstance(item, Edited) else item.message
    merged = merge_edits(item.edits if isinstance(item, Edited) else (), edits)
    message = apply_edits(original, merged)
    return Edited(number=item.number, original=original, edits=merged, message=message, tokens=size(message))


def part_tokens(item: Original | Edited, part: AnyPart) -> int:
    """Return about how many tokens one part of an item is, by its share of the characters."""
    whole = sum(_weight(each) for path, each in parts_of(item) if len(path) == 1) or 1
    return round(item.tokens * _weight(part) / whole)


def _weight(part: AnyPart) -> int:
    match part:
        case Text() | Thinking():
            return len(part.text)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case ToolResult():
            return sum(_weight(inner) for inner in part.parts)
        case Document(source="text"):
            return len(part.data)
        case Image() | Document():
            return _PICTURE_CHARS
        case Opaque():
            return len(part.body)
