"""What a decision is based on: sizes and limits, what the cache should hold, the mechanisms' proposals and their prices.

`decision_context` gathers what costs little; `with_proposals` adds what the mechanisms propose, if that can make a difference.
"""

from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.costs.prices import with_fallback_prices
from lowwater.core.decisions import Candidates, Compact, DecisionContext, effective_size, scaled
from lowwater.core.limits import TURNS_BETWEEN, Limits, derive_limits
from lowwater.core.mechanisms import native, summarize
from lowwater.core.mechanisms.registry import ProposalRequest, propose, propose_summaries, survey
from lowwater.core.policies.at_threshold import INTO_TAIL, MIDDLE_EDITS, auto_threshold
from lowwater.core.proposals import Proposal
from lowwater.core.turns.cache import lifetime_of, marks_of, prompt_layout, warmth_of
from lowwater.core.turns.candidates import Pricing, candidate_plans, cost_of_summary
from lowwater.core.turns.state import (
    PrefetchedSummary,
    PromptLayout,
    RecheckBackoff,
    Setup,
    State,
    recheck_backoff,
)
from lowwater.core.turns.summaries import Ladder
from lowwater.core.view import Item, Summary, bytes_of


class DecisionInputs(Struct, frozen=True, kw_only=True):
    """What the policy sees, and what its proposals and prices are worked out from."""

    now: DecisionContext
    request: ProposalRequest
    pricing: Pricing | None = None
    """Present if the policy compares prices."""
    laid: PromptLayout | None = None
    outside: int = 0
    """The number of the newest message that is not in the tail; 0 if all are."""
    parked: PrefetchedSummary | None = None
    """The prefetched summary, if it may be used now."""
    native: int | None = None
    """The summarizer (its rung) whose provider can compact by itself; None if there is none."""


def decision_context(state: State, setup: Setup, at: float, *, forced: bool = False) -> DecisionInputs:
    """Return what a decision is based on, without the mechanisms' proposals; `forced` if compaction was requested by hand."""
    limits = limits_for(state, setup)
    view = state.ledger.view
    scale = state.calibration.scale
    size = bytes_of(view) if limits.max_bytes else 0
    request = ProposalRequest(
        items=view.items,
        context=setup.edit_context(offers_recall=state.offers_recall),
        limits=limits,
        settings=setup.settings,
        scale=scale,
        system_in_preamble=bool(view.system),
        mechanisms=setup.mechanisms,
        too_large=limits.max_bytes is not None and size > limits.max_bytes,
    )
    surveyed = survey(request)
    pricing = _pricing(state, setup, surveyed.zones.tail, at) if setup.preset.priced else None
    now = DecisionContext(
        at=at,
        prompt=_prompt(state, setup),
        messages=len(view.items),
        outside_tail=round(scale * surveyed.outside_tail),
        limits=limits,
        bytes=size,
        scale=scale,
        forced=forced,
        enabled=setup.settings.compression.enabled,
        growth=state.growth,
        past=state.past,
        market=_candidates_so_far(state, pricing) if pricing else None,
    )
    return DecisionInputs(
        now=now,
        request=request,
        pricing=pricing,
        laid=pricing.laid if pricing else state.laid,
        outside=_newest_number(view.items[: surveyed.zones.tail]),
        parked=state.parked if state.parked is not None and state.parked.is_ready(request) else None,
        native=native_rung(state, setup, at),
    )


def with_proposals(inputs: DecisionInputs) -> DecisionInputs:
    """Return the inputs with everything that the mechanisms propose; head and tail may change only if the prompt does not fit."""
    now = inputs.now
    offers = propose(replace(inputs.request, must_fit=not now.fits)).proposals
    if now.fits:
        offers = tuple(offer for offer in offers if offer.mechanism not in INTO_TAIL)
    ready = inputs.parked.offer(inputs.request.items) if inputs.parked else None
    candidates = _priced_candidates(inputs, offers, ready) if inputs.pricing else None
    if ready is not None and suffices(inputs, ready):
        offers = tuple(ready if offer.mechanism == summarize.NAME else offer for offer in offers)
    return replace(inputs, now=replace(now, proposals=offers, market=candidates))


