"""What a model's prices say about when to compact: the numbers of the tuning guide."""

from math import inf, isfinite, sqrt
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.lifetimes import Lifetimes, lifetimes_of
from lowwater.core.costs.prices import with_fallback_prices
from lowwater.core.decisions import Currency
from lowwater.core.limits import Limits, derive_limits
from lowwater.core.models.model import TOKENS_PER_PRICE, Model, Prices, Uncached
from lowwater.errors import BadInput
from lowwater.settings import CompressionSettings

_NANO_DOLLARS_PER_TOKEN = 1_000
"""Of a price of one dollar per million tokens."""


class Ratios(Struct, frozen=True, kw_only=True):
    """Prices as multiples of the input price."""

    read: float
    write: float
    output: float


class PlannedCompaction(Struct, frozen=True, kw_only=True):
    """A compaction in tokens: what stands before it, what it replaces, what stays behind, what it writes."""

    before: int
    """Tools, system and whatever else stays untouched in front."""
    replaced: int
    kept: int
    """Tokens behind that stay, and are written again."""
    summary: int = 0
    instruction: int = 0
    """What is asked for the summary, beside the text."""

    @property
    def prompt(self) -> int:
        """The prompt before it."""
        return self.before + self.replaced + self.kept

    @property
    def removes(self) -> int:
        """The tokens the prompt loses."""
        return self.replaced - self.summary


class SimplePayback(Struct, frozen=True, kw_only=True):
    """What a cache miss costs, in nano-dollars, and after how many turns the saved tokens are said to have paid for it."""

    miss_cost: int
    turns: float | None
    """None if nothing is saved: it never pays."""


def ratios_of(prices: Prices, *, long: bool = False) -> Ratios:
    """Return prices as multiples of the input price; with `long`, for writes at the long lifetime."""
    write = prices.cache_write_long if long and prices.cache_write_long is not None else prices.cache_write
    return Ratios(
        read=prices.cache_read / prices.input,
        write=write / prices.input,
        output=prices.output / prices.input,
    )


def own_summary(at: Ratios, what: PlannedCompaction, *, how: Literal["riding", "cold"]) -> float:
    """Return what the summary costs if the same model writes it after the same request, warm or not."""
    carried = at.read if how == "riding" else 1.0
    return carried * what.prompt + what.instruction + at.output * what.summary


def other_summary(what: PlannedCompaction, *, input: float, output: float) -> float:
    """Return what the summary costs from another model, at its prices as multiples of this model's input price."""
    return input * (what.replaced + what.instruction) + output * what.summary


def break_even(at: Ratios, what: PlannedCompaction, summary_cost: float = 0.0) -> float:
    """Return the calls after which a compaction of a warm prompt has paid for itself; infinite if it removes nothing."""
    saved = at.read * what.removes
    paid = (at.write - at.read) * (what.summary + what.kept) + summary_cost
    return paid / saved if saved > 0 else inf


def break_even_prune(at: Ratios, *, removes: int, survives: int) -> float:
    """Return the calls after which a prune has paid for itself, with `survives` tokens left behind its first edit."""
    return break_even(at, PlannedCompaction(before=0, replaced=removes, kept=survives))


def simple_payback(*, cached: int, saved: int, input_price: float, read_price: float) -> SimplePayback:
    """Return the payback of a compaction as it is commonly reckoned; prices are in dollars per million tokens.

    `turns = cached × (input_price − read_price) ÷ (saved × input_price)`: the formula of lossless-claw's pull request 306.
    It is wrong twice and stays for comparison: saved tokens would have been read from the cache and not paid as fresh input,
    and of the cached prompt only what stands behind the cut is written again. `lowwater presets` shows the exact break-even.
    """
    penalty = input_price - read_price
    return SimplePayback(
        miss_cost=round(cached * penalty * _NANO_DOLLARS_PER_TOKEN),
        turns=cached * penalty / (saved * input_price) if saved > 0 else None,
    )


def optimal_turns(at: Ratios, *, fixed: float, growth: float) -> float:
    """Return the calls between two compactions that cost least, if each costs `fixed` and a call adds `growth`."""
    return sqrt(2 * fixed / (at.read * growth)) if at.read * growth > 0 else inf


By = Literal["riding", "not riding", "other"]


class Shape(Struct, frozen=True, kw_only=True):
    """A session that grows steadily, in tokens."""

    growth: int
    """What a call adds to the prompt."""
    preamble: int
    """Tools and system."""
    tail: int
    """The newest messages, which stay."""
    summary: int
    instruction: int = 400
    """The words that ask for a summary."""

    @property
    def after(self) -> int:
        """The prompt a compaction leaves."""
        return self.preamble + self.summary + self.tail

    def compaction(self, replaced: int) -> PlannedCompaction:
        """Return the compaction that replaces so much, the summary before it included."""
        return PlannedCompaction(
            before=self.preamble,
            replaced=replaced,
            kept=self.tail,
            summary=self.summary,
            instruction=self.instruction,
        )


class Way(Struct, frozen=True, kw_only=True):
    """One way to get summaries written, and how often it then pays to compact; amounts in input tokens."""

    by: By
    """The session's own model after the same request, its prefix cached or not, or another model."""
    break_even: float | None
    """Calls after which a full compaction has paid for itself; None is never."""
    fixed: float
    """F: what a compaction costs however much it removes."""
    calls: float | None
    """n*: calls between two compactions; None if no compaction ever pays."""
    trigger: int | None
    """The prompt size that is then reached, if nothing forces a compaction before."""
    per_token: float
    """What a summary costs for each token more that it replaces."""
    per_call: float
    """What rent and compactions come to at each call: by it ways are compared."""


def own_way(at: Ratios, shape: Shape, replaced: int, *, by: Literal["riding", "not riding"]) -> Way:
    """Return the way in which the session's own model writes the summary after the same request."""
    how: Literal["riding", "cold"] = "riding" if by == "riding" else "cold"
    cost, least = (own_summary(at, what, how=how) for what in _both(shape, replaced))
    carried = at.read if by == "riding" else 1.0
    return _way(at, shape, replaced, by=by, cost=cost, least=least, carried=carried)


def other_way(at: Ratios, shape: Shape, replaced: int, *, input: float, output: float) -> Way:
    """Return the way in which another model does, at its prices as multiples of this model's input price."""
    cost, least = (other_summary(what, input=input, output=output) for what in _both(shape, replaced))
    return _way(at, shape, replaced, by="other", cost=cost, least=least, carried=input)


def _both(shape: Shape, replaced: int) -> tuple[PlannedCompaction, PlannedCompaction]:
    """Return the full compaction, and the one that replaces nothing but the summary before it."""
    return shape.compaction(replaced), shape.compaction(shape.summary)


def _way(
    at: Ratios, shape: Shape, replaced: int, *, by: By, cost: float, least: float, carried: float
) -> Way:
    """Return a way whose full summary costs `cost`, that of nothing new `least`, each token more `carried`."""
    fixed = (at.write - at.read) * (shape.summary + shape.tail) + least
    calls = optimal_turns(at, fixed=fixed, growth=shape.growth)
    paid = break_even(at, shape.compaction(replaced), cost)
    pays = isfinite(calls)
    return Way(
        by=by,
        break_even=paid if isfinite(paid) else None,
        fixed=fixed,
        calls=calls if pays else None,
        trigger=shape.after + round(calls * shape.growth) if pays else None,
        per_token=carried,
        per_call=at.read * shape.growth * calls / 2 + fixed / calls + carried * shape.growth if pays else inf,
    )


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
    known, currency = with_fallback_prices(_billed(model, at))
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
