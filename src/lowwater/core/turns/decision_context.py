"""What a policy is shown when it decides."""

from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.costs.prices import with_fallback_prices
from lowwater.core.decisions import Candidates, Compact, DecisionContext, effective_size, scaled
from lowwater.core.entries import Compacted
from lowwater.core.limits import TURNS_BETWEEN, Limits, derive_limits
from lowwater.core.mechanisms import native, registry, summarize, truncate
from lowwater.core.mechanisms.registry import EVERYTHING, ProposalRequest, propose, survey
from lowwater.core.messages import newest_block
from lowwater.core.policies.at_threshold import auto_threshold
from lowwater.core.proposals import Proposal
from lowwater.core.turns.cache import lifetime_of, marks_of, prompt_layout, warmth_of
from lowwater.core.turns.candidates import EDITING, Pricing, candidate_plans, cost_of_summary
from lowwater.core.turns.state import (
    PrefetchedSummary,
    PromptLayout,
    RecheckBackoff,
    Setup,
    State,
    recheck_backoff,
)
from lowwater.core.turns.summaries import Ladder
from lowwater.core.turns.thinking import unbind
from lowwater.core.view import Item, Summary, bytes_of, view_items


def native_rung(state: State, setup: Setup, at: float) -> int | None:
    """Return the summarizer whose provider can be asked to compact this session by itself; None if none can.

    It has to be the session's own model: only the one that reads the block again can vouch for what it stands for. Where
    summaries compete they have to be comparable, and none is asked for that cannot be mended.
    """
    competing = setup.settings.compression.competing_summaries
    if competing or not reads_blocks(state, setup) or not state.standing.asks_for_blocks(at):
        return None
    for rung in setup.native:
        writer = setup.summary_models[rung] if rung < setup.rungs else None
        if writer is not None and writer.name == state.model.name:
            return rung
    return None


def reads_blocks(state: State, setup: Setup) -> bool:
    """Return whether the model in use takes signed blocks back, and the settings say that calls carry what that needs."""
    spoken = state.format in (None, "anthropic") and state.model.provider == "anthropic"
    return setup.settings.model.native_compaction and state.model.compacts and spoken


def native_offer(asked: ProposalRequest) -> Proposal | None:
    """Return the offer to have the provider compact everything before the tail; None if that is no gain."""
    return native.propose(tuple(asked.items), survey(asked).zones, block_tokens=expected_summary(asked))


def expected_summary(asked: ProposalRequest) -> int:
    """Return how long a summary of everything before the tail is to be expected, as counted."""
    compression, replaced = asked.settings.compression, asked.items[: survey(asked).zones.tail]
    return summarize.budget(
        replaced,
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=summarize.usual(replaced, most=asked.counted(asked.limits.summary)),
    )


def follow_native(state: State, setup: Setup, at: float) -> State:
    """Let the provider's newest compaction block stand for what came before it, where it came in an answer.

    Nobody says whether thinking behind such a block is bound to what the provider left out, so that it counts as unbound.
    """
    items = state.ledger.view.items
    kept = native.absorb(items, setup.making(offers_recall=state.offers_recall))
    if kept is None:
        return state
    entry = Compacted(at=at, mechanisms=(native.NAME,), stands=view_items(kept))
    holder = items[newest_block([item.message for item in items]) or 0]
    assert not isinstance(holder, Summary), (
        "a block that was asked for stands first, with nothing to absorb before it"
    )
    return unbind(replace(state, ledger=state.ledger.append(entry)), after=holder.number - 1)


def tell_in_words(state: State, setup: Setup, at: float) -> State:
    """Put what the block at the start of the view says in its place, where the model in use cannot read blocks.

    That takes no call, and what the block stood for is what the text stands for. Thinking behind it was bound to the block.
    """
    items = state.ledger.view.items
    if native.own_block(items) is None or reads_blocks(state, setup):
        return state
    kept = native.as_text(items, setup.making(offers_recall=state.offers_recall))
    entry = Compacted(at=at, mechanisms=(native.AS_TEXT,), stands=view_items(kept))
    return unbind(replace(state, ledger=state.ledger.append(entry)), after=0)


