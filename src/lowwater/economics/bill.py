"""What one call costs, in nano-dollars."""

from collections.abc import Iterable

from lowwater.values.model import TOKENS_PER_PRICE, Model, Prices
from lowwater.values.usage import Usage


def cost_of(usage: Usage, model: Model, at: float | None = None) -> int | None:
    """Return what a call at the moment `at` costs, or None if the model's price is unknown.

    The size of the prompt decides the prices of the whole request, its output included.
    """
    prices = model.prices_at(usage.prompt, at)
    return None if prices is None else cost_at(usage, prices)


def cost_of_all(usages: Iterable[Usage], model: Model, at: float | None = None) -> int | None:
    """Return what several calls cost together, each billed by its own size, or None if the price is unknown.

    A compaction on the provider's side is a call of its own beside the answer's.
    """
    total = 0
    for usage in usages:
        cost = cost_of(usage, model, at)
        if cost is None:
            return None
        total += cost
    return total


def cost_at(usage: Usage, prices: Prices) -> int:
    """Return what a call costs at `prices`, to the nearest nano-dollar."""
    long = prices.cache_write if prices.cache_write_long is None else prices.cache_write_long
    return nano_dollars(
        usage.uncached * prices.input
        + usage.cache_read * prices.cache_read
        + usage.cache_write * prices.cache_write
        + usage.cache_write_long * long
        + usage.output * prices.output
    )


def nano_dollars(weighed: int) -> int:
    """Return a sum of tokens × price as nano-dollars, halves up."""
    return (weighed + TOKENS_PER_PRICE // 2) // TOKENS_PER_PRICE