def _candidates_so_far(state: State, pricing: Pricing) -> Candidates:
    """Return the candidates before the mechanisms are asked; during a recheck pause the plans are those of the last look."""
    candidates = pricing.candidates()
    rest = state.rest if candidates.warm == "warm" else None
    rests = rest is not None and rest.lasts(meter=state.meter.total, prompt=pricing.prompt)
    seen = state.market.bargains if rests and state.market is not None else ()
    held = max(0, state.held_until - state.totals.turns)
    return replace(candidates, rests=rests, held=held, bargains=seen)


def _priced_candidates(
    inputs: DecisionInputs, offers: Sequence[Proposal], ready: Proposal | None
) -> Candidates:
    """Return the plans that can be made of these proposals, priced; `ready` is a summary that takes no call."""
    pricing, context = inputs.pricing, inputs.request.context
    assert pricing is not None
    lost = {mechanism.name: mechanism.loses for mechanism in inputs.request.mechanisms}
    edits = [offer for offer in offers if offer.mechanism in (*MIDDLE_EDITS, *lost)]
    spans = propose_summaries(inputs.request) if pricing.summarizers else []
    own = native_proposal(inputs.request) if inputs.native is not None else None
    spans += [offer for offer in (own, ready) if offer is not None]
    digests = context.digest_ratio > 0 and not context.preset.plain_placeholders
    return pricing.candidates(candidate_plans(edits, spans, pricing, digests=digests, lost=lost))


def next_recheck(state: State, inputs: DecisionInputs) -> RecheckBackoff | None:
    """Return until when the mechanisms need not be asked again: later if they just were, and nothing was nearly due."""
    pricing, candidates = inputs.pricing, inputs.now.market
    if pricing is None or candidates is None or candidates.rests or candidates.is_quiet:
        return state.rest
    return recheck_backoff(
        candidates,
        meter=state.meter.total,
        read_price=pricing.prices.cache_read,
        prompt=pricing.prompt,
    )


def _prompt(state: State, setup: Setup) -> int:
    """Return the size of the prompt to decide by: the calibrated one, or our own count if that is larger and the policy wants it."""
    if not setup.policy.larger_count:
        return state.prompt
    return effective_size(scaled(state.counted, state.calibration.scale), state.prompt)


def _newest_number(items: Sequence[Item]) -> int:
    """Return the highest number that these items stand for."""
    for item in reversed(items):
        return item.sources[-1].last if isinstance(item, Summary) else item.number
    return 0


def _pricing(state: State, setup: Setup, tail: int, at: float) -> Pricing:
    """Return what prices depend on; unknown prices of the model are replaced by assumed ones."""
    model, currency = with_fallback_prices(state.model)
    laid = prompt_layout(state, setup)
    return Pricing(
        laid=laid,
        items=state.ledger.view.items,
        prompt=state.prompt,
        scale=state.scale,
        model=model,
        currency=currency,
        at=at,
        warmth=warmth_of(state, laid.layout, at),
        lifetime=lifetime_of(marks_of(state, setup)),
        meter=state.meter,
        tail=tail,
        sent=state.reported,
        calls=state.totals.turns,
        whole=scaled(state.ledger.view.whole, state.scale),
        messages=len(state.ledger.messages),
        summarizers=setup.summary_models,
    )


def suffices(inputs: DecisionInputs, summary: Proposal) -> bool:
    """Return whether this summary alone gets the prompt low enough where a size forces compaction.

    By hand, as much as possible is summarised, so none suffices; and how many bytes a summary frees is not known beforehand.
    """
    now, limits = inputs.now, inputs.now.limits
    target = limits.target if limits.cliff is None else min(limits.target, limits.cliff - limits.runway)
    return not now.forced and not inputs.request.too_large and now.after((summary,)) <= target


# Limits


def limits_for(state: State, setup: Setup) -> Limits:
    """Return the limits of the model in use, or of the smallest model of its chain if the policy asks for that (docs/specification.md: G)."""
    preset = setup.preset
    others = [model.context_length for model in setup.chain.models] if setup.policy.smallest_context else []
    context = min([state.model.context_length, *others])
    compression = setup.settings.compression
    limits = derive_limits(
        context,
        compression,
        max_output=state.model.max_output,
        max_tokens=state.max_tokens,
        auto_threshold=auto_threshold(
            compression,
            context=context,
            growth=state.growth,
            turns=state.growths,
            tool_share=_tool_share(state) if compression.threshold == "auto" else 0.0,
            head=round(state.calibration.scale * state.ledger.view.preamble_tokens),
        ),
        floor=preset.threshold_floor,
    )
    cliffs = state.model.cliffs
    limits = replace(limits, cliff=cliffs[0].starts_at if cliffs else None, max_bytes=state.model.max_bytes)
    unsure = state.calibration.unsure(state.counted)
    limits = replace(limits, growth=_usual_growth(state, most=limits.most), unsure=unsure)
    return limits.priced(compression.max_view_tokens, growth=state.growth) if preset.priced else limits