_AT_THE_WALL = frozenset({EVERYTHING, truncate.NAME, truncate.SQUEEZE})


class DecisionInputs(Struct, frozen=True, kw_only=True):
    """The situation, and what its proposals are worked out from."""

    now: DecisionContext
    asked: ProposalRequest
    pricing: Pricing | None = None
    """Present if the policy compares prices."""
    laid: PromptLayout | None = None
    outside: int = 0
    """The number of the newest message that is not in the tail; 0 if all are."""
    parked: PrefetchedSummary | None = None
    """Present if it may be published now."""
    native: int | None = None
    """The summarizer whose provider can be asked to compact by itself; None if none can."""


def decision_context(state: State, setup: Setup, at: float, *, forced: bool = False) -> DecisionInputs:
    """Return what there is to decide by, without the mechanisms' offers."""
    limits = limits_for(state, setup)
    view = state.ledger.view
    scale = state.calibration.scale
    size = bytes_of(view) if limits.max_bytes else 0
    asked = ProposalRequest(
        items=view.items,
        making=setup.making(offers_recall=state.offers_recall),
        limits=limits,
        settings=setup.settings,
        scale=scale,
        system_in_preamble=bool(view.system),
        mechanisms=setup.mechanisms,
        too_large=limits.max_bytes is not None and size > limits.max_bytes,
    )
    surveyed = survey(asked)
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
        market=_market(state, pricing) if pricing else None,
    )
    return DecisionInputs(
        now=now,
        asked=asked,
        pricing=pricing,
        laid=pricing.laid if pricing else state.laid,
        outside=_newest(view.items[: surveyed.zones.tail]),
        parked=state.parked if state.parked is not None and state.parked.is_ready(asked) else None,
        native=native_rung(state, setup, at),
    )


def with_offers(situated: DecisionInputs) -> DecisionInputs:
    """Return the situation with everything the mechanisms offer; what reaches into head and tail only where it must fit."""
    now = situated.now
    offers = propose(replace(situated.asked, must_fit=not now.fits)).proposals
    if now.fits:
        offers = tuple(offer for offer in offers if offer.mechanism not in _AT_THE_WALL)
    ready = situated.parked.offer(situated.asked.items) if situated.parked else None
    market = _on_sale(situated, offers, ready) if situated.pricing else None
    if ready is not None and suffices(situated, ready):
        offers = tuple(ready if offer.mechanism == summarize.NAME else offer for offer in offers)
    return replace(situated, now=replace(now, proposals=offers, market=market))


def arranged(ladder: Ladder, state: State, setup: Setup, plan: Sequence[Proposal], *, at: float) -> Ladder:
    """Return the ladder with the cheapest summarizer first, and who rides the cached prefix because that costs less."""
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
        riding=frozenset(rung for rung, call in cheapest.items() if call.how == "riding"),
    )


def with_native(decision: Compact, situated: DecisionInputs, state: State, setup: Setup) -> Compact:
    """Return a decision with its summary left to the provider, where that costs less than every other way to get one.

    What was chosen on the market was compared there already.
    """
    plan, market = decision.proposals, situated.now.market
    at = next((at for at, step in enumerate(plan) if step.mechanism == summarize.NAME and step.calls), None)
    on_market = market is not None and any(bargain.plan == plan for bargain in market.bargains)
    if situated.native is None or at is None or on_market:
        return decision
    offer = native_offer(situated.asked)
    pricing = situated.pricing or _pricing(state, setup, len(state.ledger.view.items), situated.now.at)
    starts, length = pricing.starts(), scaled(expected_summary(situated.asked), pricing.scale)
    own = None if offer is None else cost_of_summary(offer, pricing, starts, summary=length)
    other = cost_of_summary(plan[at], pricing, starts, summary=length)
    if offer is None or own is None or (other is not None and other < own):
        return decision
    return replace(decision, proposals=(*plan[:at], offer, *plan[at + 1 :]))


