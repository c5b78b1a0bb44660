"""Every mechanism, ours and plugins', and everything they offer for a view."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lowwater.core.decisions import counted
from lowwater.core.limits import Limits
from lowwater.core.mechanisms import condense, dedupe, elide, images, reasoning, summarize, truncate
from lowwater.core.mechanisms.editing import EditContext, offer
from lowwater.core.mechanisms.results import Place, Result, calls_in, results_in
from lowwater.core.mechanisms.reuse import protected
from lowwater.core.mechanisms.zones import Zones, find_zones, newest_group, smallest_head, smallest_tail
from lowwater.core.messages import Message, ToolCall, ToolResult
from lowwater.core.proposals import Proposal
from lowwater.core.view import Edited, Item, Summary
from lowwater.settings import Settings

Propose = Callable[[Sequence[Item], Zones, EditContext], Proposal | None]
Apply = Callable[[Sequence[Item], Proposal, EditContext], Sequence[Item]]


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


def propose_plugin_edits(
    mechanisms: Sequence[Mechanism], items: Sequence[Item], zones: Zones, context: EditContext
) -> list[Proposal]:
    """Ask each what it could replace in the middle; what one offers is not offered by the next."""
    offers: list[Proposal] = []
    for mechanism in mechanisms:
        found = mechanism.propose(items, zones, context)
        if found is None:
            continue
        found = replace(found, mechanism=mechanism.name, span=None, calls=0)
        allowed = [at for at in zones.middle if not isinstance(items[at], Summary)]
        kept = without(found, places_in(offers), items, among=allowed)
        offers += [kept] if kept is not None else []
    return offers


def places_in(offers: Sequence[Proposal]) -> frozenset[Place]:
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


def apply_checked(
    mechanism: Mechanism, items: Sequence[Item], proposal: Proposal, context: EditContext
) -> list[Item]:
    """Return what a mechanism makes of a view: of the items it was to edit, those it edited as one may; all others as they were.

    An edited item stands for the same message, is smaller, and has the same calls and results.
    """
    after = mechanism.apply(items, proposal, context)
    wanted = {target.item for target in proposal.targets}
    if len(after) != len(items):
        return list(items)
    return [
        new if at in wanted and _is_lawful(old, new, context) else old
        for at, (old, new) in enumerate(zip(items, after, strict=True))
    ]


def _is_lawful(old: Item, new: Item, context: EditContext) -> bool:
    if isinstance(old, Summary) or not isinstance(new, Edited):
        return False
    original = old.original if isinstance(old, Edited) else old.message
    return (
        (new.number, new.original) == (old.number, original)
        and new.tokens < old.tokens
        and new.tokens == context.size(new.message)
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


EVERYTHING = "summarize_all"


class Offers(Struct, frozen=True, kw_only=True):
    """What could be done to a view, and the zones it was worked out for."""

    zones: Zones
    proposals: tuple[Proposal, ...]
    outside_tail: int
    """Raw tokens between head and tail, as counted."""


class ProposalRequest(Struct, frozen=True, kw_only=True):
    """What the mechanisms are asked about; limits are in the model's tokens, `scale` times the counted ones."""

    items: Sequence[Item]
    context: EditContext
    limits: Limits
    settings: Settings
    scale: float = 1.0
    system_in_preamble: bool = False
    mechanisms: tuple[Mechanism, ...] = ()
    """Those that others wrote; they are asked before ours."""
    must_fit: bool = False
    """The prompt is larger than it may be: head, tail and newest exchange may be shortened too."""
    too_large: bool = False
    """The request has more bytes than its provider takes: pictures in the tail may go too."""
    memo: tuple[tuple[object, ...], Offers] | None = None
    """The survey once it was made, and of what; never set it."""

    def counted(self, tokens: int) -> int:
        """Return the model's tokens as counted ones."""
        return counted(tokens, self.scale)


def survey(asked: ProposalRequest) -> Offers:
    """Find the zones and ask no mechanism yet: most turns are decided without."""
    about = (asked.items, asked.limits, asked.settings, asked.scale, asked.system_in_preamble)
    if asked.memo is None or any(was is not now for was, now in zip(asked.memo[0], about, strict=True)):
        force_setattr(asked, "memo", (about, _survey(asked)))
    assert asked.memo is not None
    return asked.memo[1]


def _survey(asked: ProposalRequest) -> Offers:
    compression = asked.settings.compression
    zones = find_zones(
        asked.items,
        first=max(0, compression.protect_first_n - asked.system_in_preamble),
        last=compression.protect_last_n,
        tail_tokens=asked.counted(asked.limits.tail),
    )
    middle = asked.items[zones.head : zones.tail]
    raw = sum([item.tokens for item in middle if not isinstance(item, Summary)])
    return Offers(zones=zones, proposals=(), outside_tail=raw)


