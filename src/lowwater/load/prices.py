"""Dollars from `genai-prices`: what its bundled, dated list says of a model. Never touches the network."""

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from lowwater.core.models.model import Cliff, Family, Listing, Prices
from lowwater.core.models.names import Spelling

if TYPE_CHECKING:  # importing the list takes a fifth of a second: only those who ask for a price pay it
    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

_PROVIDERS = {
    "bedrock": "aws",
    "bedrock-regional": "aws",
    "vertex": "google",
    "copilot": "github-copilot",
    "xai": "x-ai",
    "moonshot": "moonshotai",
}
_DATE = re.compile(r"[-@]20\d\d-?\d\d-?\d\d.*", re.DOTALL)
_MICRO = 1_000_000
_NO_DISCOUNT = "no price for cache reads known: they are counted at the input price"


def listing_of(reference: str, on: date) -> Listing | None:
    """Return what genai-prices says on a day of the model it calls `reference`, as in `anthropic/claude-opus-5`."""
    provider, _, model = reference.partition("/")
    return _look_up((model,), provider, noon(on))


def find_listing(spelling: Spelling, family: Family | None, *, on: date) -> Listing | None:
    """Return what genai-prices says on a day of a name; the host in it, or else the family, tells the provider.

    A price of zero counts as no price: lists have it for what is free as well as for what they do not know.
    """
    return _look_up(_references(spelling), spelling.host or (family.provider if family else None), noon(on))


def noon(on: date) -> datetime:
    """Return the moment that stands for a day, where prices depend on the hour."""
    return datetime.combine(on, time(12), tzinfo=UTC)


@lru_cache(maxsize=4096)
def _look_up(references: tuple[str, ...], provider: str | None, at: datetime) -> Listing | None:
    found = _find(references, _PROVIDERS.get(provider, provider) if provider else None)
    if found is None:
        return None
    seller, model = found
    price = model.get_prices(at)
    prices = _prices(price, 0)
    return Listing(
        provider=seller.id,
        name=model.id,
        source=f"genai-prices {version('genai-prices')} {seller.id}/{model.id}",
        context_length=model.context_window or None,
        prices=prices,
        cliffs=_cliffs(price) if prices else (),
        assumptions=(_NO_DISCOUNT,) if prices and price.cache_read_mtok is None else (),
    )


def _references(spelling: Spelling) -> tuple[str, ...]:
    """Return the names to try, fullest first; the list knows some dates, and no brackets."""
    path, last = "/".join(spelling.path), spelling.path[-1]
    plain = last.partition("[")[0].replace("@", "-")
    return tuple(dict.fromkeys((path, last, plain, _DATE.sub("", path), _DATE.sub("", plain))))


def _find(references: tuple[str, ...], provider: str | None) -> "tuple[Provider, ModelInfo] | None":
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - see TYPE_CHECKING above

    snapshot = get_snapshot()
    for reference in references:
        try:
            return snapshot.find_provider_model(reference, None, provider, None)
        except LookupError:
            continue
    return None


def _prices(price: "ModelPrice", prompt: int) -> Prices | None:
    """Return the prices for a prompt of `prompt` tokens; what has no price of its own bills as input."""
    fresh = _amount(price.input_mtok, prompt)
    output = _amount(price.output_mtok, prompt)
    if not fresh or output is None:
        return None
    read = _amount(price.cache_read_mtok, prompt)
    write = _amount(price.cache_write_mtok, prompt)
    return Prices(
        input=fresh,
        cache_read=fresh if read is None else read,
        cache_write=fresh if write is None else write,
        cache_write_long=_amount(price.cache_write_1h_mtok, prompt),
        output=output,
    )


def _cliffs(price: "ModelPrice") -> tuple[Cliff, ...]:
    amounts = (price.input_mtok, price.cache_read_mtok, price.cache_write_mtok, price.output_mtok)
    starts = {tier.start for amount in amounts for tier in getattr(amount, "tiers", ())}
    priced = ((start, _prices(price, start + 1)) for start in sorted(starts))
    return tuple(Cliff(above=start, prices=prices) for start, prices in priced if prices is not None)


def _amount(value: "Decimal | TieredPrices | None", prompt: int) -> int | None:
    """Return dollars per million tokens in our unit, to the nearest whole one."""
    if value is None:
        return None
    if not isinstance(value, Decimal):
        reached = [tier.price for tier in value.tiers if prompt > tier.start]
        value = reached[-1] if reached else value.base
    return int((value * _MICRO).to_integral_value())
