"""Prices for a model whose prices are unknown: only their proportions count, and no dollar figure is made of them."""

from msgspec.structs import replace

from lowwater.values.market import Currency
from lowwater.values.model import Marks, Model, Prices

_INPUT = 1_000_000
"""As if a million input tokens cost a dollar."""
_READ, _PREMIUM, _OUTPUT = 0.1, 1.25, 5
"""What most providers ask for a cache read, for a write at a mark, and for output, as multiples of input."""


def with_prices(model: Model) -> tuple[Model, Currency]:
    """Return a model that has prices, and what they are counted in: dollars, or input tokens if they are assumed."""
    if model.prices is not None:
        return model, "usd"
    write = _PREMIUM if isinstance(model.cache.matching, Marks) else 1
    prices = Prices(
        input=_INPUT,
        cache_read=int(_INPUT * _READ),
        cache_write=int(_INPUT * write),
        output=_INPUT * _OUTPUT,
    )
    return replace(model, prices=prices, cliffs=(), periods=()), "tokens"
