"""`elide`: old tool results become placeholders that say what was there and how to get it back (SPEC C1, D, L)."""

from collections.abc import Callable, Mapping, Sequence

from lowwater.compact.making import Making, Result, calls_in, edit, is_protected, part_tokens, results_in
from lowwater.compact.offer import offer
from lowwater.compact.placeholder import placeholder
from lowwater.compact.superseded import find_superseded
from lowwater.compact.worth import chance_of_use
from lowwater.compact.zones import Zones
from lowwater.values.entries import Edit
from lowwater.values.parts import Text, ToolResult
from lowwater.values.proposal import Proposal, Target
from lowwater.values.tools import classify
from lowwater.values.view import Edited, Item, Original

NAME = "elide"
_PLAIN_LEAVES = 0.03


def propose(
    items: Sequence[Item],
    zones: Zones,
    making: Making,
    *,
    protect: int,
    skip: frozenset[tuple[int, tuple[int, ...]]],
) -> Proposal | None:
    """Offer every tool result in the middle that is long enough, but for `protect` tokens of those worth most.

    `skip` names the parts, by item and path, that another proposal of the same event already replaces.
    """
    preset = making.preset
    results = [
        result
        for result in results_in(items, zones.middle, calls_in(items))
        if not is_protected(result.tool, preset) and (result.item, result.path) not in skip
    ]
    kept = _kept(items, results, protect, by_value=preset.by_value)
    targets = [
        _target(items, result)
        for result in results
        if id(result) not in kept and len(result.part.text) > preset.elide_limit_chars
    ]
    leaves = _PLAIN_LEAVES if preset.plain_placeholders else making.digest_ratio + 0.01
    return offer(NAME, items, targets, leaves=leaves)


def apply(items: Sequence[Item], proposal: Proposal, making: Making) -> list[Item]:
    """Return the items with the proposal's results replaced, each only where its placeholder is smaller."""
    return replace_results(items, proposal, making, lambda result: _placeholder(result, making))


def replace_results(
    items: Sequence[Item], proposal: Proposal, making: Making, text_for: Callable[[Result], str]
) -> list[Item]:
    """Return the items with each target's content replaced by `text_for` it; an empty text leaves it as it is."""
    wanted: dict[int, set[tuple[int, ...]]] = {}
    for target in proposal.targets:
        wanted.setdefault(target.item, set()).add(target.path)
    replaced = list(items)
    for result in results_in(items, sorted(wanted), calls_in(items)):
        if result.path not in wanted[result.item]:
            continue
        text = text_for(result)
        if text:
            shown = ToolResult(
                call_id=result.part.call_id,
                parts=(Text(text=text),),
                is_error=result.part.is_error,
                extra=result.part.extra,
            )
            changed = edit(replaced[result.item], [Edit(path=result.path, by=shown)], making.size)
            if changed.tokens < replaced[result.item].tokens:
                replaced[result.item] = changed
    return replaced


def _placeholder(result: Result, making: Making) -> str:
    return placeholder(
        result.part.text,
        number=result.number,
        call=result.call,
        offers_recall=making.offers_recall,
        tokenizer=making.tokenizer,
        digest_ratio=making.digest_ratio,
        plain=making.preset.plain_placeholders,
    )


def _kept(items: Sequence[Item], results: Sequence[Result], protect: int, *, by_value: bool) -> set[int]:
    """Return the identities of the results that stay: newest first, or worth most per token, up to `protect` tokens."""
    order = list(reversed(results))
    if by_value:
        superseded = {again.result.number for again in find_superseded(results, 1)}
        ages = _calls_ago(items)
        order.sort(
            key=lambda result: (
                -chance_of_use(
                    classify(result.tool), ages[result.item], superseded=result.number in superseded
                )
            )
        )
    kept: set[int] = set()
    spent = 0
    for result in order:
        if spent >= protect:
            break
        kept.add(id(result))
        spent += _target(items, result).tokens
    return kept


def _calls_ago(items: Sequence[Item]) -> Mapping[int, int]:
    """Return for each item how many calls of the model came after it."""
    ages: dict[int, int] = {}
    calls = 0
    for index in range(len(items) - 1, -1, -1):
        ages[index] = calls
        calls += items[index].message.role == "assistant"
    return ages


def _target(items: Sequence[Item], result: Result) -> Target:
    item = items[result.item]
    assert isinstance(item, Original | Edited)
    return Target(item=result.item, path=result.path, tokens=part_tokens(item, result.part))
