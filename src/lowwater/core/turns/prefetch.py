"""Preparing a summary in idle time, for the moment it can be published cheaply or is needed at once.

A summary that rides a warm cache costs least right after a call, and replacing messages costs least when the cache is
cold. Parking takes each at its time: written now, published when a policy buys it or a size forces it.
"""

from collections.abc import Generator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.mechanisms import registry
from lowwater.core.policies.history import after_failure, after_summary
from lowwater.core.policies.safety import cool_down_left, decide, final_without_proposals
from lowwater.core.proposals import Proposal
from lowwater.core.turns.candidates import candidate_plans
from lowwater.core.turns.compaction import CompactionResult, CompactionWork, need_for_proposal
from lowwater.core.turns.costs import both, cost_of_summaries, prompt_tokens_of
from lowwater.core.turns.decision_context import DecisionInputs, decision_context, order_ladder, suffices
from lowwater.core.turns.effects import Outcome, Summarize
from lowwater.core.turns.state import PrefetchedSummary, Setup, State
from lowwater.core.turns.summaries import obtain

_TURNS_AHEAD = 10
"""A summary is prepared if a size will force one within so many turns of measured growth, and this one will do then."""
_SHARE_OF_PRICE = 0.5
"""Or if the rent has reached this share of its price."""


class PrefetchOutcome(Struct, frozen=True, kw_only=True):
    """What came of asking for a summary ahead of its time: one to keep, or none, and what either cost."""

    at: float
    parked: PrefetchedSummary | None
    cost: int | None
    """Nano-dollars; None if that is not known."""
    prompts: int = 0
    """Tokens of the prompts that asked for it."""
    failed_at: float | None
    low: bool | None
    """Whether the first summarizer's answer missed too much; None if it gave none."""


def prefetch_summary(
    state: State, setup: Setup, at: float
) -> Generator[Summarize, Outcome, PrefetchOutcome | None]:
    """Ask for a summary of the middle, if none is parked that fits and this one can be expected to be used.

    The session stays as it is until `settle` is told what came of it. A summary without a model is made when it is needed,
    and never parked.
    """
    ladder = setup.ladder(state.standing.at(at))
    if not ladder.asked or is_prefetched(state) or cool_down_left(state.past, at):
        return None
    inputs = decision_context(state, setup, at)
    offer = next(iter(registry.summaries(inputs.request)), None)
    if offer is None or offer.span is None or not _is_expected(inputs, offer, setup):
        return None
    work = CompactionWork(
        asked=inputs.request,
        prompt=inputs.now.prompt,
        at=at,
        ladder=order_ladder(ladder, state, setup, (offer,), at=at),
    )
    need = need_for_proposal(work, inputs.request.items, offer)
    obtained = yield from obtain(need, work.ladder, at=at)
    asked, judged = need.request, obtained.judged
    spent = CompactionResult(items=(), written=obtained.written, lost=obtained.lost)
    parked = None
    if judged is not None and obtained.failed_at is None:
        parked = PrefetchedSummary(
            span=offer.span,
            numbers=asked.numbers,
            previous=asked.previous,
            recall=asked.recall,
            tokens=setup.tokenizer.count(judged.written.text),
            judged=judged,
        )
    return PrefetchOutcome(
        at=at,
        parked=parked,
        cost=cost_of_summaries(state, spent, setup, work),
        prompts=prompt_tokens_of(obtained.written),
        failed_at=obtained.failed_at,
        low=obtained.low,
    )


def settle(state: State, parking: PrefetchOutcome) -> State:
    """Return the session with what was prepared for it, whatever happened to it meanwhile: stale or not, it was paid for."""
    failed_at, parked = parking.failed_at, parking.parked
    past = after_summary(state.past) if failed_at is None else after_failure(state.past, at=failed_at)
    state = replace(
        state,
        past=past,
        standing=state.standing.at(parking.at).after(low=parking.low, now=parking.at),
        totals=state.totals.paid(parking.cost, for_summaries=True),
        ahead=both(state.ahead, parking.cost),
        ahead_prompts=state.ahead_prompts + parking.prompts,
    )
    # Something new is on sale: the next turn has to look.
    return state if parked is None else drop_stale(replace(state, parked=parked, rest=None))


def is_prefetched(state: State) -> bool:
    """Return whether a summary stands ready that fits the view."""
    return state.parked is not None and state.parked.fits(state.ledger.view.items)


def drop_stale(state: State) -> State:
    """Return the session without a parked summary whose messages have changed or are summarised already."""
    return state if state.parked is None or is_prefetched(state) else replace(state, parked=None)


def _is_expected(inputs: DecisionInputs, offer: Proposal, setup: Setup) -> bool:
    """Return whether a summary will be bought or forced soon, as far as can be told: parking costs money."""
    now = inputs.now
    if not now.enabled:
        return False
    for turns in (0, _TURNS_AHEAD):
        then = replace(now, prompt=now.prompt + round(turns * now.growth), market=None)
        forced = not final_without_proposals(decide(then, setup.settings, policy=setup.policy), then)
        if forced and suffices(replace(inputs, now=then), offer):
            return True
    if inputs.pricing is None:
        return False
    bargains = candidate_plans((), [offer], inputs.pricing, digests=False)
    return any(bargain.rent >= _SHARE_OF_PRICE * bargain.price for bargain in bargains)
