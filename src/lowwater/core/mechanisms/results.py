"""The tool results in a view, each with the call that it answers and its estimated size.

Only whole messages are counted. A part's tokens are estimated by its share of the message's weight, in characters of text.
"""

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
from lowwater.core.proposals import Preset
from lowwater.core.tools import ToolClass, class_of, path_of
from lowwater.core.view import Edited, Item, Original, Summary, shown_parts

PartPlace = tuple[int, tuple[int, ...]]
"""An item's index and the path to a part in it."""
_PICTURE = 5_000
"""The weight of an image in characters: about four times its tokens."""
_SIGNED = 0.7
"""The weight of a signature's character: signatures grow with thinking that is not shown (`core/tokens/counting.py`)."""
_ENVELOPE = 200
"""Characters of a signature without any thinking."""
_PICTURE_LINE = re.compile(r"\[(?:image|document)[^\n]* elided · [^\n]*\blw:\d+\]$")
_PLACEHOLDER = re.compile(r"\[[^\n]* chars elided · [^\n]*\blw:\d+\](?:\n|$)")


class ShownResult(Struct, frozen=True, kw_only=True, gc=False):
    """One tool result: where it is, what it says, and the call it answers."""

    item: int
    number: int
    path: tuple[int, ...]
    part: ToolResult
    """As it is shown."""
    original: ToolResult
    """As it came."""
    text: str
    """All its text, as it is shown."""
    tokens: int
    """The estimated tokens of that text."""
    pictures: int
    """The estimated tokens of its images."""
    call: ToolCall | None

    @property
    def place(self) -> PartPlace:
        """Where it is in the view."""
        return self.item, self.path

    @property
    def tool(self) -> str:
        """The tool's name; empty if its call is not in the view."""
        return self.call.name if self.call else ""

    @property
    def kind(self) -> ToolClass:
        """The class of the tool."""
        return class_of(self.call) if self.call else "other"

    def shown_as(self, text: str) -> list[Edit]:
        """Return the edits that replace all text of the result by `text`; its images stay."""
        first, *rest = (at for at, part in enumerate(self.original.parts) if not is_picture(part))
        edits = [Edit(path=(*self.path, first), by=Text(text=text))]
        edits.extend(Edit(path=(*self.path, at), by=None) for at in rest)
        return edits


def results_in(
    items: Sequence[Item],
    indexes: Iterable[int],
    calls: dict[str, ToolCall],
    *,
    placeholders: bool = False,
) -> list[ShownResult]:
    """Return the tool results in these items, in order; those that are placeholders already only with `placeholders`."""
    found: list[ShownResult] = []
    for index in indexes:
        item = items[index]
        if isinstance(item, Summary) or item.message.role == "assistant":
            continue
        total = weight_of(item.message.parts) if len(item.message.parts) > 1 else 0
        for path, part, original in _results(item):
            if not placeholders and is_placeholder(part):
                continue
            whole, pictures = item.tokens, 0
            if len(item.message.parts) > 1:
                whole = tokens_of_parts(whole, total, [part])
            if any(map(is_picture, part.parts)):
                pictures = share_of_tokens(
                    whole, [part], [inner for inner in part.parts if is_picture(inner)]
                )
            found.append(
                ShownResult(
                    item=index,
                    number=item.number,
                    path=path,
                    part=part,
                    original=original,
                    text=result_text(part),
                    tokens=whole - pictures,
                    pictures=pictures,
                    call=calls.get(part.call_id),
                )
            )
    return found


def unprotected(results: Sequence[ShownResult], preset: Preset) -> list[ShownResult]:
    """Return the results whose tools are not among the never-prune ones, and which are not of pinned files."""
    spared = {tool for tool in {result.tool for result in results} if preset.protects(tool)}
    left = [result for result in results if result.tool not in spared]
    if not preset.pinned:
        return left
    from lowwater.core.summary.pinned_files import is_pinned_path  # noqa: PLC0415  # few settings name files

    return [
        result
        for result in left
        if not (result.call and result.kind == "read" and is_pinned_path(path_of(result.call), preset.pinned))
    ]


def calls_in(items: Iterable[Item]) -> dict[str, ToolCall]:
    """Return the tool calls in a view by their ids, as they came: what their results are about does not change with an edit."""
    return {
        part.id: part
        for item in items
        if item.message.role == "assistant"
        for part in (item.original if isinstance(item, Edited) else item.message).parts
        if isinstance(part, ToolCall)
    }


def _results(item: Original | Edited) -> list[tuple[tuple[int, ...], ToolResult, ToolResult]]:
    """Return the path of each result, the result as it is shown, and as it came."""
    if isinstance(item, Original):
        parts = item.message.parts
        return [((at,), part, part) for at, part in enumerate(parts) if isinstance(part, ToolResult)]
    found: list[tuple[tuple[int, ...], ToolResult, ToolResult]] = []
    for path, part in shown_parts(item):
        original = item.original.parts[path[0]]
        if isinstance(part, ToolResult) and isinstance(original, ToolResult):
            found.append((path, part, original))
    return found


def is_placeholder(result: ToolResult) -> bool:
    """Return whether the result is only a placeholder, left by a compaction of this session or another."""
    for part in result.parts:
        if isinstance(part, Text) and part.text.startswith("[") and _PLACEHOLDER.match(part.text):
            return True
    return False


def result_text(result: ToolResult) -> str:
    """Return all text of a result: its texts, plain documents, and blocks of unknown type as JSON.

    Lines that replace images do not belong to it: they would make a short result a long one.
    """
    if len(result.parts) == 1 and isinstance(result.parts[0], Text):
        return "" if _is_picture_line(result.parts[0]) else result.parts[0].text
    return "\n".join(
        _text(part) for part in result.parts if not is_picture(part) and not _is_picture_line(part)
    )


def _is_picture_line(part: ResultPart) -> bool:
    return isinstance(part, Text) and part.text.startswith("[") and bool(_PICTURE_LINE.match(part.text))


def _text(part: ResultPart) -> str:
    match part:
        case Text():
            return part.text
        case Image() | Document():
            return part.data
        case _:
            return part.body


# Estimating the tokens of parts


def share_of_tokens(tokens: int, parts: Sequence[AnyPart], wanted: Sequence[AnyPart]) -> int:
    """Return how many of a message's `tokens` the `wanted` among its `parts` have, by their share of the weight.

    The wanted ones may also be inside one of the parts.
    """
    return tokens_of_parts(tokens, weight_of(parts), wanted)


def tokens_of_parts(tokens: int, whole: int, wanted: Sequence[AnyPart]) -> int:
    """Return how many of a message's `tokens` the `wanted` parts have; `whole` is the weight of all its parts."""
    return round(tokens * weight_of(wanted) / whole) if whole else 0


def weight_of(parts: Sequence[AnyPart]) -> int:
    """Return the total weight of parts; compute it once if the share of each part is needed."""
    return sum([weight(part) for part in parts])


def weight(part: AnyPart) -> int:
    """Return the weight of a part: about as many characters of text would have the same tokens."""
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
    """Return whether the model sees a part as an image: an image, or a document that is not plain text."""
    return isinstance(part, Image) or (isinstance(part, Document) and part.source != "text")
