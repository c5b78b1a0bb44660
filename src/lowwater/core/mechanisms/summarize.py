"""`summarize`: the whole middle becomes one structured summary, updated from the one before."""

from collections.abc import Sequence

from lowwater.core.groups import Span
from lowwater.core.mechanisms.editing import newest_user
from lowwater.core.mechanisms.spans import offer_span
from lowwater.core.mechanisms.zones import Zones
from lowwater.core.proposals import Proposal
from lowwater.core.view import Item, Summary

NAME = "summarize"

_USUAL = 3_000
"""Tokens that a model writes, however many it may: of 72 summaries in recorded sessions half have 2,709 at most, nine in ten 4,142."""


def propose(
    items: Sequence[Item], zones: Zones, *, ratio: float, least: int, most: int, name: str = NAME
) -> Proposal | None:
    """Offer to summarise the middle, earlier summaries included.

    Nothing if all that is there is summarised already, or is the user's newest message, which would be repeated.
    """
    asked = newest_user(items)
    if all(isinstance(items[at], Summary) or at == asked for at in zones.middle):
        return None
    middle = items[zones.head : zones.tail]
    span = Span(start=zones.head, stop=zones.tail)
    return offer_span(name, items, span, budget(middle, ratio=ratio, least=least, most=most))


def budget(middle: Sequence[Item], *, ratio: float, least: int, most: int) -> int:
    """Return how long the summary of these items may be: a share of them, within bounds.

    A summary among them is such a share already and counts in full, so that updating it does not squeeze it each time.
    """
    known = sum(item.tokens for item in middle if isinstance(item, Summary))
    raw = sum([item.tokens for item in middle]) - known
    return min(max(known + int(ratio * raw), least), most)


def usual(middle: Sequence[Item], *, most: int) -> int:
    """Return how long a model's summary of these items is to be expected: no shorter than what it updates, and within `most`."""
    known = sum(item.tokens for item in middle if isinstance(item, Summary))
    return min(most, max(_USUAL, known))
