"""Putting a proposal together from what a mechanism would replace."""

from collections.abc import Sequence

from lowwater.values.proposal import Proposal, Target
from lowwater.values.view import Item


def offer(
    mechanism: str, items: Sequence[Item], targets: Sequence[Target], *, left: int = 0
) -> Proposal | None:
    """Return a proposal to replace `targets`, of which `left` tokens stay in all; None if that is no gain."""
    removes = sum(target.tokens for target in targets) - left
    if removes <= 0:
        return None
    first = min(target.item for target in targets)
    behind = sum([item.tokens for item in items[first:]])
    return Proposal(
        mechanism=mechanism,
        removes=removes,
        first_changed=first,
        survives=max(0, behind - removes),
        targets=tuple(targets),
    )
