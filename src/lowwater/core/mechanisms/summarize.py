"""`summarize`: the whole middle is replaced by one structured summary, which updates earlier ones."""

from collections.abc import Sequence

from lowwater.core.mechanisms.edits import newest_user
from lowwater.core.mechanisms.mechanism import Zones
from lowwater.core.mechanisms.spans import offer_span
from lowwater.core.messages import Span
from lowwater.core.proposals import Proposal
from lowwater.core.view import Item, Summary

NAME = "summarize"

_USUAL = 3_000
"""Tokens that a model usually writes, whatever its limit: of 72 summaries in recorded sessions, the median is 2,709 and the 90th percentile 4,142."""


def propose(
    items: Sequence[Item], zones: Zones, *, ratio: float, least: int, most: int, name: str = NAME
) -> Proposal | None:
    """Propose to summarise the middle, earlier summaries included.

    None if everything in it is a summary already, or the user's newest message, which would be repeated behind the summary.
    """
    newest = newest_user(items)
    if all(isinstance(items[at], Summary) or at == newest for at in zones.middle):
        return None
    middle = items[zones.head : zones.tail]
    span = Span(start=zones.head, stop=zones.tail)
    return offer_span(name, items, span, budget(middle, ratio=ratio, least=least, most=most))


def budget(middle: Sequence[Item], *, ratio: float, least: int, most: int) -> int:
    """Return how long the summary of these items may be: a share of them, within bounds.

    An earlier summary among them counts in full, so that it does not shrink with every update.
    """
    known = sum(item.tokens for item in middle if isinstance(item, Summary))
    raw = sum([item.tokens for item in middle]) - known
    return min(max(known + int(ratio * raw), least), most)


def usual(middle: Sequence[Item], *, most: int) -> int:
    """Return the expected length of a model's summary of these items: at least that of what it updates, at most `most`."""
    known = sum(item.tokens for item in middle if isinstance(item, Summary))
    return min(most, max(_USUAL, known))
