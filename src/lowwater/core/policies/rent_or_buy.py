"""The policy `rent-or-buy`: a rewrite is bought when the rent paid for the tokens it removes has reached its price.

Every call over a warm cache pays rent for the tokens that a plan would remove. Removing them breaks the cache behind the
first change, and writing that part again is the price. On a cold cache the price is small or negative, so the same rule buys
then. A plan is bought early if waiting costs more than it can be expected to save (`Outlook` in `core/buy_rule.py`), and
not at all if the session is so young that it may well end before the plan has paid for itself. docs/economics.md has the
arithmetic.
"""

from lowwater.core.decisions import (
    Candidates,
    Compact,
    Decision,
    DecisionContext,
    Fact,
    Keep,
    PricedPlan,
    because,
)
from lowwater.core.policies.at_threshold import runway
from lowwater.core.policies.policy import PRICED, Policy
from lowwater.core.wording import money
from lowwater.settings import Settings


def rent_or_buy(now: DecisionContext, settings: Settings) -> Decision:
    """Buy the best plan that is due; otherwise keep the view and say how far the rent has come."""
    candidates = now.candidates
    if candidates is None:
        return runway(now, settings)
    if candidates.paused_calls > 0:
        return Keep(because=because("undone", prompt=now.prompt, calls=candidates.paused_calls))
    if candidates.is_quiet:
        return Keep(because=because("rent-cannot-be-due", prompt=now.prompt))
    if candidates.is_from_earlier_turn:
        return Keep(because=because("rent-rests", prompt=now.prompt))
    best = candidates.best
    if best is None:
        return Keep(because=because("nothing-to-buy", prompt=now.prompt))
    if best.is_due:
        return _buy(now, candidates, best)
    if best.is_worth_it:
        saves = money(best.saves, candidates.currency)
        facts = _facts(now, candidates, best)
        return Keep(because=because("too-young-to-pay", **facts, saves=saves, calls=best.wait))
    left = best.calls_left
    return Keep(
        because=because(
            "rent-below-price", **_facts(now, candidates, best), calls="never" if left is None else left
        )
    )


def _buy(now: DecisionContext, candidates: Candidates, best: PricedPlan) -> Compact:
    """Return the decision to buy a plan that is due: its rent is paid, or waiting is not worth it, or it costs nothing."""
    facts = _facts(now, candidates, best)
    if best.rent >= best.price > 0:
        return Compact(proposals=best.plan, because=because("rent-paid", **facts))
    if best.price > 0:
        saves = money(best.saves, candidates.currency)
        return Compact(proposals=best.plan, because=because("waiting-in-vain", **facts, saves=saves))
    reason = because(
        "free-now",
        prompt=now.prompt,
        removes=best.removes,
        warm=candidates.warm,
        gain=money(-best.price, candidates.currency),
    )
    return Compact(proposals=best.plan, because=reason)


def _facts(now: DecisionContext, candidates: Candidates, best: PricedPlan) -> dict[str, Fact]:
    """Return the numbers that every comparison of rent and price reports."""
    return {
        "prompt": now.prompt,
        "removes": best.removes,
        "rent": money(best.rent, candidates.currency),
        "price": money(best.price, candidates.currency),
        "warm": candidates.warm,
    }


POLICIES = (
    Policy(
        name="rent-or-buy",
        decide=rent_or_buy,
        preset=PRICED,
        avoids_cliffs=False,
        smallest_context=False,
    ),
)
