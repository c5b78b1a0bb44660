"""When compacting pays on a model, computed from its prices: the numbers of `lowwater models presets` and the tuning guide.

Amounts without a unit are in input tokens: multiples of the price of one input token.
"""

from math import inf, isfinite, sqrt
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.marks import Lifetimes, lifetimes_of
from lowwater.core.costs.prices import with_fallback_prices
from lowwater.core.decisions import Currency
from lowwater.core.limits import Limits, derive_limits
from lowwater.core.models.model import TOKENS_PER_PRICE, Model, Prices, Uncached
from lowwater.errors import BadInput
from lowwater.settings import CompressionSettings

_NANO_DOLLARS_PER_TOKEN = 1_000
"""At a price of one dollar per million tokens."""
_HISTORY = 120_000
"""What the full compaction replaces, for which the break-even is shown, if that much fits."""

DEAD = 10_000
"""Tokens that are no longer needed, as an example whose rent is shown as an amount of money."""

SummaryWay = Literal["warm", "cold", "other"]
"""By the session's model, appended to its last request, whose prefix is cached (`warm`) or not (`cold`); by another model (`other`)."""
Point = Literal["rent", "wall", "cliff", "ceiling"]


class Ratios(Struct, frozen=True, kw_only=True):
    """Prices as multiples of the input price."""

    read: float
    write: float
    output: float


def ratios_of(prices: Prices, *, long: bool = False) -> Ratios:
    """Return prices as multiples of the input price; with `long`, for writes at the long lifetime."""
    write = prices.cache_write_long if long and prices.cache_write_long is not None else prices.cache_write
    return Ratios(
        read=prices.cache_read / prices.input,
        write=write / prices.input,
        output=prices.output / prices.input,
    )


class PlannedCompaction(Struct, frozen=True, kw_only=True):
    """The sizes of a compaction, in tokens."""

    before: int
    """The unchanged start of the prompt: tools, system prompt and whatever else."""
    replaced: int
    kept: int
    """What follows and stays, and has to be written to the cache again."""
    summary: int = 0
    instruction: int = 0
    """The instruction that asks for the summary."""

    @property
    def prompt(self) -> int:
        """The size of the prompt before it."""
        return self.before + self.replaced + self.kept

    @property
    def removes(self) -> int:
        """By how many tokens the prompt shrinks."""
        return self.replaced - self.summary


def own_summary(at: Ratios, what: PlannedCompaction, *, how: Literal["warm", "cold"]) -> float:
    """Return what the summary costs if the session's model writes it, appended to the same request, cached or not."""
    carried = at.read if how == "warm" else 1.0
    return carried * what.prompt + what.instruction + at.output * what.summary


def other_summary(what: PlannedCompaction, *, input: float, output: float) -> float:
    """Return what the summary costs from another model, whose prices are multiples of this model's input price."""
    return input * (what.replaced + what.instruction) + output * what.summary


def break_even(at: Ratios, what: PlannedCompaction, summary_cost: float = 0.0) -> float:
    """Return the calls after which a compaction of a warm prompt has paid for itself; infinite if it removes nothing."""
    saved = at.read * what.removes
    cost = (at.write - at.read) * (what.summary + what.kept) + summary_cost
    return cost / saved if saved > 0 else inf


def break_even_prune(at: Ratios, *, removes: int, survives: int) -> float:
    """Return the calls after which a prune has paid for itself, with `survives` tokens left after its first edit."""
    return break_even(at, PlannedCompaction(before=0, replaced=removes, kept=survives))


def optimal_turns(at: Ratios, *, fixed: float, growth: float) -> float:
    """Return the cheapest number of calls between two compactions, if each costs `fixed` and a call adds `growth` tokens."""
    return sqrt(2 * fixed / (at.read * growth)) if at.read * growth > 0 else inf


class SimplePayback(Struct, frozen=True, kw_only=True):
    """What a cache miss costs, in nano-dollars, and after how many turns the saved tokens pay for it, by a simple formula."""

    miss_cost: int
    turns: float | None
    """None if nothing is saved, so that it never pays."""


