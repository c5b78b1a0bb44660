"""The registry of mechanisms: what each could remove from a view, ours and plugins' alike.

`propose` asks every mechanism but `native`, which only a session whose provider can compact is offered (`native_proposal`).
Edits never overlap: plugins are asked first, and what one mechanism would replace is not offered by the next.
"""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from lowwater.core.decisions import unscaled
from lowwater.core.limits import Limits
from lowwater.core.mechanisms import condense, dedupe, elide, images, native, reasoning, summarize, truncate
from lowwater.core.mechanisms.edits import offer_edits
from lowwater.core.mechanisms.mechanism import (
    EditContext,
    Mechanism,
    Offers,
    ProposalRequest,
    Zones,
    newest_group,
    smallest_head,
    smallest_tail,
    survey,
)
from lowwater.core.mechanisms.results import PartPlace, ShownResult, calls_in, results_in
from lowwater.core.mechanisms.reuse import protected
from lowwater.core.messages import Message, ToolCall, ToolResult
from lowwater.core.proposals import Proposal
from lowwater.core.view import Edited, Item, Summary

EVERYTHING = "summarize_all"
"""The mechanism that summarises all but the newest exchange and, if it is not too large, the head."""
_SUMMARY_SHARES = (1.0, 0.85, 0.7, 0.5)
"""How much of the middle the summaries on offer replace."""


def propose(request: ProposalRequest) -> Offers:
    """Return what every mechanism could remove; proposals that edit parts do not overlap."""
    surveyed = survey(request)
    request = replace(request, items=tuple(request.items))
    plugin_edits = propose_plugin_edits(request.mechanisms, request.items, surveyed.zones, request.context)
    edits, taken = _edits(request, surveyed.zones), places_in(plugin_edits)
    if taken:
        edits = [edit and exclude(edit, taken, request.items) for edit in edits]
    found = [*plugin_edits, *edits, *_summaries(request, surveyed.zones)]
    return replace(surveyed, proposals=tuple(proposal for proposal in found if proposal is not None))


def _edits(request: ProposalRequest, zones: Zones) -> list[Proposal | None]:
    """Return what our mechanisms could edit; each is offered only what those before it left."""
    items, context = request.items, request.context
    results = results_in(items, range(len(items)), calls_in(items))
    spared = {tool for tool in {result.tool for result in results} if context.preset.protects(tool)}
    may_go = [result for result in results if result.tool not in spared]
    duplicates = dedupe.propose(items, zones, may_go, context)
    duplicated = places_in([duplicates]) if duplicates else frozenset[PartPlace]()
    middle = zones.middle
    outputs = [result for result in results if result.item in middle]
    prunable = [result for result in outputs if result.tool not in spared and result.place not in duplicated]
    protected_tokens = request.counted(request.limits.protected_tool_output)
    stays = protected(items, prunable, context.preset, tokens=protected_tokens)
    elided = [result for result in prunable if result.place not in stays]
    replaced = duplicated.union(result.place for result in elided)
    newest = newest_group(items, zones)
    left = [result for result in results if result.item < newest and result.place not in replaced]
    return [
        duplicates,
        elide.propose(items, elided, context),
        reasoning.propose(items, zones),
        images.propose(
            items,
            smallest_tail(items, zones) if request.too_large else zones,
            spare={result.place for result in outputs} - replaced,
        ),
        # Results that are never pruned are shortened only if there are no others.
        _shorten(request, [result for result in left if result.tool not in spared])
        or _shorten(request, left),
        truncate.propose_squeeze(items, context) if request.must_fit else None,
    ]


def _shorten(request: ProposalRequest, results: Sequence[ShownResult]) -> Proposal | None:
    """Propose to shorten long results in head and tail too, except in the newest exchange; for prompts that do not fit."""
    limit = wall_limit(request.limits, request.scale)
    return truncate.propose_for(request.items, results, request.context, limit=limit)


