"""Prefetching a summary in idle time, so that it is ready when it can be used cheaply or is needed at once.

A summary costs least right after a call, when its request can extend a warm cached prefix; replacing messages costs least
when the cache is cold. Prefetching does each at its time: the summary is written now, and kept until a policy buys it or a
size forces it.
"""

from collections.abc import Generator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.events import Rejected
from lowwater.core.mechanisms import summarize
from lowwater.core.policies.safety_rules import (
    after_failure,
    after_summary,
    cool_down_left,
    decide,
    final_without_proposals,
)
from lowwater.core.proposals import Proposal
from lowwater.core.turns.candidates import candidate_plans, suffices
from lowwater.core.turns.compact import order_ladder
from lowwater.core.turns.compaction import CompactionWork, need_for_proposal
from lowwater.core.turns.costs import both, cost_of_summaries, prompt_tokens_of
from lowwater.core.turns.decision_context import DecisionInputs, decision_context
from lowwater.core.turns.effects import Summarize, SummaryOutcome
from lowwater.core.turns.state import PrefetchedSummary, Setup, State, drop_stale, is_prefetched
from lowwater.core.turns.summaries import obtain

_TURNS_AHEAD = (0, 2, 5, 10)
"""A summary is prefetched if a size will force one so many turns of measured growth from now, and this one will suffice then."""
_SHARE_OF_PRICE = 0.8
"""Or if it is due, or the rent paid has reached this share of its price (bench/README.md, "Configurations")."""


class PrefetchOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of prefetching: a summary to keep, or none, and what it cost."""

    at: float
    prefetched_summary: PrefetchedSummary | None
    cost: int | None
    """Nano-dollars; None if not known."""
    prompts: int = 0
    """Tokens of the prompts of its calls."""
    failed_at: float | None
    rejected: tuple[Rejected, ...] = ()
    """What was not accepted as written."""
    low: bool | None
    """Whether the first summarizer's answer missed too much; None if there was no answer."""


def prefetch_summary(
    state: State, setup: Setup, at: float
) -> Generator[Summarize, SummaryOutcome, PrefetchOutcome | None]:
    """Ask for a summary of the middle, unless there is one or this one is not likely to be used.

    The state changes only when `settle` is given the outcome. A summary without a model is never prefetched: it is made when
    it is needed.
    """
    ladder = setup.ladder(state.summarizer_backoff.at(at))
    if not ladder.asked or is_prefetched(state) or cool_down_left(state.past, at) or not setup.may_ask(state):
        return None
    inputs = decision_context(state, setup, at)
    offer = next(iter(summarize.propose_priced(inputs.request)), None)
    if offer is None or offer.span is None or not _is_expected(inputs, offer, setup):
        return None
    work = CompactionWork(
        request=inputs.request,
        prompt=inputs.now.prompt,
        at=at,
        system=state.ledger.view.system,
        ladder=order_ladder(ladder, state, setup, (offer,), at=at),
    )
    need = need_for_proposal(work, inputs.request.items, offer)
    obtained = yield from obtain(need, work.ladder, at=at)
    request, judged = need.request, obtained.judged
    summary = None
    if judged is not None and obtained.failed_at is None:
        summary = PrefetchedSummary(
            span=offer.span,
            numbers=request.numbers,
            previous=request.previous,
            recall=request.recall,
            tokens=setup.tokenizer.count(judged.written.text),
            judged=judged,
        )
    return PrefetchOutcome(
        at=at,
        prefetched_summary=summary,
        cost=cost_of_summaries(state, setup, obtained.written, lost=obtained.lost, at=at),
        prompts=prompt_tokens_of(obtained.written),
        failed_at=obtained.failed_at,
        rejected=obtained.rejected,
        low=obtained.low,
    )


def _is_expected(inputs: DecisionInputs, offer: Proposal, setup: Setup) -> bool:
    """Return whether this summary is likely to be bought or forced soon: an unused one is wasted money."""
    now = inputs.now
    if not now.enabled:
        return False
    for turns in _TURNS_AHEAD:
        then = replace(now, prompt=now.prompt + round(turns * now.growth), candidates=None)
        forced = not final_without_proposals(decide(then, setup.settings, policy=setup.policy), then)
        if forced and suffices(replace(inputs, now=then), offer):
            return True
    if inputs.pricing is None:
        return False
    plans = candidate_plans((), [offer], inputs.pricing, lost={})
    return any(plan.is_due or plan.rent >= _SHARE_OF_PRICE * plan.price for plan in plans)


def settle(state: State, outcome: PrefetchOutcome) -> State:
    """Return the state with a prefetched summary and its cost; if the summary went stale meanwhile, it is only paid for."""
    failed_at, summary = outcome.failed_at, outcome.prefetched_summary
    past = after_summary(state.past) if failed_at is None else after_failure(state.past, at=failed_at)
    state = replace(
        state,
        past=past,
        summarizer_backoff=state.summarizer_backoff.at(outcome.at).after(low=outcome.low, now=outcome.at),
        totals=state.totals.paid(outcome.cost, for_summaries=True),
        uncharged_summary_cost=both(state.uncharged_summary_cost, outcome.cost),
        unreported_summary_prompts=state.unreported_summary_prompts + outcome.prompts,
        unreported_rejections=(*state.unreported_rejections, *outcome.rejected),
    )
    # There is something new to buy, so the next turn has to look at all candidates.
    if summary is None:
        return state
    return drop_stale(replace(state, prefetched_summary=summary, recheck_backoff=None))
