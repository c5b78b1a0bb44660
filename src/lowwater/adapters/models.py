"""Loads the registry of models, with dated prices from the bundled list of `genai-prices`; never uses the network."""

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from lowwater.core.models.model import (
    CacheRules,
    Cliff,
    Listing,
    Model,
    ModelFamily,
    Period,
    Prices,
    TokenLimit,
)
from lowwater.core.models.names import ModelSpelling, one_spelling
from lowwater.core.models.registry import Registry
from lowwater.errors import UnreadableFile

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
    """Return the listing of genai-prices on a day for the model it calls `reference`, as in `anthropic/claude-opus-5`."""
    provider, _, model = reference.partition("/")
    return _look_up((model,), provider, noon(on))


def find_listing(spelling: ModelSpelling, family: ModelFamily | None, *, on: date) -> Listing | None:
    """Return the listing of genai-prices on a day for a model's name; the host in it, or else its family, gives the provider.

    A price of zero counts as unknown: the list has it for free models as well as for those without a price.
    """
    return _look_up(_references(spelling), spelling.host or (family.provider if family else None), noon(on))


def noon(on: date) -> datetime:
    """Return the moment used for a day, for prices that depend on the hour."""
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
        source=f"genai-prices {_list_version()} {seller.id}/{model.id}",
        context_length=model.context_window or None,
        prices=prices,
        cliffs=_cliffs(price) if prices else (),
        assumptions=(_NO_DISCOUNT,) if prices and price.cache_read_mtok is None else (),
    )


@lru_cache(maxsize=1)
def _list_version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - loaded with the list

    return version("genai-prices")


def _references(spelling: ModelSpelling) -> tuple[str, ...]:
    """Return the names to look up, most specific first; the list has some dated names, and none with brackets."""
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
    """Return the prices for a prompt of `prompt` tokens; cache reads and writes without a price count as input."""
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


class RegistryRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model in the data file; its provider and most cache rules are those of its family."""

    name: str
    aliases: tuple[str, ...] = ()
    family: str
    context_length: TokenLimit
    max_output: TokenLimit | None = None
    prices: Prices
    cliffs: tuple[Cliff, ...] = ()
    periods: tuple[Period, ...] = ()
    min_cacheable: TokenLimit | None = None
    binds_thinking: bool = False
    compacts: bool = False
    notes: str = ""
    price_list: str = ""
    """Its name in genai-prices, as provider/model; empty if it is not listed."""
    sources: Annotated[tuple[str, ...], Meta(min_length=1)]
    as_of: date


class ModelFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data file: what it is, its families and its models."""

    about: str
    unit: str
    conventions: tuple[str, ...]
    as_of: date
    families: tuple[ModelFamily, ...]
    models: tuple[RegistryRow, ...]


def load_registry(*, as_of: date | None = None) -> Registry:
    """Return the registry of the bundled data file; with `as_of`, with the prices of that day.

    If a price changed in genai-prices between the row's day and `as_of`, its price is used, otherwise ours. A model that only
    genai-prices knows is found too, which its assumptions say.
    """
    file = _bundled()
    return Registry(
        models_of(file, as_of=as_of), file.families, price_list=partial(find_listing, on=as_of or file.as_of)
    )


def read_models(data: bytes) -> ModelFile:
    """Return the data file decoded, or raise UnreadableFile naming the row and field that is wrong."""
    try:
        file = msgspec.json.decode(data, type=ModelFile)
    except msgspec.DecodeError as error:
        raise UnreadableFile(f"the model data cannot be read: {error}") from None
    families = {family.name for family in file.families}
    seen: set[str] = set()
    for row in file.models:
        if row.family not in families:
            raise UnreadableFile(
                f"the model data names no family {row.family!r}, which {row.name!r} belongs to"
            )
        for name in map(one_spelling, (row.name, *row.aliases)):
            if name in seen:
                raise UnreadableFile(f"the model data lists {name!r} twice")
            seen.add(name)
    return file


def models_of(file: ModelFile, *, as_of: date | None = None) -> tuple[Model, ...]:
    """Return the models of a data file, each with its family's provider and cache rules."""
    families = {family.name: family for family in file.families}
    models = ((row, _model(row, families[row.family])) for row in file.models)
    return tuple(_repriced(model, row, as_of) if as_of else model for row, model in models)


def _model(row: RegistryRow, family: ModelFamily) -> Model:
    cache: CacheRules = replace(family.cache, min_cacheable=row.min_cacheable)
    return Model(
        name=row.name,
        aliases=row.aliases,
        provider=family.provider,
        family=family.name,
        context_length=row.context_length,
        max_output=row.max_output,
        prices=row.prices,
        cliffs=row.cliffs,
        periods=row.periods,
        cache=cache,
        max_bytes=family.max_bytes,
        binds_thinking=row.binds_thinking,
        compacts=row.compacts,
        notes=row.notes,
        sources=row.sources,
        as_of=row.as_of.isoformat(),
    )


def _repriced(model: Model, row: RegistryRow, day: date) -> Model:
    """Return `model` with the prices of `day`, if genai-prices has a change between the row's day and that one."""
    if not row.price_list:
        return model
    then, now = listing_of(row.price_list, row.as_of), listing_of(row.price_list, day)
    if then is None or now is None or now.prices is None:
        return model
    if (then.prices, then.cliffs) == (now.prices, now.cliffs):
        return model
    dated = f"prices of {day.isoformat()}: {now.source}"
    # The periods belong to the row's prices, not to those of another day.
    return replace(model, prices=now.prices, cliffs=now.cliffs, periods=(), sources=(*model.sources, dated))


@lru_cache(maxsize=1)
def _bundled() -> ModelFile:
    from importlib.resources import files  # noqa: PLC0415 - loaded once, with the registry

    return read_models(files("lowwater").joinpath("data", "models.json").read_bytes())
