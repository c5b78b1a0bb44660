"""Which tool output in the middle a prune leaves alone: the newest, or what is worth most (docs/specification.md: D; docs/economics.md)."""

from collections.abc import Iterable, Sequence

from lowwater.compact.results import Place, Result
from lowwater.compact.worth import worth_per_token
from lowwater.values.preset import Preset
from lowwater.values.view import Item


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