def _usual_growth(state: State, *, most: int) -> int:
    """Return how many of the model's tokens a turn adds on average, by our own count.

    Turns that add more than a fifth of `most` are left out. If most turns do, there is no room for five of them anyway, and
    half as much is kept free.
    """
    grown = [scaled(tokens, state.calibration.scale) for tokens in state.grown]
    usual = [tokens for tokens in grown if tokens <= most // TURNS_BETWEEN]
    if 2 * len(usual) < len(grown):
        return most // (2 * TURNS_BETWEEN)
    return round(fmean(usual)) if usual else 0


def _tool_share(state: State) -> float:
    """Return the share of the view that is tool output."""
    items = state.ledger.view.items
    whole = state.ledger.view.tokens or 1
    return sum(item.tokens for item in items if item.message.results) / whole


# Who writes the summary


def order_ladder(
    ladder: Ladder, state: State, setup: Setup, plan: Sequence[Proposal], *, at: float
) -> Ladder:
    """Return the ladder with the cheapest summarizer first, and which of them should extend the cached request to save money."""
    spans = [step for step in plan if step.span is not None]
    if not spans or not any(setup.summary_models):
        return ladder
    pricing = _pricing(state, setup, len(state.ledger.view.items), at)
    starts = pricing.starts()
    replaced = sum(starts[step.span.stop] - starts[step.span.start] for step in spans if step.span)
    removed = sum(scaled(step.removes, pricing.scale) for step in spans)
    calls = pricing.summary_calls(replaced=replaced, summary=max(0, replaced - removed))
    cheapest = {rung: call for call, rung in reversed(calls)}
    order = dict.fromkeys([*(rung for _, rung in calls), *range(setup.rungs)])
    return replace(
        ladder,
        native=native_rung(state, setup, at),
        order=tuple(order),
        cached_prefix=frozenset(rung for rung, call in cheapest.items() if call.how == "riding"),
    )


def prefer_native(decision: Compact, inputs: DecisionInputs, state: State, setup: Setup) -> Compact:
    """Return the decision with its summary left to the provider, if that costs no more than any other way to get one.

    A plan that was chosen among the priced candidates was compared there already.
    """
    plan, candidates = decision.proposals, inputs.now.market
    at = next((at for at, step in enumerate(plan) if step.mechanism == summarize.NAME and step.calls), None)
    was_compared = candidates is not None and any(priced.plan == plan for priced in candidates.bargains)
    if inputs.native is None or at is None or was_compared:
        return decision
    offer = native_proposal(inputs.request)
    pricing = inputs.pricing or _pricing(state, setup, len(state.ledger.view.items), inputs.now.at)
    starts, expected = pricing.starts(), scaled(expected_summary_tokens(inputs.request), pricing.scale)
    native_cost = None if offer is None else cost_of_summary(offer, pricing, starts, summary=expected)
    other_cost = cost_of_summary(plan[at], pricing, starts, summary=expected)
    if offer is None or native_cost is None or (other_cost is not None and other_cost < native_cost):
        return decision
    return replace(decision, proposals=(*plan[:at], offer, *plan[at + 1 :]))


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


def native_rung(state: State, setup: Setup, at: float) -> int | None:
    """Return the summarizer whose provider can compact this session by itself; None if there is none.

    It has to be the session's own model, because only the model that reads the block again can vouch for it. If summaries
    compete, none is requested: a block cannot be repaired, and is not comparable.
    """
    competing = setup.settings.compression.competing_summaries
    if competing or not accepts_native_blocks(state, setup) or not state.standing.asks_for_blocks(at):
        return None
    for rung in setup.native:
        writer = setup.summary_models[rung] if rung < setup.rungs else None
        if writer is not None and writer.name == state.model.name:
            return rung
    return None


def accepts_native_blocks(state: State, setup: Setup) -> bool:
    """Return whether the model in use reads signed compaction blocks, and the settings say that calls carry the betas it takes."""
    speaks_anthropic = state.format in (None, "anthropic") and state.model.provider == "anthropic"
    return setup.settings.model.native_compaction and state.model.compacts and speaks_anthropic
