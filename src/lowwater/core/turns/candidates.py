"""What the mechanisms propose, and the plans that a policy can buy: each with its price, the rent paid and what it would save per call."""

from collections.abc import Mapping, Sequence
from math import log

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.buy_rule import best_of, weighed
from lowwater.core.costs.losses import LOST_BEHIND_INDEX, LOST_BY_SUMMARY
from lowwater.core.costs.prices import nano_dollars
from lowwater.core.decisions import Candidates, PricedPlan, scaled
from lowwater.core.mechanisms import native, summarize
from lowwater.core.mechanisms.mechanism import survey
from lowwater.core.mechanisms.registry import propose, reach_of, shares_lost
from lowwater.core.mechanisms.reuse import chances_of_use
from lowwater.core.proposals import Proposal, Target
from lowwater.core.summary.index import expected_tokens
from lowwater.core.turns.decision_context import DecisionInputs, with_offers
from lowwater.core.turns.pricing import LEAST_SUMMARY, PricingContext

_LEAST_PART = 100
"""A plan that removes less than this fraction (one part in so many) of the prompt is dropped: rewrites come in batches."""
_MAX_CUTS = 48
"""How many places to start editing at are priced, spaced evenly by the tokens that they remove."""


def with_proposals(inputs: DecisionInputs) -> DecisionInputs:
    """Return the inputs with everything that the mechanisms propose; head and tail may change only if the prompt does not fit."""
    now = inputs.now
    offers = propose(replace(inputs.request, must_fit=not now.fits)).proposals
    if now.fits:
        offers = tuple(offer for offer in offers if reach_of(offer.mechanism) == "middle")
    ready = inputs.prefetched_summary.offer(inputs.request.items) if inputs.prefetched_summary else None
    candidates = _priced_candidates(inputs, offers, ready) if inputs.pricing else None
    if candidates is not None and not now.fits:
        from lowwater.core.turns.lasting import lasting_plan  # noqa: PLC0415 - loaded where a size forces a compaction

        candidates = replace(candidates, lasting=lasting_plan(inputs))
    if ready is not None and suffices(inputs, ready):
        offers = tuple(ready if offer.mechanism == summarize.NAME else offer for offer in offers)
    return with_offers(inputs, offers, candidates)


def suffices(inputs: DecisionInputs, summary: Proposal) -> bool:
    """Return whether this summary alone gets the prompt low enough where a size forces compaction.

    By hand, as much as possible is summarised, so none suffices; and how many bytes a summary frees is not known beforehand.
    """
    now, limits = inputs.now, inputs.now.limits
    target = limits.target if limits.cliff is None else min(limits.target, limits.cliff - limits.runway)
    return not now.forced and not inputs.request.too_large and now.after((summary,)) <= target


def _priced_candidates(
    inputs: DecisionInputs, offers: Sequence[Proposal], ready: Proposal | None
) -> Candidates:
    """Return the plans that can be made of these proposals, priced; `ready` is a summary that takes no call."""
    pricing, request = inputs.pricing, inputs.request
    assert pricing is not None
    lost = shares_lost(request)
    edits = [offer for offer in offers if offer.mechanism in lost]
    # Before the first call nothing is known of the cache: what was sent by others may be in it.
    spans = summarize.propose_priced(request) if pricing.summarizers or pricing.calls else []
    own = native.propose_block(request, survey(request).zones) if inputs.native is not None else None
    spans += [offer for offer in (own, ready) if offer is not None]
    return pricing.candidates(candidate_plans(edits, spans, pricing, lost=lost))


class _Piece(Struct, frozen=True, kw_only=True):
    """One part that an edit would replace; sizes in the model's tokens, money in nano-dollars."""

    offer: int
    """The index of the proposal it belongs to."""
    target: Target
    removes: int
    rent: int
    rework: int


class _Sums(Struct, kw_only=True):
    """The sums over several pieces."""

    removes: int = 0
    rent: int = 0
    rework: int = 0

    def add(self, piece: _Piece) -> None:
        self.removes += piece.removes
        self.rent += piece.rent
        self.rework += piece.rework


def candidate_plans(
    edits: Sequence[Proposal],
    summaries: Sequence[Proposal],
    pricing: PricingContext,
    *,
    lost: Mapping[str, float],
) -> list[PricedPlan]:
    """Return the best plan of edits alone and the best plan with a summary, unless they remove next to nothing.

    `lost` has the share of later uses that is lost by each mechanism of the edits, by name.
    """
    pieces = _pieces(edits, pricing, lost=lost)
    cuts = _cuts(pieces, pricing)
    found = (
        _with_steps(max(cuts, key=lambda cut: cut[1].rank), edits, pieces, pricing) if cuts else None,
        best_summary(_with_summaries(summaries, edits, pieces, pricing)),
    )
    least = pricing.prompt // _LEAST_PART
    return [plan for plan in found if plan is not None and plan.removes > least]