def propose(asked: ProposalRequest) -> Offers:
    """Ask every mechanism what it could remove; proposals that edit parts do not overlap."""
    surveyed = survey(asked)
    asked = replace(asked, items=tuple(asked.items))
    theirs = propose_plugin_edits(asked.mechanisms, asked.items, surveyed.zones, asked.context)
    ours, taken = _edits(asked, surveyed.zones), places_in(theirs)
    if taken:
        ours = [offer and without(offer, taken, asked.items) for offer in ours]
    found = [*theirs, *ours, *_summaries(asked, surveyed.zones)]
    return replace(surveyed, proposals=tuple(proposal for proposal in found if proposal is not None))


def wall_limit(limits: Limits, scale: float) -> int:
    """Return the largest tool result, in counted tokens, when fitting comes before keeping."""
    return max(500, counted(limits.most + 1, scale) // 8)


def _edits(asked: ProposalRequest, zones: Zones) -> list[Proposal | None]:
    items, context = asked.items, asked.context
    results = results_in(items, range(len(items)), calls_in(items))
    spared = {tool for tool in {result.tool for result in results} if context.preset.protects(tool)}
    usual = [result for result in results if result.tool not in spared]
    repeated = dedupe.propose(items, zones, usual, context)
    replaced = {(target.item, target.path) for target in repeated.targets} if repeated else set()
    middle = zones.middle
    outputs = [result for result in results if result.item in middle]
    prunable = [result for result in outputs if result.tool not in spared and result.place not in replaced]
    protect = asked.counted(asked.limits.protected_tool_output)
    kept = protected(items, prunable, context.preset, tokens=protect)
    going = [result for result in prunable if result.place not in kept]
    gone = replaced.union(result.place for result in going)
    newest = newest_group(items, zones)
    left = [result for result in results if result.item < newest and result.place not in gone]
    return [
        repeated,
        elide.propose(items, going, context),
        reasoning.propose(items, zones),
        images.propose(
            items,
            smallest_tail(items, zones) if asked.too_large else zones,
            spare={result.place for result in outputs} - gone,
        ),
        _shorter(asked, [result for result in left if result.tool not in spared]) or _shorter(asked, left),
        truncate.propose_squeeze(items, context) if asked.must_fit else None,
    ]


def _shorter(asked: ProposalRequest, results: Sequence[Result]) -> Proposal | None:
    """Offer what is only allowed when nothing else fits: outputs shortened, in head and tail too, but for the newest exchange.

    Results that are never pruned are offered only when no other is left to shorten.
    """
    limit = wall_limit(asked.limits, asked.scale)
    return truncate.propose_for(asked.items, results, asked.context, limit=limit)


def _summaries(asked: ProposalRequest, zones: Zones) -> list[Proposal | None]:
    items, leaf = asked.items, asked.settings.leaf
    target = asked.counted(leaf.leaf_target_tokens)
    return [
        _summary(asked, zones, summarize.NAME),
        condense.propose_leaf(items, zones, chunk=asked.counted(leaf.leaf_chunk_tokens), target=target),
        condense.propose_condense(items, zones, target=target),
        _summary(asked, _smallest(asked, zones), EVERYTHING),
    ]


def _smallest(asked: ProposalRequest, zones: Zones) -> Zones:
    """Return the zones where fitting comes before keeping: the newest exchange is tail, and a large head is only what was said first."""
    zones = smallest_tail(asked.items, zones)
    head = sum(item.tokens for item in asked.items[: zones.head])
    return smallest_head(asked.items, zones) if head > 2 * wall_limit(asked.limits, asked.scale) else zones


def _summary(asked: ProposalRequest, zones: Zones, name: str) -> Proposal | None:
    compression = asked.settings.compression
    return summarize.propose(
        asked.items,
        zones,
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=asked.counted(asked.limits.summary),
        name=name,
    )


_SHARES = (1.0, 0.85, 0.7, 0.5)
"""Of the tokens between head and tail; the first is all of them."""


def summaries(asked: ProposalRequest) -> list[Proposal]:
    """Return summaries of the middle up to several legal cuts, the longest first."""
    items = tuple(asked.items)
    zones = survey(asked).zones
    compression = asked.settings.compression
    offers: list[Proposal] = []
    for tail in _tails(items, zones):
        offer = summarize.propose(
            items,
            Zones(head=zones.head, tail=tail, cuts=zones.cuts),
            ratio=compression.summary_ratio,
            least=compression.summary_min_tokens,
            most=summarize.usual(items[zones.head : zones.tail], most=asked.counted(asked.limits.summary)),
        )
        if offer is not None:
            offers.append(offer)
    return offers


def _tails(items: Sequence[Item], zones: Zones) -> list[int]:
    """Return the legal cuts nearest to each share of the middle, without repetition."""
    whole = sum(items[at].tokens for at in zones.middle)
    cuts = [cut for cut in zones.cuts if zones.head < cut <= zones.tail]
    reached: dict[int, int] = {}
    spent = 0
    for at in zones.middle:
        spent += items[at].tokens
        reached[at + 1] = spent
    nearest = [min(cuts, key=lambda cut: abs(reached[cut] - share * whole)) for share in _SHARES if cuts]
    return list(dict.fromkeys(nearest))
