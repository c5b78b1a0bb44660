"""What a compaction costs now: the next call with it, less the next call without it."""

from msgspec import Struct

from lowwater.economics.bill import nano_dollars
from lowwater.values.layout import Lifetime
from lowwater.values.model import Prices


class Purchase(Struct, frozen=True, kw_only=True):
    """The price of one compaction, in nano-dollars."""

    cost_now: int
    """The next call after it, its summary included."""
    cost_kept: int
    """The next call without it."""
    summary_cost: int = 0

    @property
    def price(self) -> int:
        """What it costs more than not doing it; negative if it pays at once."""
        return self.cost_now - self.cost_kept


def price_of(
    before: Prices,
    after: Prices,
    *,
    prompt: int,
    hit: int,
    hit_after: int,
    removes: int,
    summary_cost: int = 0,
    output: int = 0,
    lifetime: Lifetime = "short",
) -> Purchase:
    """Return the price of removing `removes` of `prompt` tokens.

    `before` and `after` are the prices at either size, which differ across a cliff. `hit` is what the call would read
    as it is; `hit_after` the largest stored boundary before the first change, 0 if the cache is cold.
    """
    smaller = max(0, prompt - removes)
    changed = _weighed(after, smaller, hit=min(hit_after, smaller), output=output, lifetime=lifetime)
    kept = _weighed(before, prompt, hit=min(hit, prompt), output=output, lifetime=lifetime)
    return Purchase(
        cost_now=nano_dollars(changed) + summary_cost,
        cost_kept=nano_dollars(kept),
        summary_cost=summary_cost,
    )


def _weighed(prices: Prices, prompt: int, *, hit: int, output: int, lifetime: Lifetime) -> int:
    fresh = prices.input
    if lifetime == "short":
        fresh = prices.cache_write
    elif lifetime == "long":
        fresh = prices.cache_write if prices.cache_write_long is None else prices.cache_write_long
    return hit * prices.cache_read + (prompt - hit) * fresh + output * prices.output
