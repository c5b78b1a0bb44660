"""How likely content is to be used again, and which tool results pruning leaves alone for that reason."""

from collections.abc import Iterable, Sequence
from math import exp, sqrt

from lowwater.core.mechanisms.mechanism import EditContext, Zones
from lowwater.core.mechanisms.results import PartPlace, ShownResult, calls_in, unprotected
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
"""Expected uses of the first 1,000 characters of a result that is five calls old, by the class of its tool."""
_OTHER_USES = 0.06
_LENGTH_POWER = 0.75
"""Expected uses grow with this power of the length."""
YOUNG = 5
"""Calls after which a result's chance of use begins to fade."""
_RECALL = 10_000
"""The cost of one recall beside the content, in tokens: one more call over a warm prefix of some 100,000."""
_CHARS_PER_TOKEN = 4


def chance_of_use(tool: ToolClass, chars: int, calls_ago: int) -> float:
    """Return the chance that a result is used again, given its tool, its length, and the number of calls since."""
    fade = sqrt(YOUNG / max(YOUNG, calls_ago))
    return 1 - exp(-_USES.get(tool, _OTHER_USES) * (chars / 1_000) ** _LENGTH_POWER * fade)


def worth_per_token(tool: ToolClass, chars: int, tokens: int, calls_ago: int) -> float:
    """Return the expected tokens of rework that are saved by each token of a result that is kept."""
    return chance_of_use(tool, chars, calls_ago) * (_RECALL + tokens) / max(tokens, 1)


def chances_of_use(items: Sequence[Item]) -> list[float]:
    """Return for each item the chance that something in it is used again, by its tool, size and age."""
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


def spared(items: Sequence[Item], zones: Zones, context: EditContext) -> frozenset[PartPlace]:
    """Return the results in the middle that pruning leaves alone: those of never-prune tools, and the most valuable others."""
    outputs = [
        result
        for result in context.results
        if result.item in zones.middle and result.place not in context.taken
    ]
    prunable = unprotected(outputs, context.preset)
    stays = protected(items, prunable, context.preset, tokens=context.protected_tokens)
    return stays | ({result.place for result in outputs} - {result.place for result in prunable})


def protected(
    items: Sequence[Item], results: Sequence[ShownResult], preset: Preset, *, tokens: int
) -> frozenset[PartPlace]:
    """Return the places of the results that pruning leaves alone, up to `tokens`; the one that crosses the limit stays too.

    `results` are those of the middle that could be pruned, oldest first. Protected are the newest or, if the preset says
    `by_value`, those that save most rework per token.
    """
    order: Iterable[ShownResult] = reversed(results)
    if preset.by_value:
        order = _by_worth(items, [result for result in results if _can_shrink(result, preset)])
    kept: set[PartPlace] = set()
    spent = 0
    for result in order:
        if spent >= tokens:
            break
        kept.add(result.place)
        spent += result.tokens + result.pictures
    return frozenset(kept)


def _can_shrink(result: ShownResult, preset: Preset) -> bool:
    return len(result.text) > preset.elide_limit_chars or result.pictures > 0


def _by_worth(items: Sequence[Item], results: Sequence[ShownResult]) -> list[ShownResult]:
    """Return the results, those worth most per token first; among equals the newest."""
    calls_after = _calls_after(items)

    def worth(result: ShownResult) -> tuple[float, int]:
        tokens = result.tokens + result.pictures
        return worth_per_token(result.kind, len(result.text), tokens, calls_after[result.item]), result.number

    return sorted(results, key=worth, reverse=True)


def _calls_after(items: Sequence[Item]) -> list[int]:
    """Return for each item how many answers of the model came after it."""
    after = [0] * len(items)
    calls = 0
    for index in range(len(items) - 1, -1, -1):
        after[index] = calls
        calls += items[index].message.role == "assistant"
    return after
