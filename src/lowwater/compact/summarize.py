"""`summarize`: the whole middle becomes one structured summary, updated from the one before (SPEC C3)."""

from collections.abc import Sequence

from lowwater.compact.spans import offer_span
from lowwater.compact.zones import Zones
from lowwater.values.groups import Span
from lowwater.values.proposal import Proposal
from lowwater.values.view import Item, Summary

NAME = "summarize"


def propose(
    items: Sequence[Item], zones: Zones, *, ratio: float, least: int, most: int, name: str = NAME
) -> Proposal | None:
    """Offer to summarise the middle, earlier summaries included; nothing if only such a summary is there."""
    span = Span(start=zones.head, stop=zones.tail)
    middle = items[span.start : span.stop]
    if all(isinstance(item, Summary) for item in middle):
        return None
    return offer_span(name, items, span, budget(middle, ratio=ratio, least=least, most=most))


def budget(middle: Sequence[Item], *, ratio: float, least: int, most: int) -> int:
    """Return how long the summary of these items may be: a share of them, within bounds."""
    return min(max(int(ratio * sum(item.tokens for item in middle)), least), most)