def rested(state: State, situated: DecisionInputs) -> RecheckBackoff | None:
    """Return how long the session may rest: longer if the mechanisms were just asked and had nothing nearly due."""
    pricing, market = situated.pricing, situated.now.market
    if pricing is None or market is None or market.rests or market.is_quiet:
        return state.rest
    return recheck_backoff(
        market,
        meter=state.meter.total,
        read_price=pricing.prices.cache_read,
        prompt=pricing.prompt,
    )


def suffices(situated: DecisionInputs, summary: Proposal) -> bool:
    """Return whether this summary alone gets the prompt low enough where a size forces it, so that no other is needed.

    By hand, as much is summarised as can be; and how many bytes go is known only when it is done.
    """
    now, limits = situated.now, situated.now.limits
    target = limits.target if limits.cliff is None else min(limits.target, limits.cliff - limits.runway)
    return not now.forced and not situated.asked.too_large and now.after((summary,)) <= target


def _market(state: State, pricing: Pricing) -> Candidates:
    """Return the market before the mechanisms were asked; while it rests they need not be."""
    market = pricing.market()
    rest = state.rest if market.warm == "warm" else None
    rests = rest is not None and rest.lasts(meter=state.meter.total, prompt=pricing.prompt)
    seen = state.market.bargains if rests and state.market is not None else ()
    held = max(0, state.held_until - state.totals.turns)
    return replace(market, rests=rests, held=held, bargains=seen)


def limits_for(state: State, setup: Setup) -> Limits:
    """Return the limits of the model in use, or of the smallest of its chain where the policy plans for that (docs/specification.md: G)."""
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
    """Return what a turn adds in the mean, by our own count.

    One that adds more than a fifth of all there may be is no usual turn. Where most are such, there is no room for five of them, and
    half of it is kept free.
    """
    grown = [scaled(tokens, state.calibration.scale) for tokens in state.grown]
    usual = [tokens for tokens in grown if tokens <= most // TURNS_BETWEEN]
    if 2 * len(usual) < len(grown):
        return most // (2 * TURNS_BETWEEN)
    return round(fmean(usual)) if usual else 0


def _prompt(state: State, setup: Setup) -> int:
    """Return the size to decide by: as the provider reported it and what came since, or our own count if that is larger."""
    if not setup.policy.larger_count:
        return state.prompt
    return effective_size(scaled(state.counted, state.calibration.scale), state.prompt)


def _pricing(state: State, setup: Setup, tail: int, at: float) -> Pricing:
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


def _on_sale(situated: DecisionInputs, offers: Sequence[Proposal], ready: Proposal | None) -> Candidates:
    pricing, making = situated.pricing, situated.asked.making
    assert pricing is not None
    lost = {mechanism.name: mechanism.loses for mechanism in situated.asked.mechanisms}
    edits = [offer for offer in offers if offer.mechanism in (*EDITING, *lost)]
    spans = registry.summaries(situated.asked) if pricing.summarizers else []
    own = native_offer(situated.asked) if situated.native is not None else None
    spans += [offer for offer in (own, ready) if offer is not None]
    digests = making.digest_ratio > 0 and not making.preset.plain_placeholders
    return pricing.market(candidate_plans(edits, spans, pricing, digests=digests, lost=lost))


def _newest(items: Sequence[Item]) -> int:
    """Return the highest number that these items stand for."""
    for item in reversed(items):
        return item.sources[-1].last if isinstance(item, Summary) else item.number
    return 0


def _tool_share(state: State) -> float:
    items = state.ledger.view.items
    whole = state.ledger.view.tokens or 1
    return sum(item.tokens for item in items if item.message.results) / whole
