"""`leaf` and `condense`: the oldest raw chunk becomes a summary, several summaries become one deeper one (SPEC E)."""

from collections.abc import Sequence

from lowwater.compact.spans import offer_span
from lowwater.compact.zones import Zones
from lowwater.values.groups import Span, groups
from lowwater.values.proposal import Proposal
from lowwater.values.view import Item, Summary

LEAF = "leaf"
CONDENSE = "condense"
FAN_IN = 4


def propose_leaf(items: Sequence[Item], zones: Zones, *, chunk: int, target: int) -> Proposal | None:
    """Offer the oldest raw items of the middle, up to `chunk` tokens in whole groups, as one summary."""
    start = next((index for index in zones.middle if not isinstance(items[index], Summary)), None)
    if start is None:
        return None
    stop, spent = start, 0
    for span in groups([item.message for item in items[start : zones.tail]]):
        tokens = sum(item.tokens for item in items[start + span.start : start + span.stop])
        holds_summary = any(
            isinstance(item, Summary) for item in items[start + span.start : start + span.stop]
        )
        if holds_summary or (spent and spent + tokens > chunk):
            break
        stop, spent = start + span.stop, spent + tokens
    return offer_span(LEAF, items, Span(start=start, stop=stop), target)


def propose_condense(
    items: Sequence[Item], zones: Zones, *, target: int, fan_in: int = FAN_IN
) -> Proposal | None:
    """Offer the oldest run of at least `fan_in` neighbouring summaries as one."""
    start = None
    for index in [*zones.middle, zones.middle.stop]:
        in_run = index < zones.middle.stop and isinstance(items[index], Summary)
        if in_run and start is None:
            start = index
        if not in_run and start is not None:
            if index - start >= fan_in:
                return offer_span(CONDENSE, items, Span(start=start, stop=index), target)
            start = None
    return None


def depth_of(items: Sequence[Item], span: Span) -> int:
    """Return how deep a summary of this span is: one above the deepest summary in it."""
    depths = [item.depth for item in items[span.start : span.stop] if isinstance(item, Summary)]
    return 1 + max(depths, default=0)
