"""How long a provider keeps a prefix, and which lifetime is worth asking for."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from lowwater.core.costs.prices import nano_dollars
from lowwater.core.models.model import CacheRules, Prices

Lifetime = Literal["short", "long"]

WINDOW = 60
"""Gaps that are looked at: enough of them to show that a pause has become rare."""
_PROMPT, _GROWTH = 20, 1
"""A call adds a twentieth of its prompt, as long as nobody has measured it."""


class Gaps(Struct, frozen=True, kw_only=True):
    """How many calls came before the short lifetime was over, between the two, and after the long one."""

    within: int = 0
    between: int = 0
    beyond: int = 0


def choose_ttl(
    gaps: Sequence[float],
    prices: Prices,
    rules: CacheRules,
    *,
    prompt: int = _PROMPT,
    growth: int = _GROWTH,
    now: Lifetime = "short",
) -> Lifetime:
    """Return the lifetime that would have been cheaper over `gaps`, the seconds between calls, if a change to it pays.

    With P tokens of `prompt`, of which g (`growth`) are new at a call, and prices r to read, w and W to write for the
    short lifetime s and the long one l, a call costs

        gap ≤ s        r·(P−g) + w·g   if short     r·(P−g) + W·g   if long
        s < gap ≤ l    w·P                          r·(P−g) + W·g
        gap > l        w·P                          W·P

    so that over n₁, n₂ and n₃ such gaps the long lifetime saves

        n₂·[(w−r)·(P−g) − (W−w)·g] − n₁·(W−w)·g − n₃·(W−w)·P

    A prefix that was stored for one lifetime is assumed to be written again for the other, which no provider rules out. So
    a change is a purchase too, at (W−r)·P or (w−r)·P, and the other lifetime is chosen only if it saves more than that:
    between the two prices it stays as it is (`now`) and does not flip from turn to turn. All in integers; amounts have the
    unit tokens × price and are never divided. Where the provider sells one lifetime only, it is short.
    """
    long = prices.cache_write_long
    if long is None or rules.ttl is None or rules.ttl_long is None:
        return "short"
    saved = saved_by_long(_sorted(gaps, rules.ttl, rules.ttl_long), prices, prompt=prompt, growth=growth)
    if now == "short":
        return "long" if saved > (long - prices.cache_read) * prompt else "short"
    return "short" if -saved > (prices.cache_write - prices.cache_read) * prompt else "long"


def settle_ttl(
    gaps: Sequence[float],
    prices: Prices,
    rules: CacheRules,
    *,
    prompt: int = _PROMPT,
    growth: int = _GROWTH,
    window: int = WINDOW,
) -> Lifetime:
    """Return the lifetime a session has arrived at that chose anew after each of `gaps` by the last `window` of them."""
    now: Lifetime = "short"
    for end in range(1, len(gaps) + 1):
        seen = gaps[max(0, end - window) : end]
        now = choose_ttl(seen, prices, rules, prompt=prompt, growth=growth, now=now)
    return now


def saved_by_long(gaps: Gaps, prices: Prices, *, prompt: int, growth: int) -> int:
    """Return what the long lifetime saves over these gaps, in tokens × price; below 0 it costs more."""
    read, write = prices.cache_read, prices.cache_write
    premium = (prices.cache_write_long or write) - write
    kept = max(0, prompt - growth)
    survived = (write - read) * kept - premium * growth
    return gaps.between * survived - gaps.within * premium * growth - gaps.beyond * premium * prompt


def _sorted(gaps: Sequence[float], short: float, long: float) -> Gaps:
    return Gaps(
        within=sum(gap <= short for gap in gaps),
        between=sum(short < gap <= long for gap in gaps),
        beyond=sum(gap > long for gap in gaps),
    )


class Lifetimes(Struct, frozen=True, kw_only=True):
    """The lifetimes on sale in seconds, and what the long one changes after a pause, in nano-dollars.

    Nothing is known of the money where the long one has no price of its own.
    """

    short: int | None = None
    """None is not published."""
    long: int | None = None
    """None is not on sale."""
    within_costs: int | None = None
    """What the long one costs more if the next call comes within the short one."""
    between_saves: int | None = None
    """What it saves if the call comes after the short one is over and before the long one is."""
    beyond_costs: int | None = None
    """What it costs more if the call comes after both."""
    least_share: float | None = None
    """The share of calls that must come between the two for the long one to pay; None if no share is enough."""


def lifetimes_of(prices: Prices, rules: CacheRules, *, prompt: int, growth: int) -> Lifetimes:
    """Return what the long lifetime is worth to a session with prompts of this size that grow so much a call."""
    sold = Lifetimes(short=rules.ttl, long=rules.ttl_long)
    if rules.ttl is None or rules.ttl_long is None or prices.cache_write_long is None:
        return sold

    def saved(gaps: Gaps) -> int:
        return saved_by_long(gaps, prices, prompt=prompt, growth=growth)

    within, between, beyond = -saved(Gaps(within=1)), saved(Gaps(between=1)), -saved(Gaps(beyond=1))
    return Lifetimes(
        short=rules.ttl,
        long=rules.ttl_long,
        within_costs=nano_dollars(within),
        between_saves=nano_dollars(between),
        beyond_costs=nano_dollars(beyond),
        least_share=within / (within + between) if between > 0 else None,
    )
