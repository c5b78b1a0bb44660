"""Putting a proposal together from what a mechanism would replace."""

from collections.abc import Sequence

from lowwater.values.proposal import Proposal, Target
from lowwater.values.view import Item


def offer(
    mechanism: str, items: Sequence[Item], targets: Sequence[Target], *, leaves: float = 0.0
) -> Proposal | None:
    """Return a proposal to replace `targets`, of which placeholders leave a share of `leaves`; None for nothing."""
    if not targets:
        return None
    gone = sum(target.tokens for target in targets)
    first = min(target.item for target in targets)
    removes = round(gone * (1 - leaves))
    behind = sum(item.tokens for item in items[first:])
    return Proposal(
        mechanism=mechanism,
        removes=removes,
        first_changed=first,
        survives=behind - removes,
        targets=tuple(targets),
    )
