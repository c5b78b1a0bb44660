"""Where a view may be changed: the middle, between a protected head and a protected tail (SPEC C2)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec import Struct

from lowwater.values.groups import groups
from lowwater.values.view import Item, Summary


class Zones(Struct, frozen=True, kw_only=True):
    """Items before `head` and from `tail` on are protected; both fall between groups."""

    head: int
    tail: int

    @property
    def middle(self) -> range:
        """The indexes of the items between head and tail."""
        return range(self.head, max(self.head, self.tail))


def find_zones(items: Sequence[Item], *, first: int, last: int, tail_tokens: int) -> Zones:
    """Protect at least the `first` and `last` items, and newest ones worth up to `tail_tokens`.

    Alignment to groups only ever makes a protected zone larger. A summary is never head: the next one updates it.
    """
    cuts = [0, *(span.stop for span in groups([item.message for item in items]))]
    summary = next((index for index, item in enumerate(items) if isinstance(item, Summary)), len(items))
    head = cuts[bisect_left(cuts, min(first, len(items)))]
    head = min(head, cuts[bisect_right(cuts, summary) - 1])
    tail, spent = len(items), 0
    while tail > head:
        spent += items[tail - 1].tokens
        if spent > tail_tokens and len(items) - tail >= last:
            break
        tail -= 1
    tail = cuts[bisect_right(cuts, tail) - 1]
    return Zones(head=head, tail=max(head, tail))


def smallest_tail(items: Sequence[Item], zones: Zones) -> Zones:
    """Return the zones at the wall: the tail shrinks to the newest group, and what came after it."""
    spans = groups([item.message for item in items])
    newest = next(
        (
            span.start
            for span in reversed(spans)
            if len(span) > 1 or items[span.start].message.role == "assistant"
        ),
        zones.tail,
    )
    return Zones(head=zones.head, tail=max(zones.head, zones.tail, newest))
