"""Loads the registry of models from the project's data file, with dollars from `genai-prices` beside it."""

from datetime import date
from functools import lru_cache, partial
from importlib.resources import files
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from lowwater.core.models.model import CacheRules, Cliff, Count, Family, Model, Period, Prices
from lowwater.core.models.names import one_spelling
from lowwater.core.models.registry import Registry
from lowwater.errors import UnreadableFile
from lowwater.load.prices import find_listing, listing_of


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model in the data file; its provider and most cache rules are those of its family."""

    name: str
    aliases: tuple[str, ...] = ()
    family: str
    context_length: Count
    max_output: Count | None = None
    prices: Prices
    cliffs: tuple[Cliff, ...] = ()
    periods: tuple[Period, ...] = ()
    min_cacheable: Count | None = None
    binds_thinking: bool = False
    compacts: bool = False
    notes: str = ""
    price_list: str = ""
    """What genai-prices calls it, as provider/model; empty where it does not list it."""
    sources: Annotated[tuple[str, ...], Meta(min_length=1)]
    as_of: date


class ModelFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data file: what it is, its families and its models."""

    about: str
    unit: str
    conventions: tuple[str, ...]
    as_of: date
    families: tuple[Family, ...]
    models: tuple[Row, ...]


def load_registry(*, as_of: date | None = None) -> Registry:
    """Return the registry as the data file has it; with `as_of`, with the prices of that day.

    Where genai-prices says that a price changed between the row's day and `as_of`, its price holds; otherwise ours
    does. A model that only genai-prices knows is found too, with that said among its assumptions.
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


def _model(row: Row, family: Family) -> Model:
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


def _repriced(model: Model, row: Row, day: date) -> Model:
    """Return `model` with the prices of `day`, if genai-prices dates a change between the row's day and it."""
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
    return read_models(files("lowwater").joinpath("data", "models.json").read_bytes())