def plans_with_edits(
    edits: Sequence[Proposal], pricing: PricingContext, *, lost: Mapping[str, float]
) -> list[PricedPlan]:
    """Return the plans that make all edits from some item on, one for each starting item."""
    pieces = _pieces(edits, pricing, lost=lost)
    return [_with_steps(cut, edits, pieces, pricing) for cut in _cuts(pieces, pricing)]


def plans_with_summary(
    edits: Sequence[Proposal],
    summaries: Sequence[Proposal],
    pricing: PricingContext,
    *,
    lost: Mapping[str, float],
) -> list[PricedPlan]:
    """Return the plans that summarise a span, with all edits behind it."""
    return _with_summaries(summaries, edits, _pieces(edits, pricing, lost=lost), pricing)


def _with_summaries(
    summaries: Sequence[Proposal],
    edits: Sequence[Proposal],
    pieces: Sequence[_Piece],
    pricing: PricingContext,
) -> list[PricedPlan]:
    starts, chances = pricing.starts(), _chances(pricing)
    found = [_with_summary(offer, edits, pieces, pricing, starts, chances=chances) for offer in summaries]
    return [plan for plan in found if plan is not None]


def _chances(pricing: PricingContext) -> list[float]:
    """Return for each item the chance of a later use, corrected by the uses that this session has had."""
    return chances_of_use(pricing.items, log(pricing.experience.factor))


