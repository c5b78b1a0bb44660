"""What a model's prices say about when to compact: the numbers of the tuning guide, derived and not written down.

They are for a session that grows steadily (`schedule`). Left out is rework, which depends on the content and puts a
purchase off.
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.economics.break_even import Ratios, break_even_prune, ratios_of
from lowwater.economics.lifetimes_sold import Lifetimes, lifetimes_of
from lowwater.economics.schedule import By, Shape, Way, other_way, own_way
from lowwater.economics.stand_in import with_prices
from lowwater.errors import BadInput
from lowwater.values.limits import Limits, derive_limits
from lowwater.values.market import Currency
from lowwater.values.model import TOKENS_PER_PRICE, Model, Prices, Uncached
from lowwater.values.settings import CompressionSettings

DEAD = 10_000
"""Tokens nobody needs any more, to make an amount of money of a rent."""
_HISTORY = 120_000
"""What the full compaction replaces whose break-even is shown, where that much fits."""

Point = Literal["rent", "wall", "cliff", "ceiling"]


class Prune(Struct, frozen=True, kw_only=True):
    """Old results elided without a model, as an example: a third of the history from its middle on."""

    removes: int
    survives: int
    """Tokens behind the first edit, which are written again."""
    break_even: float | None
    """None is never."""


class Amounts(Struct, frozen=True, kw_only=True):
    """In nano-dollars, or whatever the currency is."""

    rent: int
    """What `DEAD` tokens cost at each call over a warm cache."""
    cold_saves: int
    """What it saves at once to remove `DEAD` tokens before a cold call."""
    compaction: int
    """What a compaction at the trigger costs more than the next call without it."""
    cold_compaction: int
    """The same before a cold call, the summary by the same model shown only what it replaces; below zero it pays at once."""
    warm_call: int
    """The input of a call at the trigger: its newest growth written, everything else read."""
    cold_call: int
    """The same with nothing cached."""
    over_cliff: int | None
    """What a warm call that just crosses the nearest cliff costs more than one just below; None without a cliff."""


class Tuning(Struct, frozen=True, kw_only=True):
    """What one model's prices say; with the currency "tokens" they are assumed."""

    model: str
    provider: str
    context: int
    prices: Prices | None
    """None is unknown."""
    currency: Currency
    ratios: Ratios
    shape: Shape
    replaced: int
    """What the full compaction replaces whose break-even is shown."""
    ways: tuple[Way, ...]
    """The first is the one the trigger is for."""
    other: str | None
    """The model of the way `other`."""
    prune: Prune
    trigger: int
    """The prompt size at which a compaction comes: where its rent is paid, or a size forces it."""
    trigger_by: Point
    limits: Limits
    amounts: Amounts
    lifetimes: Lifetimes

    @property
    def trigger_share(self) -> float:
        """The trigger as a share of the context length."""
        return self.trigger / self.context

    @property
    def runway(self) -> int:
        """Tokens between the view a compaction leaves and the trigger."""
        return self.trigger - self.shape.after

    @property
    def calls(self) -> float:
        """Calls from one compaction to the next."""
        return self.runway / self.shape.growth

    @property
    def forced_by(self) -> Point:
        """Which size is the nearest that forces a compaction."""
        return _nearest(self.limits)

    def way(self, by: By) -> Way | None:
        """Return one way to get summaries, or None if it is not on offer."""
        return next((way for way in self.ways if way.by == by), None)


