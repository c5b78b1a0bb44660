"""How likely content is to be used again, and which tool output a prune therefore leaves alone."""

from collections.abc import Iterable, Sequence
from math import exp, sqrt

from lowwater.core.mechanisms.results import Place, Result, calls_in
from lowwater.core.messages import ToolResult
from lowwater.core.proposals import Preset
from lowwater.core.tools import ToolClass, class_of
from lowwater.core.view import Item

_USES: dict[ToolClass, float] = {
    "write": 0.001,
    "todo": 0.001,
    "shell": 0.025,
    "list": 0.06,
    "search": 0.06,
    "web": 0.08,
    "read": 0.09,
    "agent": 0.16,
}
"""Uses to expect of the first 1,000 characters once a result is five calls old."""
_OTHER = 0.06
_LENGTH = 0.75
"""The power of the length that uses grow with."""
_YOUNG = 5
_RECALL = 10_000
"""What one recall costs beside the content, in tokens: a call more over a warm prefix of some 100,000."""


def chance_of_use(tool: ToolClass, chars: int, calls_ago: int) -> float:
    """Return the chance that a result is used again, given its tool, its length, and how many calls came after it."""
    fade = sqrt(_YOUNG / max(_YOUNG, calls_ago))
    return 1 - exp(-_USES.get(tool, _OTHER) * (chars / 1_000) ** _LENGTH * fade)


def worth_per_token(tool: ToolClass, chars: int, tokens: int, calls_ago: int) -> float:
    """Return the tokens of rework that each token of a kept result can be expected to spare."""
    return chance_of_use(tool, chars, calls_ago) * (_RECALL + tokens) / max(tokens, 1)


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


def protected(
    items: Sequence[Item], results: Sequence[Result], preset: Preset, *, tokens: int
) -> frozenset[Place]:
    """Return the places of the results to leave alone, up to `tokens`; the one that crosses the limit is left whole.

    `results` are those of the middle that a prune could touch, oldest first; the newest are protected, or by value
    those that spare most rework for their tokens.
    """
    order: Iterable[Result] = reversed(results)
    if preset.by_value:
        order = _by_worth(items, [result for result in results if _can_shrink(result, preset)])
    kept: set[Place] = set()
    spent = 0
    for result in order:
        if spent >= tokens:
            break
        kept.add(result.place)
        spent += result.tokens + result.pictures
    return frozenset(kept)


def _can_shrink(result: Result, preset: Preset) -> bool:
    return len(result.text) > preset.elide_limit_chars or result.pictures > 0


def _by_worth(items: Sequence[Item], results: Sequence[Result]) -> list[Result]:
    """Return the results, those first that are worth most for their tokens; among equals the newest."""
    calls_after = _calls_after(items)

    def worth(result: Result) -> tuple[float, int]:
        tokens = result.tokens + result.pictures
        return worth_per_token(result.kind, len(result.text), tokens, calls_after[result.item]), result.number

    return sorted(results, key=worth, reverse=True)


def _calls_after(items: Sequence[Item]) -> list[int]:
    """Return for each item how many calls of the model came after it."""
    after = [0] * len(items)
    calls = 0
    for index in range(len(items) - 1, -1, -1):
        after[index] = calls
        calls += items[index].message.role == "assistant"
    return after