def simple_payback(*, cached: int, saved: int, input_price: float, read_price: float) -> SimplePayback:
    """Return the payback of a compaction as it is commonly computed; prices are in dollars per million tokens.

    `turns = cached × (input_price − read_price) ÷ (saved × input_price)`: the formula of lossless-claw's pull request 306.
    It is provided for comparison and wrong in two ways: the saved tokens would have been read from the cache, not billed as
    fresh input; and only what follows the cut has to be written again. `lowwater models presets` shows the exact break-even.
    """
    penalty = input_price - read_price
    return SimplePayback(
        miss_cost=round(cached * penalty * _NANO_DOLLARS_PER_TOKEN),
        turns=cached * penalty / (saved * input_price) if saved > 0 else None,
    )


class SessionShape(Struct, frozen=True, kw_only=True):
    """The sizes of a session that grows steadily, in tokens."""

    growth: int
    """What a call adds to the prompt."""
    preamble: int
    """Tools and system prompt."""
    tail: int
    """The newest messages, which are kept."""
    summary: int
    instruction: int = 400
    """The instruction that asks for a summary."""

    @property
    def after(self) -> int:
        """The size of the prompt after a compaction."""
        return self.preamble + self.summary + self.tail

    def compaction(self, replaced: int) -> PlannedCompaction:
        """Return the compaction that replaces `replaced` tokens, including the previous summary."""
        return PlannedCompaction(
            before=self.preamble,
            replaced=replaced,
            kept=self.tail,
            summary=self.summary,
            instruction=self.instruction,
        )


class SummaryMethod(Struct, frozen=True, kw_only=True):
    """A way to get summaries written, and how often it pays to compact with it; amounts in input tokens."""

    by: SummaryWay
    """The session's model, appended to the same request with its prefix cached or not, or another model."""
    break_even: float | None
    """Calls after which a full compaction has paid for itself; None: never."""
    fixed: float
    """F: the cost of a compaction that does not depend on how much it replaces."""
    calls: float | None
    """n*: the best number of calls between two compactions; None if none ever pays."""
    trigger: int | None
    """The prompt size reached after so many calls, if no limit forces a compaction earlier."""
    per_token: float
    """The cost of a summary per further token that it replaces."""
    per_call: float
    """The average cost of rent and compactions per call, by which methods are compared."""


def own_way(at: Ratios, shape: SessionShape, replaced: int, *, by: Literal["warm", "cold"]) -> SummaryMethod:
    """Return the method in which the session's model writes the summary, appended to the same request."""
    cost, least = (own_summary(at, what, how=by) for what in _full_and_least(shape, replaced))
    carried = at.read if by == "warm" else 1.0
    return _summary_method(at, shape, replaced, by=by, cost=cost, least=least, carried=carried)


def other_way(
    at: Ratios, shape: SessionShape, replaced: int, *, input: float, output: float
) -> SummaryMethod:
    """Return the method in which another model does, whose prices are multiples of this model's input price."""
    cost, least = (
        other_summary(what, input=input, output=output) for what in _full_and_least(shape, replaced)
    )
    return _summary_method(at, shape, replaced, by="other", cost=cost, least=least, carried=input)


def _full_and_least(shape: SessionShape, replaced: int) -> tuple[PlannedCompaction, PlannedCompaction]:
    """Return the full compaction, and the one that replaces only the previous summary."""
    return shape.compaction(replaced), shape.compaction(shape.summary)


def _summary_method(
    at: Ratios,
    shape: SessionShape,
    replaced: int,
    *,
    by: SummaryWay,
    cost: float,
    least: float,
    carried: float,
) -> SummaryMethod:
    """Return the method whose full summary costs `cost`, a summary of nothing new `least`, and each further token `carried`."""
    fixed = (at.write - at.read) * (shape.summary + shape.tail) + least
    calls = optimal_turns(at, fixed=fixed, growth=shape.growth)
    even = break_even(at, shape.compaction(replaced), cost)
    pays = isfinite(calls)
    return SummaryMethod(
        by=by,
        break_even=even if isfinite(even) else None,
        fixed=fixed,
        calls=calls if pays else None,
        trigger=shape.after + round(calls * shape.growth) if pays else None,
        per_token=carried,
        per_call=at.read * shape.growth * calls / 2 + fixed / calls + carried * shape.growth if pays else inf,
    )


