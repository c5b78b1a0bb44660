"""A mechanism that somebody else wrote: what it offers is held to the rules of ours, and so is what it makes of a view."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact.making import Making
from lowwater.compact.offer import offer
from lowwater.compact.results import Place
from lowwater.compact.zones import Zones
from lowwater.values.message import Message
from lowwater.values.parts import ToolCall, ToolResult
from lowwater.values.proposal import Proposal
from lowwater.values.view import Edited, Item, Summary

Propose = Callable[[Sequence[Item], Zones, Making], Proposal | None]
Apply = Callable[[Sequence[Item], Proposal, Making], Sequence[Item]]


class Mechanism(Struct, frozen=True, kw_only=True):
    """A way to edit parts of the middle of a view that takes no call of a model.

    `propose` says what could be replaced, `apply` replaces what of that was chosen: perhaps only some of the targets. Both see a view and
    nothing else, and give the same for the same.
    """

    name: str
    propose: Propose
    apply: Apply
    loses: float
    """Of the later uses of what it replaces, the share that is no longer in the view: 0 if nothing of use goes, 1 if all does."""


def offers_of(
    mechanisms: Sequence[Mechanism], items: Sequence[Item], zones: Zones, making: Making
) -> list[Proposal]:
    """Ask each what it could replace in the middle; what one offers is not offered by the next."""
    offers: list[Proposal] = []
    for mechanism in mechanisms:
        found = mechanism.propose(items, zones, making)
        if found is None:
            continue
        found = replace(found, mechanism=mechanism.name, span=None, calls=0)
        allowed = [at for at in zones.middle if not isinstance(items[at], Summary)]
        kept = without(found, places_of(offers), items, among=allowed)
        offers += [kept] if kept is not None else []
    return offers


def places_of(offers: Sequence[Proposal]) -> frozenset[Place]:
    """Return the parts that these would replace."""
    return frozenset((target.item, target.path) for each in offers for target in each.targets)


def without(
    proposal: Proposal,
    taken: Collection[Place],
    items: Sequence[Item],
    *,
    among: Sequence[int] | None = None,
) -> Proposal | None:
    """Return a proposal without the parts that are taken, or lie outside of the items `among`; None if nothing is left of it."""
    allowed = None if among is None else frozenset(among)
    left = [
        target
        for target in proposal.targets
        if (allowed is None or target.item in allowed)
        and not any(_overlap((target.item, target.path), place) for place in taken)
    ]
    if len(left) == len(proposal.targets) and left:
        return proposal if proposal.removes > 0 else None
    whole, kept = (sum(target.tokens for target in targets) for targets in (proposal.targets, left))
    stays = kept - proposal.removes * kept // whole if whole > 0 else kept
    return offer(proposal.mechanism, items, left, left=stays)


def applied(mechanism: Mechanism, items: Sequence[Item], proposal: Proposal, making: Making) -> list[Item]:
    """Return what a mechanism makes of a view: of the items it was to edit, those it edited as one may; all others as they were.

    An edited item stands for the same message, is smaller, and has the same calls and results.
    """
    after = mechanism.apply(items, proposal, making)
    wanted = {target.item for target in proposal.targets}
    if len(after) != len(items):
        return list(items)
    return [
        new if at in wanted and _is_lawful(old, new, making) else old
        for at, (old, new) in enumerate(zip(items, after, strict=True))
    ]


def _is_lawful(old: Item, new: Item, making: Making) -> bool:
    if isinstance(old, Summary) or not isinstance(new, Edited):
        return False
    original = old.original if isinstance(old, Edited) else old.message
    return (
        (new.number, new.original) == (old.number, original)
        and new.tokens < old.tokens
        and new.tokens == making.size(new.message)
        and _ids(new.message) == _ids(old.message)
    )


def _ids(message: Message) -> list[str]:
    """Return the calls a message makes and answers, in order."""
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def _overlap(one: Place, other: Place) -> bool:
    """Return whether one of two parts is, or stands inside, the other."""
    shorter = min(len(one[1]), len(other[1]))
    return one[0] == other[0] and one[1][:shorter] == other[1][:shorter]
