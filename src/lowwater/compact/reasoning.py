"""`reasoning`: old thinking goes; it was for the turn it was thought in.

Thinking that a model binds to its prefix cannot stay behind a change at all, in the tail either.
"""

from collections.abc import Iterable, Sequence

from lowwater.compact.making import Making, edit, part_tokens
from lowwater.compact.offer import offer
from lowwater.compact.zones import Zones
from lowwater.values.entries import Edit
from lowwater.values.parts import Thinking
from lowwater.values.proposal import Proposal, Target
from lowwater.values.view import Edited, Item, Original, parts_of

NAME = "reasoning"


def propose(items: Sequence[Item], zones: Zones) -> Proposal | None:
    """Offer the thinking in the middle."""
    return offer(NAME, items, _thinking(items, zones.middle))


def apply(items: Sequence[Item], proposal: Proposal, making: Making) -> list[Item]:
    """Return the items without the proposal's thinking."""
    return _without(items, proposal.targets, making)


def strip_behind(items: Sequence[Item], first_changed: int, making: Making) -> list[Item]:
    """Return the items without any thinking behind `first_changed`, for models that bind thinking to the prefix."""
    return _without(items, _thinking(items, range(first_changed, len(items))), making)


def _without(items: Sequence[Item], targets: Iterable[Target], making: Making) -> list[Item]:
    kept = list(items)
    for target in targets:
        kept[target.item] = edit(kept[target.item], [Edit(path=target.path, by=None)], making.size)
    return kept


def _thinking(items: Sequence[Item], indexes: Iterable[int]) -> list[Target]:
    """Find thinking; a message that is nothing but thinking keeps it, for it may not be left empty."""
    found: list[Target] = []
    for index in indexes:
        item = items[index]
        if not isinstance(item, Original | Edited):
            continue
        parts = [(path, part) for path, part in parts_of(item) if len(path) == 1]
        if all(isinstance(part, Thinking) for _, part in parts):
            continue
        for path, part in parts:
            if isinstance(part, Thinking):
                found.append(Target(item=index, path=path, tokens=part_tokens(item, part)))
    return found
