"""The shape of `lowwater models --json`, which programs may rely on."""

import msgspec
from msgspec import Struct

from lowwater.core.models.model import CacheRules, Family, Model, Prices
from lowwater.core.models.registry import How, Match, Registry

_UNIT = 1_000_000


class Dollars(Struct, frozen=True, kw_only=True):
    """Prices in dollars per million tokens; `cache_write_long` is null where it has no price of its own."""

    input: float
    cache_read: float
    cache_write: float
    cache_write_long: float | None
    output: float


class Ratios(Struct, frozen=True, kw_only=True):
    """Prices as multiples of the input price."""

    read: float
    write: float
    write_long: float | None
    output: float


class CliffShape(Struct, frozen=True, kw_only=True):
    """Above this prompt size, or from it on if `inclusive`, the whole request has these prices."""

    above: int
    inclusive: bool
    usd_per_million_tokens: Dollars


class ModelShape(Struct, frozen=True, kw_only=True):
    """One model; null is not known or not published. `assumptions` is empty for a listed model."""

    name: str
    aliases: tuple[str, ...]
    provider: str
    family: str
    context_length: int
    max_output: int | None
    usd_per_million_tokens: Dollars | None
    ratios: Ratios | None
    cliffs: tuple[CliffShape, ...]
    cache: CacheRules
    binds_thinking: bool
    notes: str
    sources: tuple[str, ...]
    as_of: str
    assumptions: tuple[str, ...]


class MatchShape(Struct, frozen=True, kw_only=True):
    """The answer to `lowwater models NAME --json`."""

    asked: str
    how: How
    ignored_suffix: str
    model: ModelShape


class RegistryShape(Struct, frozen=True, kw_only=True):
    """The answer to `lowwater models --json`."""

    models: tuple[ModelShape, ...]
    families: tuple[Family, ...]


def match_json(match: Match) -> str:
    """Return one name and its model as JSON."""
    return _text(
        MatchShape(
            asked=match.spelling.asked, how=match.how, ignored_suffix=match.suffix, model=_model(match.model)
        )
    )


def registry_json(registry: Registry) -> str:
    """Return everything listed as JSON."""
    return _text(RegistryShape(models=tuple(map(_model, registry.models)), families=registry.families))


def _text(shape: Struct) -> str:
    return msgspec.json.format(msgspec.json.encode(shape), indent=2).decode()


def _model(model: Model) -> ModelShape:
    cliffs = (
        CliffShape(
            above=cliff.above, inclusive=cliff.inclusive, usd_per_million_tokens=_dollars(cliff.prices)
        )
        for cliff in model.cliffs
    )
    return ModelShape(
        name=model.name,
        aliases=model.aliases,
        provider=model.provider,
        family=model.family,
        context_length=model.context_length,
        max_output=model.max_output,
        usd_per_million_tokens=_dollars(model.prices) if model.prices else None,
        ratios=_ratios(model.prices) if model.prices else None,
        cliffs=tuple(cliffs),
        cache=model.cache,
        binds_thinking=model.binds_thinking,
        notes=model.notes,
        sources=model.sources,
        as_of=model.as_of,
        assumptions=model.assumptions,
    )


def _dollars(prices: Prices) -> Dollars:
    long = prices.cache_write_long
    return Dollars(
        input=prices.input / _UNIT,
        cache_read=prices.cache_read / _UNIT,
        cache_write=prices.cache_write / _UNIT,
        cache_write_long=None if long is None else long / _UNIT,
        output=prices.output / _UNIT,
    )


def _ratios(prices: Prices) -> Ratios:
    long = prices.cache_write_long
    return Ratios(
        read=prices.cache_read / prices.input,
        write=prices.cache_write / prices.input,
        write_long=None if long is None else long / prices.input,
        output=prices.output / prices.input,
    )