class ExamplePrune(Struct, frozen=True, kw_only=True):
    """An example of a prune, which elides old results without a model: a third of the history, from its middle on."""

    removes: int
    survives: int
    """Tokens after the first edit, which are written to the cache again."""
    break_even: float | None
    """Calls until it has paid for itself; None: never."""


class Amounts(Struct, frozen=True, kw_only=True):
    """Examples of costs and savings, in the currency of the `Tuning`."""

    rent: int
    """What `DEAD` tokens cost at each call with a warm cache."""
    cold_saves: int
    """What removing `DEAD` tokens before a call with a cold cache saves at that call."""
    compaction: int
    """The extra cost of a compaction at the trigger, compared with the next call without it."""
    cold_compaction: int
    """The same before a call with a cold cache, if the same model is sent only what it summarises; negative: it pays at once."""
    warm_call: int
    """The input cost of a call at the trigger: what is new is written to the cache, everything else is read from it."""
    cold_call: int
    """The same with nothing cached."""
    over_cliff: int | None
    """The extra cost of a warm call just above the nearest cliff, compared with one just below; None without a cliff."""


class Tuning(Struct, frozen=True, kw_only=True):
    """When and how compacting pays on one model; with the currency "tokens" its prices are assumed."""

    model: str
    provider: str
    context: int
    prices: Prices | None
    """None if unknown."""
    currency: Currency
    ratios: Ratios
    shape: SessionShape
    replaced: int
    """What the full compaction replaces, for which the break-even is shown."""
    ways: tuple[SummaryMethod, ...]
    """The methods to get summaries; the trigger is computed for the first."""
    other: str | None
    """The model of the method `other`."""
    prune: ExamplePrune
    trigger: int
    """The prompt size at which to compact: where the rent has reached the price, or where a limit forces it."""
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
        """Tokens from the prompt after a compaction to the trigger."""
        return self.trigger - self.shape.after

    @property
    def calls(self) -> float:
        """Calls from one compaction to the next."""
        return self.runway / self.shape.growth

    @property
    def forced_by(self) -> Point:
        """The nearest limit that forces a compaction."""
        return _nearest(self.limits)

    def way(self, by: SummaryWay) -> SummaryMethod | None:
        """Return one method to get summaries, or None if it is not available."""
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
    """Return the numbers for a session on `model` at the prices of the time `at`, or raise BadInput if it does not fit.

    The model `other` may write the summaries too; with `prefer_other` the trigger is computed for it if it is cheaper.
    """
    shape = SessionShape(growth=growth, preamble=preamble, tail=tail, summary=summary)
    known, currency = with_fallback_prices(_billed(model, at))
    prices = known.prices
    assert prices is not None, "unknown prices were replaced by fallback prices"
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
    """Return the limits on a model for a policy that compares prices, with default settings."""
    limits = derive_limits(model.context_length, CompressionSettings(), max_output=model.max_output)
    cliff = model.cliffs[0].starts_at if model.cliffs else None
    return replace(limits, cliff=cliff).priced(ceiling, growth=growth)


def _billed(model: Model, at: float | None) -> Model:
    """Return the model with only the prices of the time `at`; if its provider has no cache, at input prices throughout."""
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
    at: Ratios, shape: SessionShape, replaced: int, prices: Prices, others: Prices | None, *, prefer: bool
) -> tuple[SummaryMethod, ...]:
    warm = own_way(at, shape, replaced, by="warm")
    cold = own_way(at, shape, replaced, by="cold")
    if others is None:
        return (warm, cold)
    cost_in, cost_out = others.input / prices.input, others.output / prices.input
    other = other_way(at, shape, replaced, input=cost_in, output=cost_out)
    if prefer and other.per_call < warm.per_call:
        return (other, warm, cold)
    return (warm, cold, other)


def _rounded(tokens: int) -> int:
    """Return `tokens` rounded down to thousands, unless that is 0."""
    return tokens // 1_000 * 1_000 or tokens


def _prune(at: Ratios, *, removes: int, survives: int) -> ExamplePrune:
    calls = break_even_prune(at, removes=removes, survives=survives)
    return ExamplePrune(removes=removes, survives=survives, break_even=calls if at.read and removes else None)


def _amounts(model: Model, prices: Prices, shape: SessionShape, way: SummaryMethod, trigger: int) -> Amounts:
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
