"""The policy `rent-or-buy`: a rewrite is bought when the rent paid for what it removes has reached its price.

Every call over a warm cache pays rent for the tokens a plan would remove. Removing them breaks the cache behind the
first change, which has a price now; on a cold call it is small or below zero, so the same rule buys there. Where waiting
on is worth less than it costs (`economics.outlook`), it is bought before the rent has reached the price. Nothing is bought
that the session, as old as it is, cannot be expected to pay back.
"""

from lowwater.core.decisions import (
    Candidates,
    Compact,
    Decision,
    DecisionContext,
    Fact,
    Keep,
    PricedPlan,
    best_of,
)
from lowwater.core.policies.at_threshold import runway
from lowwater.core.policies.reasons import because
from lowwater.core.wording import money
from lowwater.settings import Settings


def rent_or_buy(now: DecisionContext, settings: Settings) -> Decision:
    """Buy the best plan that is due, or keep the view and say how far the rent has come."""
    market = now.market
    if market is None:
        return runway(now, settings)
    if market.held > 0:
        return Keep(because=because("undone", prompt=now.prompt, calls=market.held))
    if market.is_quiet:
        return Keep(because=because("rent-cannot-be-due", prompt=now.prompt))
    if market.rests:
        return Keep(because=because("rent-rests", prompt=now.prompt))
    best = best_of(market.bargains)
    if best is None:
        return Keep(because=because("nothing-to-buy", prompt=now.prompt))
    if best.is_due:
        return _buy(now, market, best)
    if best.is_worth_it:
        saves = money(best.saves, market.currency)
        facts = _facts(now, market, best)
        return Keep(because=because("too-young-to-pay", **facts, saves=saves, calls=best.wait))
    left = best.calls_left
    return Keep(
        because=because(
            "rent-below-price", **_facts(now, market, best), calls="never" if left is None else left
        )
    )


def _buy(now: DecisionContext, market: Candidates, best: PricedPlan) -> Compact:
    facts = _facts(now, market, best)
    if best.rent >= best.price > 0:
        return Compact(proposals=best.plan, because=because("rent-paid", **facts))
    if best.price > 0:
        saves = money(best.saves, market.currency)
        return Compact(proposals=best.plan, because=because("waiting-in-vain", **facts, saves=saves))
    reason = because(
        "free-now",
        prompt=now.prompt,
        removes=best.removes,
        warm=market.warm,
        gain=money(-best.price, market.currency),
    )
    return Compact(proposals=best.plan, because=reason)


def _facts(now: DecisionContext, market: Candidates, best: PricedPlan) -> dict[str, Fact]:
    return {
        "prompt": now.prompt,
        "removes": best.removes,
        "rent": money(best.rent, market.currency),
        "price": money(best.price, market.currency),
        "warm": market.warm,
    }
