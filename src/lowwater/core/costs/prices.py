"""What a call, a compaction and a summary cost now."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.cache.layout import Lifetime
from lowwater.core.decisions import Currency
from lowwater.core.models.model import TOKENS_PER_PRICE, Marks, Model, Prices

_INPUT = 1_000_000
"""As if a million input tokens cost a dollar."""
_READ, _PREMIUM, _OUTPUT = 0.1, 1.25, 5
"""What most providers ask for a cache read, for a write at a mark, and for output, as multiples of input."""


def with_fallback_prices(model: Model) -> tuple[Model, Currency]:
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


class Purchase(Struct, frozen=True, kw_only=True):
    """The price of one compaction, in nano-dollars."""

    cost_now: int
    """The next call after it, its summary included."""
    cost_kept: int
    """The next call without it."""
    summary_cost: int = 0

    @property
    def price(self) -> int:
        """What it costs more than not doing it; negative if it pays at once."""
        return self.cost_now - self.cost_kept


def price_of(
    before: Prices,
    after: Prices,
    *,
    prompt: int,
    hit: int,
    hit_after: int,
    removes: int,
    summary_cost: int = 0,
    output: int = 0,
    lifetime: Lifetime = "short",
) -> Purchase:
    """Return the price of removing `removes` of `prompt` tokens.

    `before` and `after` are the prices at either size, which differ across a cliff. `hit` is what the call would read
    as it is; `hit_after` the largest stored boundary before the first change, 0 if the cache is cold.
    """
    smaller = max(0, prompt - removes)
    changed = _weighed(after, smaller, hit=min(hit_after, smaller), output=output, lifetime=lifetime)
    kept = _weighed(before, prompt, hit=min(hit, prompt), output=output, lifetime=lifetime)
    return Purchase(
        cost_now=nano_dollars(changed) + summary_cost,
        cost_kept=nano_dollars(kept),
        summary_cost=summary_cost,
    )


def _weighed(prices: Prices, prompt: int, *, hit: int, output: int, lifetime: Lifetime) -> int:
    fresh = prices.input
    if lifetime == "short":
        fresh = prices.cache_write
    elif lifetime == "long":
        fresh = prices.cache_write if prices.cache_write_long is None else prices.cache_write_long
    return hit * prices.cache_read + (prompt - hit) * fresh + output * prices.output


class SummaryWork(Struct, frozen=True, kw_only=True):
    """A summary to be written, in tokens."""

    prompt: int
    """The request it would follow."""
    hit: int
    """How much of that would be read from the cache."""
    replaced: int
    """What it stands for: all that another model has to see."""
    instruction: int
    summary: int


class SummaryCall(Struct, frozen=True, kw_only=True):
    """One way to get a summary written."""

    how: Literal["riding", "cold", "other", "native"]
    """After the same request with its prefix cached, after the same request with nothing cached, elsewhere, or by the
    provider itself over the beginning of the request."""
    model: str
    usage: Usage
    cost: int | None
    """In nano-dollars; None if that model's price is unknown."""


def summary_calls(
    work: SummaryWork, model: Model, *, other: Model | None = None, at: float | None = None
) -> list[SummaryCall]:
    """Return the ways to get a summary written that fit their model's window, the session's own model first.

    After the same request everything not read is plain input: no mark is added, for what would be written is about to
    be replaced.
    """
    fresh = work.prompt - work.hit + work.instruction
    own = Usage(cache_read=work.hit, uncached=fresh, output=work.summary)
    calls: list[SummaryCall] = []
    if _fits(own, model):
        how: Literal["riding", "cold"] = "riding" if work.hit > 0 else "cold"
        calls.append(SummaryCall(how=how, model=model.name, usage=own, cost=cost_of(own, model, at)))
    alone = Usage(uncached=work.replaced + work.instruction, output=work.summary)
    if other is not None and _fits(alone, other):
        cost = cost_of(alone, other, at)
        calls.append(SummaryCall(how="other", model=other.name, usage=alone, cost=cost))
    return calls


def native_call(
    work: SummaryWork, model: Model, *, lifetime: Lifetime = "short", at: float | None = None
) -> SummaryCall | None:
    """Return what it takes to have the provider compact the first `prompt` tokens itself; None if they do not fit its window.

    The request ends where the block is to end, with a mark there to read by: what the cache does not hold yet is written.
    Where it holds nothing, the request has no mark. The provider bills it as a call of its own (`usage.iterations`).
    """
    fresh = max(0, work.prompt - work.hit)
    used = Usage(uncached=fresh + work.instruction, output=work.summary)
    if work.hit:
        used = Usage(
            cache_read=work.hit,
            cache_write=0 if lifetime == "long" else fresh,
            cache_write_long=fresh if lifetime == "long" else 0,
            uncached=work.instruction,
            output=work.summary,
        )
    if not _fits(used, model):
        return None
    return SummaryCall(how="native", model=model.name, usage=used, cost=cost_of(used, model, at))


def _fits(usage: Usage, model: Model) -> bool:
    output_fits = model.max_output is None or usage.output <= model.max_output
    return output_fits and usage.prompt + usage.output <= model.context_length
