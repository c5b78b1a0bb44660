"""What a decision is based on: sizes and limits, what the cache should hold, what changes would cost.

It is gathered without the mechanisms; `candidates.with_proposals` adds what they propose, if that can make a difference.
"""

from collections.abc import Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Candidates, DecisionContext, effective_size, scaled
from lowwater.core.limits import TURNS_BETWEEN, Limits, derive_limits
from lowwater.core.mechanisms.mechanism import ProposalRequest, survey
from lowwater.core.policies.at_threshold import auto_threshold
from lowwater.core.proposals import Proposal
from lowwater.core.turns.pricing import PricingContext, pricing_for
from lowwater.core.turns.state import (
    PrefetchedSummary,
    PromptLayout,
    RecheckBackoff,
    Setup,
    State,
    recheck_backoff,
)
from lowwater.core.view import Item, bytes_of, newest_number


class DecisionInputs(Struct, frozen=True, kw_only=True):
    """What the policy sees, and what its proposals and prices are worked out from."""

    now: DecisionContext
    request: ProposalRequest
    pricing: PricingContext | None = None
    """Present if the policy compares prices."""
    prompt_layout: PromptLayout | None = None
    newest_outside_tail: int = 0
    """The number of the newest message that is not in the tail; 0 if all are."""
    prefetched_summary: PrefetchedSummary | None = None
    """The prefetched summary, if it may be used now."""
    native: int | None = None
    """The summarizer (its rung) whose provider can compact by itself; None if there is none."""


def decision_context(
    state: State, setup: Setup, at: float, *, limits: Limits | None = None, forced: bool = False
) -> DecisionInputs:
    """Return what a decision is based on, without the mechanisms' proposals; `forced` if compaction was requested by hand.

    `limits` are those of this state, if they are known already.
    """
    limits = limits or limits_for(state, setup)
    view = state.ledger.view
    scale = state.calibration.scale
    size, prompt = bytes_of(view) if limits.max_bytes else 0, _prompt(state, setup)
    request = ProposalRequest(
        items=view.items,
        context=setup.edit_context(offers_recall=state.offers_recall),
        limits=limits,
        settings=setup.settings,
        scale=scale,
        room=_room_for_items(state, limits, prompt),
        system_in_preamble=bool(view.system),
        mechanisms=setup.mechanisms,
        too_large=limits.max_bytes is not None and size > limits.max_bytes,
    )
    surveyed = survey(request)
    pricing = pricing_for(state, setup, surveyed.zones.tail, at) if setup.preset.priced else None
    now = DecisionContext(
        at=at,
        prompt=prompt,
        messages=len(view.items),
        outside_tail=round(scale * surveyed.outside_tail),
        limits=limits,
        bytes=size,
        scale=scale,
        forced=forced,
        enabled=setup.settings.compression.enabled,
        growth=state.growth,
        past=state.past,
        candidates=_candidates_so_far(state, pricing) if pricing else None,
    )
    return DecisionInputs(
        now=now,
        request=request,
        pricing=pricing,
        prompt_layout=pricing.prompt_layout if pricing else state.prompt_layout,
        newest_outside_tail=_newest_number(view.items[: surveyed.zones.tail]),
        prefetched_summary=state.prefetched_summary
        if state.prefetched_summary is not None and state.prefetched_summary.is_ready(request)
        else None,
        native=native_rung(state, setup, at),
    )


def _room_for_items(state: State, limits: Limits, prompt: int) -> int:
    """Return the tokens that items may have so that several turns fit behind them, or a whole runway after a fruitless compaction."""
    roomy = min(limits.roomy, limits.most - limits.runway) if state.past.fruitless else limits.roomy
    others = prompt - scaled(sum([item.tokens for item in state.ledger.view.items]), state.calibration.scale)
    return max(0, roomy - max(0, others))


def has_nothing_to_propose(inputs: DecisionInputs) -> bool:
    """Return whether no mechanism can propose anything, because everything is protected and nothing forces a change there."""
    now, zones = inputs.now, survey(inputs.request).zones
    protected = not zones.middle and now.fits and not inputs.request.too_large
    return protected and inputs.native is None and inputs.prefetched_summary is None