def wall_limit(limits: Limits, scale: float) -> int:
    """Return the largest tool result, in counted tokens, that stays whole when the prompt does not fit."""
    return max(500, unscaled(limits.most + 1, scale) // 8)


def _summaries(request: ProposalRequest, zones: Zones) -> list[Proposal | None]:
    items, leaf = request.items, request.settings.leaf
    target = request.counted(leaf.leaf_target_tokens)
    return [
        _summary(request, zones, summarize.NAME),
        condense.propose_leaf(items, zones, chunk=request.counted(leaf.leaf_chunk_tokens), target=target),
        condense.propose_condense(items, zones, target=target),
        _summary(request, _smallest_zones(request, zones), EVERYTHING),
    ]


def _summary(request: ProposalRequest, zones: Zones, name: str) -> Proposal | None:
    compression = request.settings.compression
    return summarize.propose(
        request.items,
        zones,
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=request.counted(request.limits.summary),
        name=name,
    )


def _smallest_zones(request: ProposalRequest, zones: Zones) -> Zones:
    """Return the zones for a prompt that does not fit: the tail is the newest exchange, and a large head shrinks to what was said first."""
    zones = smallest_tail(request.items, zones)
    head = sum(item.tokens for item in request.items[: zones.head])
    return (
        smallest_head(request.items, zones) if head > 2 * wall_limit(request.limits, request.scale) else zones
    )


def propose_summaries(request: ProposalRequest) -> list[Proposal]:
    """Return proposals to summarise the middle up to several legal cuts, the longest span first; for policies that compare prices."""
    items = tuple(request.items)
    zones = survey(request).zones
    compression = request.settings.compression
    offers: list[Proposal] = []
    for tail in _tails(items, zones):
        offer = summarize.propose(
            items,
            Zones(head=zones.head, tail=tail, cuts=zones.cuts),
            ratio=compression.summary_ratio,
            least=compression.summary_min_tokens,
            most=summarize.usual(
                items[zones.head : zones.tail], most=request.counted(request.limits.summary)
            ),
        )
        if offer is not None:
            offers.append(offer)
    return offers


def _tails(items: Sequence[Item], zones: Zones) -> list[int]:
    """Return the legal cuts nearest to each share of the middle, without duplicates."""
    whole = sum(items[at].tokens for at in zones.middle)
    cuts = [cut for cut in zones.cuts if zones.head < cut <= zones.tail]
    tokens_up_to: dict[int, int] = {}
    total = 0
    for at in zones.middle:
        total += items[at].tokens
        tokens_up_to[at + 1] = total
    nearest = [
        min(cuts, key=lambda cut: abs(tokens_up_to[cut] - share * whole)) for share in _SUMMARY_SHARES if cuts
    ]
    return list(dict.fromkeys(nearest))


def native_proposal(request: ProposalRequest) -> Proposal | None:
    """Return the proposal to have the provider compact everything before the tail; None if that gains nothing."""
    return native.propose(
        tuple(request.items), survey(request).zones, block_tokens=expected_summary_tokens(request)
    )


def expected_summary_tokens(request: ProposalRequest) -> int:
    """Return the expected length of a summary of everything before the tail, in counted tokens."""
    compression, replaced = request.settings.compression, request.items[: survey(request).zones.tail]
    return summarize.budget(
        replaced,
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=summarize.usual(replaced, most=request.counted(request.limits.summary)),
    )


# Plugins' mechanisms, whose edits are checked


def propose_plugin_edits(
    mechanisms: Sequence[Mechanism], items: Sequence[Item], zones: Zones, context: EditContext
) -> list[Proposal]:
    """Return what plugins' mechanisms propose to replace in the middle, without overlaps."""
    offers: list[Proposal] = []
    for mechanism in mechanisms:
        found = mechanism.propose(items, zones, context)
        if found is None:
            continue
        found = replace(found, mechanism=mechanism.name, span=None, calls=0)
        allowed = [at for at in zones.middle if not isinstance(items[at], Summary)]
        kept = exclude(found, places_in(offers), items, among=allowed)
        offers += [kept] if kept is not None else []
    return offers


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
