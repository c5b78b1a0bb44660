"""The simple payback calculator, as it is commonly used (SPEC E).

It takes every saved token for one paid at the full input price and every cached token for one written again, and so is
wrong twice; the exact arithmetic is that of ECONOMICS. It stays for comparison, and nothing is built on it.
"""

from msgspec import Struct

from lowwater.values.model import TOKENS_PER_PRICE, Prices


class SimplePayback(Struct, frozen=True, kw_only=True):
    """What a miss costs, in nano-dollars, and after how many turns the saved tokens are said to have paid for it."""

    miss_cost: int
    turns: float | None
    """None if nothing is saved: it never pays."""


def simple_payback(prices: Prices, *, cached: int, saved: int) -> SimplePayback:
    """Return `cached × miss_penalty ÷ (saved × input_price)`; the penalty is what a miss costs more than a hit."""
    lost = cached * (prices.input - prices.cache_read)
    return SimplePayback(
        miss_cost=(lost + TOKENS_PER_PRICE // 2) // TOKENS_PER_PRICE,
        turns=lost / (saved * prices.input) if saved > 0 else None,
    )