def _pieces(edits: Sequence[Proposal], pricing: PricingContext, *, lost: Mapping[str, float]) -> list[_Piece]:
    """Return the parts that are worth replacing if everything behind them has to be written again anyway, the last first."""
    chances = _chances(pricing)
    pieces: list[_Piece] = []
    for at, edit in enumerate(edits):
        whole = sum(target.tokens for target in edit.targets)
        for target in edit.targets:
            removes = scaled(edit.removes * target.tokens // max(whole, 1), pricing.scale)
            tokens = scaled(target.tokens, pricing.scale)
            piece = _Piece(
                offer=at,
                target=target,
                removes=removes,
                rent=pricing.rent(pricing.items[target.item], removes),
                rework=pricing.rework(lost[edit.mechanism] * chances[target.item], tokens),
            )
            written = removes * pricing.write_price // 1_000
            if piece.rework <= written + piece.rent:
                pieces.append(piece)
    return sorted(pieces, key=lambda piece: piece.target.item, reverse=True)


def _cuts(pieces: Sequence[_Piece], pricing: PricingContext) -> list[tuple[int, PricedPlan]]:
    """Return the plans that make all edits from some item on, priced but without their steps, each with how many `pieces` it takes."""
    step, starts = max(1, sum(piece.removes for piece in pieces) // _MAX_CUTS), pricing.starts()
    sums, next_cut, cuts = _Sums(), step, list[tuple[int, PricedPlan]]()
    for at, piece in enumerate(pieces):
        sums.add(piece)
        ended = at + 1 == len(pieces)
        if not ended and (sums.removes < next_cut or pieces[at + 1].target.item == piece.target.item):
            continue
        next_cut = sums.removes + step
        cuts.append((at + 1, _priced(sums, starts, piece.target.item, pricing)))
    return cuts


def _with_steps(
    cut: tuple[int, PricedPlan], edits: Sequence[Proposal], pieces: Sequence[_Piece], pricing: PricingContext
) -> PricedPlan:
    taken, priced = cut
    return replace(priced, plan=_plan(edits, pieces[:taken], pricing))


def _with_summary(
    offer: Proposal,
    edits: Sequence[Proposal],
    pieces: Sequence[_Piece],
    pricing: PricingContext,
    starts: Sequence[int],
    *,
    chances: Sequence[float],
) -> PricedPlan | None:
    """Return the plan to summarise a span, with all edits behind it, where everything is written again anyway."""
    span = offer.span
    assert span is not None
    replaced = starts[span.stop] - starts[span.start]
    removes = scaled(offer.removes, pricing.scale)
    cost = cost_of_summary(offer, pricing, starts)
    if cost is None:
        return None
    # Nothing is edited behind a provider's block: thinking there stays valid only if everything before it is as it was.
    is_native = offer.mechanism == native.NAME
    behind = [] if is_native else [piece for piece in pieces if piece.target.item >= span.stop]
    sums = _Sums()
    for piece in behind:
        sums.add(piece)
    share = removes / max(replaced, 1)
    lost = LOST_BEHIND_INDEX if pricing.offers_recall and not is_native else LOST_BY_SUMMARY
    for at in range(span.start, span.stop):
        tokens = starts[at + 1] - starts[at]
        sums.rent += pricing.rent(pricing.items[at], round(share * tokens))
        sums.rework += pricing.rework(lost * chances[at], tokens)
    sums.removes += removes
    priced = _priced(sums, starts, span.start, pricing, summary_cost=cost)
    return replace(priced, plan=(*_plan(edits, behind, pricing), offer))


def cost_of_summary(
    offer: Proposal, pricing: PricingContext, starts: Sequence[int], *, summary: int | None = None
) -> int | None:
    """Return the cost of the cheapest call that a proposal needs, in nano-dollars; None if no summarizer can take it.

    A proposal without calls has its summary already, and costs nothing; neither does one that no model may write, because it
    is extracted from the transcript. `summary` is the length of the summary in the model's tokens, if a better estimate is
    known than what the proposal says.
    """
    span = offer.span
    assert span is not None
    if not offer.calls or (not pricing.summarizers and offer.mechanism != native.NAME):
        return 0
    replaced = starts[span.stop] - starts[span.start]
    tokens = (
        replaced - scaled(offer.removes, pricing.scale) - index_of(offer, pricing)
        if summary is None
        else summary
    )
    if offer.mechanism == native.NAME:
        call = pricing.native_call(upto=starts[span.stop], summary=max(LEAST_SUMMARY, tokens))
        return None if call is None else call.cost or 0
    calls = pricing.summary_calls(replaced=replaced, summary=max(LEAST_SUMMARY, tokens))
    return (calls[0][0].cost or 0) if calls else None


def index_of(offer: Proposal, pricing: PricingContext) -> int:
    """Return the expected size of the index behind a proposal's summary, which no model writes, in the model's tokens."""
    span = offer.span
    if span is None or not pricing.offers_recall or offer.mechanism == native.NAME:
        return 0
    return scaled(expected_tokens(pricing.items[span.start : span.stop]), pricing.scale)


def best_summary(plans: Sequence[PricedPlan]) -> PricedPlan | None:
    """Return the best of several plans with a summary; one whose summary is already written is preferred if it is due.

    Another plan wins only if the rent on what it removes in addition has reached the difference in price.
    """
    ready = next((plan for plan in plans if plan.is_due and not any(step.calls for step in plan.plan)), None)
    if ready is None:
        return best_of(plans)
    better = [plan for plan in plans if plan.rent - plan.price > ready.rent - ready.price]
    return best_of(better) or ready


def _priced(
    sums: _Sums, starts: Sequence[int], item: int, pricing: PricingContext, *, summary_cost: int = 0
) -> PricedPlan:
    """Return the price of removing `sums.removes` tokens starting at `item`; the plan itself is filled in by the caller."""
    first_changed = starts[item]
    purchase = pricing.purchase(first_changed=first_changed, removes=sums.removes, summary_cost=summary_cost)
    kept = min(first_changed, pricing.warmth.expected(first_changed))
    price = purchase.price + sums.rework + pricing.disturbance
    saves = nano_dollars(sums.removes * pricing.prices.cache_read)
    plan = PricedPlan(
        plan=(),
        removes=sums.removes,
        still_cached=kept,
        rewritten=max(0, pricing.prompt - sums.removes - kept),
        rent=sums.rent,
        price=price,
        summary=summary_cost,
        rework=sums.rework,
        disturbance=pricing.disturbance,
        saves=saves,
    )
    return weighed(
        plan,
        pricing.outlook,
        usual=price + pricing.usual_surcharge(starts[pricing.tail]),
        worst=pricing.risk(price, first_changed=first_changed),
    )


def _plan(
    edits: Sequence[Proposal], pieces: Sequence[_Piece], pricing: PricingContext
) -> tuple[Proposal, ...]:
    """Return the proposals, restricted to these pieces, in the order of `edits`."""
    plan: list[Proposal] = []
    for at, edit in enumerate(edits):
        targets = [piece.target for piece in reversed(pieces) if piece.offer == at]
        if not targets:
            continue
        whole = sum(target.tokens for target in edit.targets)
        removes = edit.removes * sum(target.tokens for target in targets) // max(whole, 1)
        first = min(target.item for target in targets)
        behind = sum(item.tokens for item in pricing.items[first:])
        plan.append(
            replace(
                edit,
                removes=removes,
                first_changed=first,
                survives=max(0, behind - removes),
                targets=tuple(targets),
            )
        )
    return tuple(plan)
