"""How likely each item of a view is to be needed again: what losing it can be expected to cost (docs/economics.md)."""

from collections.abc import Sequence

from lowwater.compact.results import calls_in
from lowwater.compact.worth import chance_of_use
from lowwater.values.parts import ToolResult
from lowwater.values.tools import ToolClass, class_of
from lowwater.values.view import Item

_CHARS_PER_TOKEN = 4


def chances_of_use(items: Sequence[Item]) -> list[float]:
    """Return for each item the chance that something in it is named again, by its kind, size and age."""
    calls = calls_in(items)
    chances = [0.0] * len(items)
    after = 0
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        kind: ToolClass = "other"
        for part in item.message.parts:
            if isinstance(part, ToolResult) and part.call_id in calls:
                kind = class_of(calls[part.call_id])
                break
        chances[index] = chance_of_use(kind, item.tokens * _CHARS_PER_TOKEN, after)
        after += item.message.role == "assistant"
    return chances
