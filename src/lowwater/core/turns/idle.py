"""The pauses of a session: planning what to do before its cached prefix expires, and recording calls that kept it warm."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Response
from lowwater.core.cache.belief import Belief, Boundary
from lowwater.core.costs.idle import (
    KEPT_WARM,
    LASTS,
    TOOL_LULLS,
    USER_LULLS,
    IdleCosts,
    IdleMode,
    IdlePlan,
    plan_pause,
)
from lowwater.core.costs.prices import nano_dollars, write_price
from lowwater.core.decisions import PricedPlan
from lowwater.core.models.model import CacheRules
from lowwater.core.turns.candidates import with_proposals
from lowwater.core.turns.costs import side_call_record
from lowwater.core.turns.decision_context import decision_context
from lowwater.core.turns.reported_usage import believed
from lowwater.core.turns.state import Setup, State
from lowwater.core.turns.turn import Recorded

_COLD = 3.0
"""How many lifetimes after its last use a prefix is surely gone from the cache."""


class WarmPrefix(Struct, frozen=True, kw_only=True):
    """The prefix that the last request left in the provider's cache."""

    tokens: int
    used: float
    """When a call last used it."""
    lifetime: float
    long: bool

    @property
    def due(self) -> float:
        """When to act, shortly before it expires."""
        return self.used + IdleCosts(lifetime=self.lifetime, ping=0, lost=0).period

    @property
    def expires(self) -> float:
        """When it expires."""
        return self.used + self.lifetime


class PausePlan(Struct, frozen=True, kw_only=True):
    """What to do in the pause that began with the last call; amounts in nano-dollars."""

    cached: WarmPrefix
    costs: IdleCosts
    plan: IdlePlan


def warm_prefix(state: State) -> WarmPrefix | None:
    """Return what the last request left in the cache; None if no lifetime is published, reads do not renew it, or it was missed."""
    newest = _newest(state.belief)
    rules = state.model.cache
    if newest is None or state.called_at is None or rules.refreshed_by_hit is False:
        return None
    lifetime = rules.ttl_long if newest.long and rules.ttl_long is not None else rules.ttl
    if lifetime is None or state.belief.misses:
        return None
    return WarmPrefix(tokens=newest.tokens, used=newest.used, lifetime=lifetime, long=newest.long)


def pause_plan(
    state: State, setup: Setup, *, mode: IdleMode = "auto", lasts: float = LASTS
) -> PausePlan | None:
    """Return what to do about the cached prefix before it expires; None if nothing is known of the prefix or of the prices.

    The mechanisms are asked, because what would be compacted on the user's return anyway is no loss if the prefix expires.
    """
    cached, prices = warm_prefix(state), state.model.prices_at(state.prompt)
    if cached is None or prices is None or mode == "off":
        return None
    write = write_price(prices, "long" if cached.long else "short")
    cold = _plans(state, setup, cached.used + _COLD * cached.lifetime)
    anyway = max((-plan.price for plan in cold), default=0)
    compact = None
    left = 0
    if mode in ("compact", "auto") and setup.may_ask(state):
        warm = _plans(state, setup, cached.used)
        best = min((plan for plan in warm if plan.summary), key=lambda plan: plan.price, default=None)
        if best is not None:
            compact = best.summary + best.disturbance + best.rework
            kept = max(0, cached.tokens - best.removes)
            left = nano_dollars(write * kept - prices.cache_read * cached.tokens)
    costs = IdleCosts(
        lifetime=cached.lifetime,
        ping=nano_dollars(prices.cache_read * cached.tokens + prices.output),
        lost=max(0, nano_dollars((write - prices.cache_read) * cached.tokens) - max(0, anyway)),
        compact=compact,
        lost_compacted=left,
    )
    assert state.called_at is not None
    elapsed = max(0.0, cached.used - state.called_at)
    lulls = TOOL_LULLS if _runs_tools(state) else USER_LULLS
    plan = plan_pause(costs, mode=mode, elapsed=elapsed, lasts=lasts, gaps=state.gaps, lulls=lulls)
    return PausePlan(cached=cached, costs=costs, plan=plan)


def _runs_tools(state: State) -> bool:
    """Return whether the conversation ends with an answer that called tools."""
    items = state.ledger.view.items
    return bool(items) and bool(items[-1].message.calls)


def _plans(state: State, setup: Setup, at: float) -> tuple[PricedPlan, ...]:
    """Return the plans that could be bought at this time, priced."""
    candidates = with_proposals(decision_context(state, setup, at)).now.candidates
    return candidates.plans if candidates else ()


def record_kept_warm(state: State, response: Response, at: float) -> Recorded:
    """Bill a call that kept the prefix warm, and renew the belief about the prefix; the conversation stays as it is.

    If the call read nothing from the cache, the prefix had expired and was written again: either way it is cached now.
    """
    response = believed(replace(state, call=None), response)
    record = replace(side_call_record(state, response, at), decision=KEPT_WARM)
    cost = record.cost
    return Recorded(
        state=replace(
            state, totals=state.totals.paid(cost), belief=_renewed(state.belief, state.model.cache, at)
        ),
        record=replace(record, untouched=cost, removed=0),
        doubt=response.doubt,
    )


def _newest(belief: Belief) -> Boundary | None:
    return max(belief.boundaries, key=lambda boundary: (boundary.used, boundary.tokens), default=None)


def _renewed(belief: Belief, rules: CacheRules, at: float) -> Belief:
    """Return the belief in which everything that the last call used was used again at `at`."""
    newest = _newest(belief)
    if newest is None or rules.refreshed_by_hit is False:
        return belief
    return replace(
        belief,
        boundaries=tuple(
            replace(each, used=at) if each.used == newest.used else each for each in belief.boundaries
        ),
    )
