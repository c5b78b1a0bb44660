"""The registry of mechanisms: what the files of this folder offer, and what all of them and plugins' could remove from a view.

Mechanisms are asked in order, plugins' first. What one would replace is not offered by the next, unless it shares its parts.
"""

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pkgutil import iter_modules

from msgspec.structs import replace

from lowwater.core import mechanisms
from lowwater.core.mechanisms.edits import offer_edits
from lowwater.core.mechanisms.mechanism import (
    EditContext,
    Mechanism,
    Offers,
    ProposalRequest,
    Reach,
    SummaryMechanism,
    Zones,
    survey,
)
from lowwater.core.mechanisms.results import PartPlace, calls_in, results_in
from lowwater.core.messages import Message, ToolCall, ToolResult
from lowwater.core.proposals import Proposal
from lowwater.core.view import Edited, Item, Summary


def _found() -> Iterator[Mechanism | SummaryMechanism]:
    for module in iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
        if module.name != __name__:
            yield from getattr(import_module(module.name), "MECHANISMS", ())


MECHANISMS = {each.name: each for each in sorted(_found(), key=lambda each: (each.order, each.name))}
"""All of ours by name, in order."""
EDITS = {name: each for name, each in MECHANISMS.items() if isinstance(each, Mechanism)}
SUMMARIES = {name: each for name, each in MECHANISMS.items() if isinstance(each, SummaryMechanism)}


def reach_of(name: str) -> Reach:
    """Return where a mechanism may change something; plugins' reach only the middle."""
    return MECHANISMS[name].reach if name in MECHANISMS else "middle"


def order_of(name: str) -> int:
    """Return when a mechanism is asked and its proposal carried out; plugins come first."""
    return MECHANISMS[name].order if name in MECHANISMS else 0


def shares_lost(request: ProposalRequest) -> dict[str, float]:
    """Return the share of later uses that is lost by each edit of the middle, by the mechanism's name."""
    edits = (*request.mechanisms, *EDITS.values())
    return {each.name: each.share_lost(request.context) for each in edits if each.reach == "middle"}


def propose(request: ProposalRequest) -> Offers:
    """Return what every mechanism could remove but those of providers, which are for sessions whose provider can."""
    surveyed = survey(request)
    zones = surveyed.zones
    request = replace(request, items=tuple(request.items))
    summaries = [each.propose(request, zones) for each in SUMMARIES.values() if not each.by_provider]
    found = (*propose_edits(request, zones), *(each for each in summaries if each is not None))
    return replace(surveyed, proposals=found)


def propose_edits(request: ProposalRequest, zones: Zones) -> list[Proposal]:
    """Return what the mechanisms could edit; parts that a mechanism does not share are offered by it alone."""
    items = request.items
    results = tuple(results_in(items, range(len(items)), calls_in(items)))
    context = replace(request.edit_context(), results=results)
    offers: list[Proposal] = []
    not_shared: frozenset[PartPlace] = frozenset()
    for mechanism in (*request.mechanisms, *EDITS.values()):
        if mechanism.reach == "last-resort" and not request.must_fit:
            continue
        offer = mechanism.propose(items, zones, context)
        if offer is not None and mechanism in request.mechanisms:
            offer = _within_middle(replace(offer, mechanism=mechanism.name, span=None, calls=0), items, zones)
        if offer is not None and not_shared:
            offer = exclude(offer, not_shared, items)
        if offer is None:
            continue
        offers.append(offer)
        places = places_in([offer])
        context = replace(context, taken=context.taken | places)
        not_shared = not_shared if mechanism.shares_parts else not_shared | places
    return offers


def apply_edits(request: ProposalRequest, items: Sequence[Item], proposal: Proposal) -> Sequence[Item]:
    """Return the items with one mechanism's edits; those of a plugin are checked."""
    context = request.edit_context()
    plugin = next((each for each in request.mechanisms if each.name == proposal.mechanism), None)
    if plugin is not None:
        return apply_checked(plugin, items, proposal, context)
    return EDITS[proposal.mechanism].apply(items, proposal, context)


# Plugins' edits, which are checked


def _within_middle(proposal: Proposal, items: Sequence[Item], zones: Zones) -> Proposal | None:
    """Return the proposal without parts that lie in head, tail or summaries; None if nothing is left."""
    allowed = [at for at in zones.middle if not isinstance(items[at], Summary)]
    return exclude(proposal, (), items, among=allowed)


def places_in(offers: Sequence[Proposal]) -> frozenset[PartPlace]:
    """Return the parts that these proposals would replace."""
    return frozenset((target.item, target.path) for each in offers for target in each.targets)


def exclude(
    proposal: Proposal,
    taken: Collection[PartPlace],
    items: Sequence[Item],
    *,
    among: Sequence[int] | None = None,
) -> Proposal | None:
    """Return the proposal without parts that are `taken` or outside the items `among`; None if nothing is left."""
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
    return offer_edits(proposal.mechanism, items, left, left=stays)


def _overlap(one: PartPlace, other: PartPlace) -> bool:
    """Return whether two parts are the same, or one lies inside the other."""
    shorter = min(len(one[1]), len(other[1]))
    return one[0] == other[0] and one[1][:shorter] == other[1][:shorter]


def apply_checked(
    mechanism: Mechanism, items: Sequence[Item], proposal: Proposal, context: EditContext
) -> list[Item]:
    """Return the items with a plugin's edits, as far as they are valid; everything else stays as it was.

    An edit is valid if it is one of the proposal's targets, belongs to the same message, makes it smaller, and keeps its
    tool calls and results.
    """
    after = mechanism.apply(items, proposal, context)
    wanted = {target.item for target in proposal.targets}
    if len(after) != len(items):
        return list(items)
    return [
        new if at in wanted and _is_valid_edit(old, new, context) else old
        for at, (old, new) in enumerate(zip(items, after, strict=True))
    ]


def _is_valid_edit(old: Item, new: Item, context: EditContext) -> bool:
    if isinstance(old, Summary) or not isinstance(new, Edited):
        return False
    original = old.original if isinstance(old, Edited) else old.message
    return (
        (new.number, new.original) == (old.number, original)
        and new.tokens < old.tokens
        and new.tokens == context.size(new.message)
        and _call_ids(new.message) == _call_ids(old.message)
    )


def _call_ids(message: Message) -> list[str]:
    """Return the ids of the tool calls that a message makes or answers, in order."""
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult)
    ]