def without_proposals(inputs: DecisionInputs) -> DecisionInputs:
    """Return the inputs as they are once the mechanisms were asked and proposed nothing."""
    return with_offers(inputs, (), inputs.pricing.candidates() if inputs.pricing else None)


def with_offers(
    inputs: DecisionInputs, offers: tuple[Proposal, ...], candidates: Candidates | None
) -> DecisionInputs:
    """Return the inputs with these proposals and candidates; a pause after an undone compaction goes on."""
    if candidates is not None and inputs.now.candidates is not None:
        candidates = replace(candidates, paused_calls=inputs.now.candidates.paused_calls)
    return replace(inputs, now=replace(inputs.now, proposals=offers, candidates=candidates))


def _candidates_so_far(state: State, pricing: PricingContext) -> Candidates:
    """Return the candidates before the mechanisms are asked; during a recheck pause the plans are those of the last look."""
    candidates = pricing.candidates()
    backoff = state.recheck_backoff if candidates.warm == "warm" else None
    is_reused = backoff is not None and backoff.is_too_early(meter=state.meter.total, prompt=pricing.prompt)
    seen = state.candidates.plans if is_reused and state.candidates is not None else ()
    held = max(0, state.paused_until - state.totals.turns)
    return replace(candidates, is_from_earlier_turn=is_reused, paused_calls=held, plans=seen)


def next_recheck(state: State, inputs: DecisionInputs) -> RecheckBackoff | None:
    """Return until when the mechanisms need not be asked again: later if they just were, and nothing was nearly due."""
    pricing, candidates = inputs.pricing, inputs.now.candidates
    if pricing is None or candidates is None or candidates.is_from_earlier_turn or candidates.is_quiet:
        return state.recheck_backoff
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
    return next((number for item in reversed(items) if (number := newest_number(item))), 0)


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
        auto_threshold=_auto_threshold(state, setup, context) if compression.threshold == "auto" else None,
        floor=preset.threshold_floor,
        budget=state.budget,
    )
    cliffs = state.model.cliffs
    limits = replace(limits, cliff=cliffs[0].starts_at if cliffs else None, max_bytes=state.model.max_bytes)
    unsure = state.calibration.unsure(state.counted)
    limits = replace(limits, growth=_usual_growth(state, most=limits.most), unsure=unsure)
    return limits.priced(compression.max_view_tokens, growth=state.growth) if preset.priced else limits


def _auto_threshold(state: State, setup: Setup, context: int) -> int | None:
    """Return the threshold that `threshold: auto` stands for; None until enough turns were measured."""
    return auto_threshold(
        setup.settings.compression,
        context=context,
        growth=state.growth,
        turns=state.growth_turns,
        tool_share=_tool_share(state),
        head=round(state.calibration.scale * state.ledger.view.preamble_tokens),
    )


def _usual_growth(state: State, *, most: int) -> int:
    """Return how many of the model's tokens a turn adds on average, by our own count.

    Turns that add more than a fifth of `most` are left out. If most turns do, there is no room for five of them anyway, and
    half as much is kept free.
    """
    grown = [scaled(tokens, state.calibration.scale) for tokens in state.recent_growth]
    usual = [tokens for tokens in grown if tokens <= most // TURNS_BETWEEN]
    if 2 * len(usual) < len(grown):
        return most // (2 * TURNS_BETWEEN)
    return round(fsum(usual) / len(usual)) if usual else 0


def _tool_share(state: State) -> float:
    """Return the share of the view that is tool output."""
    items = state.ledger.view.items
    whole = state.ledger.view.tokens or 1
    return sum(item.tokens for item in items if item.message.results) / whole


# Who writes the summary


def native_rung(state: State, setup: Setup, at: float) -> int | None:
    """Return the summarizer whose provider can compact this session by itself; None if there is none.

    It has to be the session's own model, because only the model that reads the block again can vouch for it. If summaries
    compete, none is requested: a block cannot be repaired, and is not comparable.
    """
    competing = setup.settings.compression.competing_summaries
    if (
        competing
        or not accepts_native_blocks(state, setup)
        or not state.summarizer_backoff.asks_for_blocks(at)
    ):
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
