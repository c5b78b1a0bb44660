"""Where a view may be changed: in the middle, between a protected head and a protected tail."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.groups import legal_cuts
from lowwater.core.view import Item, Summary


class Zones(Struct, frozen=True, kw_only=True):
    """Items before `head` and from `tail` on are protected. Both indexes lie between groups, and `head` is at most `tail`."""

    head: int
    tail: int
    cuts: tuple[int, ...]
    """All indexes at which the view may be cut without splitting a group, both ends included."""

    @property
    def middle(self) -> range:
        """The indexes of the items between head and tail."""
        return range(self.head, self.tail)


def find_zones(items: Sequence[Item], *, first: int, last: int, tail_tokens: int) -> Zones:
    """Protect the `first` and the `last` items at least, and the newest items up to `tail_tokens`.

    Alignment to groups only makes a protected zone larger. A summary is never part of the head, because the next summary
    updates it.
    """
    cuts = tuple(legal_cuts([item.message for item in items]))
    head = cuts[bisect_left(cuts, min(first, len(items)))]
    summary = next((at for at in range(head) if isinstance(items[at], Summary)), head)
    head = _cut_before(cuts, summary)
    tail, spent = len(items), 0
    while tail > head:
        spent += items[tail - 1].tokens
        if spent > tail_tokens and len(items) - tail >= last:
            break
        tail -= 1
    return Zones(head=head, tail=max(head, _cut_before(cuts, tail)), cuts=cuts)


def smallest_tail(items: Sequence[Item], zones: Zones) -> Zones:
    """Return the zones at the wall: the tail shrinks to the newest group and what follows it.

    If the assistant has not said anything yet, only the newest message is protected.
    """
    last_answer = next(
        (at for at in range(len(items) - 1, -1, -1) if items[at].message.role == "assistant"),
        len(items) - 1,
    )
    newest = _cut_before(zones.cuts, max(0, last_answer))
    return Zones(head=zones.head, tail=max(zones.tail, newest), cuts=zones.cuts)


def newest_group(items: Sequence[Item], zones: Zones) -> int:
    """Return the index at which the newest group begins; what follows it counts as part of it."""
    return smallest_tail(items, Zones(head=0, tail=0, cuts=zones.cuts)).tail


def smallest_head(items: Sequence[Item], zones: Zones) -> Zones:
    """Return the zones at the wall with a head of only what precedes the first answer: system prompts and users' words."""
    first_answer = next(
        (at for at, item in enumerate(items) if item.message.role == "assistant" or item.message.results),
        len(items),
    )
    head = min(zones.head, _cut_before(zones.cuts, first_answer))
    # A head that reached into the newest group had kept the tail from beginning there.
    return Zones(head=head, tail=max(head, min(zones.tail, newest_group(items, zones))), cuts=zones.cuts)


def _cut_before(cuts: Sequence[int], index: int) -> int:
    return cuts[bisect_right(cuts, index) - 1]
