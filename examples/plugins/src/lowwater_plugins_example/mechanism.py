"""`arguments`: long texts in the arguments of old tool calls, such as whole files, become a line that says how to get them back."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lowwater.plugins import (
    Edit,
    EditContext,
    Item,
    Mechanism,
    Proposal,
    Summary,
    Target,
    ToolCall,
    Zones,
    edit_if_smaller,
    offer_edits,
    share_of_tokens,
    shown_parts,
    way_back,
)

NAME = "arguments"
_LONG = 400
"""The length in characters from which an argument is worth replacing."""
_LINE = 20
"""The tokens of the line that replaces it."""


def propose(items: Sequence[Item], zones: Zones, context: EditContext) -> Proposal | None:
    """Propose every call in the middle that has a long text among its arguments."""
    targets: list[Target] = []
    left = 0
    for at in zones.middle:
        item = items[at]
        if isinstance(item, Summary):
            continue
        for path, part in shown_parts(item):
            if isinstance(part, ToolCall) and (shorter := _shortened(part, item.number, context)):
                tokens = share_of_tokens(item.tokens, item.message.parts, [part])
                targets.append(Target(item=at, path=path, tokens=tokens))
                left += min(tokens, tokens * len(shorter.arguments) // len(part.arguments) + _LINE)
    return offer_edits(NAME, items, targets, left=left)


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items with the proposal's calls shortened, each only where that makes it smaller."""
    kept = list(items)
    for target in proposal.targets:
        item = kept[target.item]
        call = dict(shown_parts(item)).get(target.path)
        if isinstance(call, ToolCall) and not isinstance(item, Summary):
            shorter = _shortened(call, item.number, context)
            edits = [Edit(path=target.path, by=shorter)] if shorter else []
            kept[target.item] = edit_if_smaller(item, edits, context.size)
    return kept


def _shortened(call: ToolCall, number: int, context: EditContext) -> ToolCall | None:
    """Return the call with a line in place of each long text; None if it has none, or its arguments are no JSON object."""
    if len(call.arguments) < _LONG:
        return None
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
    back = way_back(number, None, offers_recall=context.offers_recall)
    shorter = {
        name: f"[{len(value):,} chars elided · {back}]" if _is_long(value) else value
        for name, value in arguments.items()
    }
    return None if shorter == arguments else replace(call, arguments=msgspec.json.encode(shorter).decode())


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) >= _LONG


MECHANISM = Mechanism(
    name=NAME,
    propose=propose,
    apply=apply,
    loses=0.3,  # not measured; the value of `images`, because a file can be read again, too
    label="long arguments",
    sentence="Cut long texts out of the arguments of old tool calls",
)
