"""Which cache lifetime to ask for, where a provider sells a short and a long one (Anthropic: 5 minutes and 1 hour)."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from lowwater.core.costs.prices import nano_dollars
from lowwater.core.models.model import CacheRules, Prices

Lifetime = Literal["short", "long"]

WINDOW = 50
"""The number of newest gaps between calls that count: enough to notice that a long pause has become rare."""
_PROMPT, _GROWTH = 50, 1
"""Until it is measured, a call is assumed to add a fiftieth of its prompt, which is the median of recorded sessions."""
_PER = 1_000
Pauses = Sequence[tuple[int, int]]
PAUSES: Pauses = ((60, 105), (300, 34), (1_800, 9), (3_600, 5), (43_200, 1), (86_400, 0))
"""Of a thousand gaps between calls, how many are longer than so many seconds: 31,095 gaps of 447 recorded sessions of coding
agents, most of them Claude Code's (`python -m bench.lifetimes`)."""


class Gaps(Struct, frozen=True, kw_only=True):
    """How many calls came within the short lifetime, between its end and that of the long one, and after both."""

    within: int = 0
    between: int = 0
    beyond: int = 0


def settle_ttl(
    gaps: Sequence[float],
    prices: Prices,
    rules: CacheRules,
    *,
    prompt: int = _PROMPT,
    growth: int = _GROWTH,
    window: int = WINDOW,
    pauses: Pauses = PAUSES,
    now: Lifetime | None = None,
) -> Lifetime:
    """Return the lifetime for a session with these gaps so far; `now` is the one asked for at the last call.

    Until `window` of them are known, it is the one that pays for `pauses` as they are in general; then the newest
    count together with as many of the general ones, and the lifetime changes only if that pays for the change.
    """
    long = prices.cache_write_long
    if long is None or rules.ttl is None or rules.ttl_long is None:
        return "short"
    general = usual_gaps(rules.ttl, rules.ttl_long, pauses)
    usual = saved_by_long(general, prices, prompt=_PROMPT, growth=_GROWTH)
    start: Lifetime = "long" if usual > 0 else "short"
    if len(gaps) < window:
        return start
    seen = _classify(gaps[-window:], rules.ttl, rules.ttl_long)
    saved = saved_by_long(seen, prices, prompt=prompt, growth=growth)
    saved += window * saved_by_long(general, prices, prompt=prompt, growth=growth) // _PER
    if (now or start) == "short":
        return "long" if saved > (long - prices.cache_read) * prompt else "short"
    return "short" if -saved > (prices.cache_write - prices.cache_read) * prompt else "long"


def usual_gaps(short: int, long: int, pauses: Pauses = PAUSES) -> Gaps:
    """Return how a thousand gaps between calls are spread over the two lifetimes in general."""
    after_short, after_long = _longer_than(short, pauses), _longer_than(long, pauses)
    return Gaps(within=_PER - after_short, between=after_short - after_long, beyond=after_long)


def _longer_than(seconds: int, pauses: Pauses) -> int:
    """Return how many of a thousand gaps are longer; between the measured points the nearest shorter one counts."""
    return next((share for least, share in reversed(pauses) if least <= seconds), _PER)


def saved_by_long(gaps: Gaps, prices: Prices, *, prompt: int, growth: int) -> int:
    """Return what the long lifetime saves over these gaps, in tokens × price; negative if it costs more.

    With P tokens of `prompt`, of which g (`growth`) are new at a call, and prices r to read, w and W to write for the
    short lifetime s and the long one l, a call costs

        gap ≤ s        r·(P−g) + w·g   if short     r·(P−g) + W·g   if long
        s < gap ≤ l    w·P                          r·(P−g) + W·g
        gap > l        w·P                          W·P

    so that over n₁, n₂ and n₃ such gaps the long lifetime saves

        n₂·[(w−r)·(P−g) − (W−w)·g] − n₁·(W−w)·g − n₃·(W−w)·P

    No provider rules out that a prefix stored for one lifetime has to be written again for the other, so that is assumed:
    switching costs (W−r)·P or (w−r)·P.
    """
    read, write = prices.cache_read, prices.cache_write
    premium = (prices.cache_write_long or write) - write
    kept = max(0, prompt - growth)
    survived = (write - read) * kept - premium * growth
    return gaps.between * survived - gaps.within * premium * growth - gaps.beyond * premium * prompt


def _classify(gaps: Sequence[float], short: float, long: float) -> Gaps:
    return Gaps(
        within=sum(gap <= short for gap in gaps),
        between=sum(short < gap <= long for gap in gaps),
        beyond=sum(gap > long for gap in gaps),
    )


class Lifetimes(Struct, frozen=True, kw_only=True):
    """The lifetimes a provider offers, in seconds, and what the long one costs or saves after a pause, in nano-dollars.

    The amounts are None if the long lifetime has no price of its own.
    """

    short: int | None = None
    """None if not published."""
    long: int | None = None
    """None if not offered."""
    within_costs: int | None = None
    """The extra cost of the long one if the next call comes within the short one."""
    between_saves: int | None = None
    """What it saves if the next call comes after the short one has ended but not the long one."""
    beyond_costs: int | None = None
    """The extra cost if the next call comes after both have ended."""
    least_share: float | None = None
    """The share of calls that must come between the two ends for the long one to pay; None if no share is enough."""


def lifetimes_of(prices: Prices, rules: CacheRules, *, prompt: int, growth: int) -> Lifetimes:
    """Return what the long lifetime is worth to a session with prompts of `prompt` tokens that grow by `growth` a call."""
    offered = Lifetimes(short=rules.ttl, long=rules.ttl_long)
    if rules.ttl is None or rules.ttl_long is None or prices.cache_write_long is None:
        return offered

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
