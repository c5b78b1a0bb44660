"""The tool results in a view, each with the call it answers and what it weighs."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lowwater.core.entries import Edit
from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Opaque,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.core.tools import ToolClass, class_of
from lowwater.core.view import Edited, Item, Original, Summary, parts_of

_PICTURE = 5_000
"""What a picture weighs in characters: about its tokens, times four."""
_SIGNED = 0.7
"""What a character of a signature weighs: it grows with thinking that is not shown (`count.message`)."""
_ENVELOPE = 200


def share_of_tokens(tokens: int, parts: Sequence[AnyPart], wanted: Sequence[AnyPart]) -> int:
    """Return how many of a message's `tokens` the `wanted` of its `parts` take, by their share of the characters.

    What is wanted may also stand inside one of the parts.
    """
    return share_of(tokens, weight_of(parts), wanted)


def weight_of(parts: Sequence[AnyPart]) -> int:
    """Return what parts weigh together; whoever asks for the share of each asks for this once."""
    return sum([weight(part) for part in parts])


def share_of(tokens: int, whole: int, wanted: Sequence[AnyPart]) -> int:
    """Return how many of a message's `tokens` the `wanted` of its parts take, which weigh `whole` together."""
    return round(tokens * weight_of(wanted) / whole) if whole else 0


def weight(part: AnyPart) -> int:
    """Return about how many characters of text a part is worth."""
    match part:
        case Text():
            return len(part.text)
        case ToolResult():
            return sum(weight(inner) for inner in part.parts)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case Thinking():
            return max(len(part.text), int((len(part.signature) - _ENVELOPE) * _SIGNED))
        case Image() | Document():
            return _PICTURE if is_picture(part) else len(part.data)
        case Opaque():
            return len(part.body)


def is_picture(part: AnyPart) -> bool:
    """Return whether a part is shown to the model as a picture: an image, or a document that is not plain text."""
    return isinstance(part, Image) or (isinstance(part, Document) and part.source != "text")


Place = tuple[int, tuple[int, ...]]
"""An item's index and the path to a part in it."""

_PICTURE_LINE = re.compile(r"\[(?:image|document)[^\n]* elided · [^\n]*\blw:\d+\]$")
_PLACEHOLDER = re.compile(r"\[[^\n]* chars elided · [^\n]*\blw:\d+\](?:\n|$)")


class Result(Struct, frozen=True, kw_only=True, gc=False):
    """One tool result: where it is, what it says, and the call it answers."""

    item: int
    number: int
    path: tuple[int, ...]
    part: ToolResult
    """As it is shown."""
    original: ToolResult
    """As it came."""
    text: str
    """All that is text in it, as it is shown."""
    tokens: int
    """About how many tokens that text is."""
    pictures: int
    """About how many tokens its pictures are."""
    call: ToolCall | None

    @property
    def place(self) -> Place:
        """Where it is in the view."""
        return self.item, self.path

    @property
    def tool(self) -> str:
        """The tool's name, as far as the view tells."""
        return self.call.name if self.call else ""

    @property
    def kind(self) -> ToolClass:
        """The kind of tool that gave it."""
        return class_of(self.call) if self.call else "other"

    def shown_as(self, text: str) -> list[Edit]:
        """Return the edits that put `text` in place of all text of the result; pictures in it stay."""
        first, *rest = (at for at, part in enumerate(self.original.parts) if not is_picture(part))
        edits = [Edit(path=(*self.path, first), by=Text(text=text))]
        edits.extend(Edit(path=(*self.path, at), by=None) for at in rest)
        return edits


def calls_in(items: Iterable[Item]) -> dict[str, ToolCall]:
    """Return the calls in a view by id."""
    return {
        part.id: part
        for item in items
        if item.message.role == "assistant"
        for part in item.message.parts
        if isinstance(part, ToolCall)
    }


def results_in(
    items: Sequence[Item],
    indexes: Iterable[int],
    calls: dict[str, ToolCall],
    *,
    placeholders: bool = False,
) -> list[Result]:
    """Return the tool results in these items, in order, but for those that are placeholders already unless those are wanted."""
    found: list[Result] = []
    for index in indexes:
        item = items[index]
        if isinstance(item, Summary) or item.message.role == "assistant":
            continue
        together = weight_of(item.message.parts) if len(item.message.parts) > 1 else 0
        for path, part, original in _results(item):
            if not placeholders and is_placeholder(part):
                continue
            whole, pictures = item.tokens, 0
            if len(item.message.parts) > 1:
                whole = share_of(whole, together, [part])
            if any(map(is_picture, part.parts)):
                pictures = share_of_tokens(
                    whole, [part], [inner for inner in part.parts if is_picture(inner)]
                )
            found.append(
                Result(
                    item=index,
                    number=item.number,
                    path=path,
                    part=part,
                    original=original,
                    text=text_of(part),
                    tokens=whole - pictures,
                    pictures=pictures,
                    call=calls.get(part.call_id),
                )
            )
    return found


def is_placeholder(result: ToolResult) -> bool:
    """Return whether a compaction, of this session or of another, left only a placeholder of the result."""
    for part in result.parts:
        if isinstance(part, Text) and part.text.startswith("[") and _PLACEHOLDER.match(part.text):
            return True
    return False


def text_of(result: ToolResult) -> str:
    """Return all that is text in a result: its texts, plain documents, and blocks of unknown type as JSON.

    The line that stands for a picture is no text of the result: with it, a short one would become a long one.
    """
    if len(result.parts) == 1 and isinstance(result.parts[0], Text):
        return "" if _is_picture_line(result.parts[0]) else result.parts[0].text
    return "\n".join(
        _words(part) for part in result.parts if not is_picture(part) and not _is_picture_line(part)
    )


def _results(item: Original | Edited) -> list[tuple[tuple[int, ...], ToolResult, ToolResult]]:
    """Return the path to each result, the result as it is shown, and as it came."""
    if isinstance(item, Original):
        parts = item.message.parts
        return [((at,), part, part) for at, part in enumerate(parts) if isinstance(part, ToolResult)]
    found: list[tuple[tuple[int, ...], ToolResult, ToolResult]] = []
    for path, part in parts_of(item):
        original = item.original.parts[path[0]]
        if isinstance(part, ToolResult) and isinstance(original, ToolResult):
            found.append((path, part, original))
    return found


def _is_picture_line(part: ResultPart) -> bool:
    return isinstance(part, Text) and part.text.startswith("[") and bool(_PICTURE_LINE.match(part.text))


def _words(part: ResultPart) -> str:
    match part:
        case Text():
            return part.text
        case Image() | Document():
            return part.data
        case _:
            return part.body