def tuning_of(
    model: Model,
    *,
    growth: int,
    preamble: int,
    tail: int,
    summary: int,
    other: Model | None = None,
    prefer_other: bool = False,
    ceiling: int | None = None,
    at: float | None = None,
) -> Tuning:
    """Return the numbers for a session on `model` at the prices of the moment `at`, or raise BadInput if it cannot fit.

    `other` may write the summaries too; with `prefer_other` the trigger is for it where that is cheaper than riding.
    """
    shape = Shape(growth=growth, preamble=preamble, tail=tail, summary=summary)
    known, currency = with_prices(_billed(model, at))
    prices = known.prices
    assert prices is not None, "unknown prices have a stand-in here"
    ratios, limits = ratios_of(prices), limits_of(known, growth=growth, ceiling=ceiling)
    if shape.after + 1 >= limits.threshold:
        raise BadInput(
            f"preamble, summary and tail have {shape.after:,} tokens, and {model.name} must be kept below"
            f" {limits.threshold:,}, so there is nothing to compact: give smaller ones"
        )
    replaced = min(_HISTORY, _rounded(limits.threshold - preamble - tail))
    writer = _billed(other, at) if other is not None and currency == "usd" else None
    ways = _ways(ratios, shape, replaced, prices, writer.prices if writer else None, prefer=prefer_other)
    wanted = ways[0].trigger
    by_rent = wanted is not None and wanted <= limits.threshold
    trigger = wanted if wanted is not None and by_rent else limits.threshold
    return Tuning(
        model=model.name,
        provider=model.provider,
        context=model.context_length,
        prices=prices if currency == "usd" else None,
        currency=currency,
        ratios=ratios,
        shape=shape,
        replaced=replaced,
        ways=ways,
        other=writer.name if writer and len(ways) > 2 else None,
        prune=_prune(ratios, removes=_rounded(replaced // 3), survives=_rounded(replaced // 2)),
        trigger=trigger,
        trigger_by="rent" if by_rent else _nearest(limits),
        limits=limits,
        amounts=_amounts(known, prices, shape, ways[0], trigger),
        lifetimes=lifetimes_of(prices, known.cache, prompt=(shape.after + trigger) // 2, growth=growth),
    )


def limits_of(model: Model, *, growth: int = 0, ceiling: int | None = None) -> Limits:
    """Return the limits of a policy that compares prices, on a model, with default settings."""
    limits = derive_limits(model.context_length, CompressionSettings(), max_output=model.max_output)
    cliff = model.cliffs[0].starts_at if model.cliffs else None
    return replace(limits, cliff=cliff).priced(ceiling, growth=growth)


def _billed(model: Model, at: float | None) -> Model:
    """Return the model with the prices of a moment as its only ones; without a cache everything is plain input."""
    for period in model.periods if at is not None else ():
        if at is not None and period.holds(at):
            model = replace(model, prices=period.prices, cliffs=period.cliffs)
    if not isinstance(model.cache.matching, Uncached):
        return model

    def plain(prices: Prices) -> Prices:
        return replace(prices, cache_read=prices.input, cache_write=prices.input, cache_write_long=None)

    cliffs = tuple(replace(cliff, prices=plain(cliff.prices)) for cliff in model.cliffs)
    return replace(model, prices=plain(model.prices) if model.prices else None, cliffs=cliffs)


def _ways(
    at: Ratios, shape: Shape, replaced: int, prices: Prices, others: Prices | None, *, prefer: bool
) -> tuple[Way, ...]:
    riding = own_way(at, shape, replaced, by="riding")
    resent = own_way(at, shape, replaced, by="not riding")
    if others is None:
        return (riding, resent)
    cost_in, cost_out = others.input / prices.input, others.output / prices.input
    other = other_way(at, shape, replaced, input=cost_in, output=cost_out)
    if prefer and other.per_call < riding.per_call:
        return (other, riding, resent)
    return (riding, resent, other)


def _rounded(tokens: int) -> int:
    """Return whole thousands, if there are any."""
    return tokens // 1_000 * 1_000 or tokens


def _prune(at: Ratios, *, removes: int, survives: int) -> Prune:
    calls = break_even_prune(at, removes=removes, survives=survives)
    return Prune(removes=removes, survives=survives, break_even=calls if at.read and removes else None)


def _amounts(model: Model, prices: Prices, shape: Shape, way: Way, trigger: int) -> Amounts:
    at, growth = ratios_of(prices), shape.growth

    def nano(tokens: float) -> int:
        return round(tokens * prices.input / TOKENS_PER_PRICE)

    def warm(at: Prices, prompt: int) -> int:
        return ((prompt - growth) * at.cache_read + growth * at.cache_write) // TOKENS_PER_PRICE

    removed = trigger - shape.after
    carried = way.per_token - at.read
    asked = shape.summary + removed + shape.instruction + at.output * shape.summary
    cliff = model.cliffs[0] if model.cliffs else None
    return Amounts(
        rent=nano(at.read * DEAD),
        cold_saves=nano(at.write * DEAD),
        compaction=nano(way.fixed + carried * removed),
        cold_compaction=nano(asked - at.write * removed),
        warm_call=warm(prices, trigger),
        cold_call=nano(at.write * trigger),
        over_cliff=warm(cliff.prices, cliff.starts_at) - warm(prices, cliff.starts_at) if cliff else None,
    )


def _nearest(limits: Limits) -> Point:
    if limits.threshold == limits.cliff:
        return "cliff"
    return "wall" if limits.threshold == limits.wall else "ceiling"
