"""What the pauses of a recorded session cost, and what acting before the cache expired would have cost."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from lowwater.core.costs.idle import TOOL_LULLS, USER_LULLS, IdleCosts, IdlePlan, plan_pause
from lowwater.core.costs.prices import nano_dollars
from lowwater.core.models.model import Prices
from lowwater.lab.audit.calls import AuditedCall
from lowwater.lab.audit.findings import PauseCosts

_TAIL, _SUMMARY = 20_000, 3_000
"""Assumed sizes for a compaction before the expiry: the tail that it leaves besides the first prompt, and its summary, in tokens."""
_GAPS = 50


def pauses_of(calls: Sequence[AuditedCall]) -> PauseCosts | None:
    """Return what the pauses of a session cost; None without times, prices or a published lifetime."""
    own = [call for call in calls if not call.copied and call.usage is not None and call.at is not None]
    if len(own) < 2 or any(call.prices is None or call.model.cache.ttl is None for call in own):
        return None
    found, gaps = PauseCosts(calls=len(own)), list[float]()
    first = own[0].usage.prompt if own[0].usage else 0
    for before, call in pairwise(own):
        found = _with_premium(found, call)
        if before.model.name != call.model.name:
            continue
        # A prefix is used when the request arrives; for some calls only the time of the answer is recorded.
        gap = max(0.0, (call.at or 0.0) - (before.at or 0.0))
        costs = _costs(before, call, first)
        found = _plus(found, _pause(costs, gap, gaps[-_GAPS:], call))
        gaps.append(gap)
    return found


def _costs(before: AuditedCall, call: AuditedCall, first: int) -> IdleCosts:
    prices = _prices(before)
    assert before.usage is not None
    assert call.usage is not None
    lifetime = before.model.cache.ttl
    assert lifetime is not None
    prompt = min(before.usage.prompt, call.usage.prompt)
    left = min(prompt, first + _SUMMARY + _TAIL)
    return IdleCosts(
        lifetime=lifetime,
        ping=nano_dollars(prices.cache_read * before.usage.prompt + prices.output),
        lost=nano_dollars((prices.cache_write - prices.cache_read) * prompt),
        compact=nano_dollars(prices.cache_read * before.usage.prompt + prices.output * _SUMMARY)
        if left < prompt
        else None,
        lost_compacted=nano_dollars(prices.cache_write * left - prices.cache_read * prompt),
    )


def _pause(costs: IdleCosts, gap: float, gaps: Sequence[float], call: AuditedCall) -> PauseCosts:
    if gap <= costs.period:
        return PauseCosts()
    lulls = USER_LULLS if call.begins_turn else TOOL_LULLS
    warm, rule = (plan_pause(costs, mode=mode, gaps=gaps, lulls=lulls) for mode in ("keep-warm", "auto"))
    is_expired = gap > costs.lifetime
    let_go = costs.lost if is_expired else 0
    return PauseCosts(
        pauses=int(is_expired),
        let_go=let_go,
        kept_warm=_paid(warm, costs, gap),
        pings=warm.made_in(gap),
        compacted=let_go if costs.compact is None else costs.compact + costs.lost_compacted,
        by_rule=_paid(rule, costs, gap),
        longer=_lost_with_long(costs, gap, call),
    )


def _paid(plan: IdlePlan, costs: IdleCosts, gap: float) -> int:
    paid = plan.made_in(gap) * costs.ping
    if plan.compacts_in(gap) and costs.compact is not None:
        return paid + costs.compact + costs.lost_compacted
    return paid + (0 if plan.is_warm_after(gap, costs.lifetime) else costs.lost)


def _lost_with_long(costs: IdleCosts, gap: float, call: AuditedCall) -> int | None:
    prices, lives = _prices(call), call.model.cache.ttl_long
    if prices.cache_write_long is None or lives is None:
        return None
    if gap <= lives:
        return 0
    return (
        costs.lost
        * (prices.cache_write_long - prices.cache_read)
        // max(1, prices.cache_write - prices.cache_read)
    )


def _with_premium(found: PauseCosts, call: AuditedCall) -> PauseCosts:
    """Add how much more a call's own writes cost with the long lifetime; what is written again after a pause is counted there."""
    prices, usage = _prices(call), call.usage
    assert usage is not None
    if prices.cache_write_long is None or found.longer is None:
        return replace(found, longer=None)
    new = min(usage.cache_write + usage.cache_write_long, max(0, usage.prompt - usage.cache_read))
    return replace(
        found, longer=found.longer + nano_dollars((prices.cache_write_long - prices.cache_write) * new)
    )


def _prices(call: AuditedCall) -> Prices:
    prices = call.prices
    assert prices is not None
    return prices


def _plus(one: PauseCosts, other: PauseCosts) -> PauseCosts:
    longer = None if one.longer is None or other.longer is None else one.longer + other.longer
    names = ("pauses", "calls", "let_go", "kept_warm", "pings", "compacted", "by_rule")
    return PauseCosts(**{name: getattr(one, name) + getattr(other, name) for name in names}, longer=longer)


def total_pauses(each: Sequence[PauseCosts | None]) -> PauseCosts:
    """Return the sum over the sessions whose pauses are known."""
    found = PauseCosts()
    for one in each:
        if one is not None:
            found = _plus(found, one)
    return found
