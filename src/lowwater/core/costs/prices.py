"""What a call, a compaction and a summary cost, and the rent: what carrying removable tokens in every prompt has cost so far.

Amounts are nano-dollars. docs/economics.md has the arithmetic.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import MarkLifetime
from lowwater.core.decisions import Currency
from lowwater.core.models.model import TOKENS_PER_PRICE, MarkedPrefixes, Model, Prices
from lowwater.core.stored_form import stored_as

INSTRUCTION = 400
"""Tokens of the instruction that asks for a summary."""
_ASSUMED_INPUT = 1_000_000
"""A dollar per million input tokens."""
_ASSUMED_READ, _ASSUMED_WRITE, _ASSUMED_OUTPUT = 0.1, 1.25, 5
"""What most providers charge for a cache read, a write at a cache mark and output, as multiples of the input price."""


def with_fallback_prices(model: Model) -> tuple[Model, Currency]:
    """Return the model with prices, assumed ones if its own are unknown, and the currency: tokens if they are assumed."""
    if model.prices is not None:
        return model, "usd"
    write = _ASSUMED_WRITE if isinstance(model.cache.matching, MarkedPrefixes) else 1
    prices = Prices(
        input=_ASSUMED_INPUT,
        cache_read=int(_ASSUMED_INPUT * _ASSUMED_READ),
        cache_write=int(_ASSUMED_INPUT * write),
        output=_ASSUMED_INPUT * _ASSUMED_OUTPUT,
    )
    return replace(model, prices=prices, cliffs=(), periods=()), "tokens"


def cost_of(usage: Usage, model: Model, at: float | None = None) -> int | None:
    """Return what a call at the time `at` costs, or None if the model's price is unknown.

    The size of the prompt decides at which prices the whole request is billed, its output included.
    """
    prices = model.prices_at(usage.prompt, at)
    return None if prices is None else cost_at(usage, prices)


def cost_of_all(usages: Iterable[Usage], model: Model, at: float | None = None) -> int | None:
    """Return what several calls cost together, each billed by its own size, or None if the price is unknown.

    A request in which the provider compacts is billed as several calls: the compaction is one of its own.
    """
    total = 0
    for usage in usages:
        cost = cost_of(usage, model, at)
        if cost is None:
            return None
        total += cost
    return total


def write_price(prices: Prices, lifetime: MarkLifetime) -> int:
    """Return what a token costs that is not read from the cache: the price of input if it is not to be cached."""
    if lifetime == "long" and prices.cache_write_long is not None:
        return prices.cache_write_long
    return prices.cache_write if lifetime else prices.input


def cost_at(usage: Usage, prices: Prices) -> int:
    """Return what a call costs at `prices`, to the nearest nano-dollar."""
    return nano_dollars(
        usage.uncached * prices.input
        + usage.cache_read * prices.cache_read
        + usage.cache_write * prices.cache_write
        + usage.cache_write_long * write_price(prices, "long")
        + usage.output * prices.output
    )


def nano_dollars(tokens_times_price: int) -> int:
    """Return a sum of tokens × price in nano-dollars, rounded half up."""
    return (tokens_times_price + TOKENS_PER_PRICE // 2) // TOKENS_PER_PRICE


class Purchase(Struct, frozen=True, kw_only=True):
    """The price of one compaction, in nano-dollars."""

    cost_now: int
    """The cost of the next call with it, its summary included."""
    cost_kept: int
    """The cost of the next call without it."""
    summary_cost: int = 0

    @property
    def price(self) -> int:
        """What it costs compared with not doing it; negative if it pays at once."""
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
    lifetime: MarkLifetime = "short",
) -> Purchase:
    """Return the price of removing `removes` of `prompt` tokens.

    `before` and `after` are the prices at the size before and after, which differ across a cliff. `hit` is what the call
    would read from the cache without the compaction; `hit_after` is the largest cached prefix before the first change, 0
    if the cache is cold.
    """
    smaller = max(0, prompt - removes)
    changed = _tokens_times_price(
        after, smaller, hit=min(hit_after, smaller), output=output, lifetime=lifetime
    )
    kept = _tokens_times_price(before, prompt, hit=min(hit, prompt), output=output, lifetime=lifetime)
    return Purchase(
        cost_now=nano_dollars(changed) + summary_cost,
        cost_kept=nano_dollars(kept),
        summary_cost=summary_cost,
    )


def _tokens_times_price(prices: Prices, prompt: int, *, hit: int, output: int, lifetime: MarkLifetime) -> int:
    fresh = write_price(prices, lifetime)
    return hit * prices.cache_read + (prompt - hit) * fresh + output * prices.output


class SummaryWork(Struct, frozen=True, kw_only=True):
    """The sizes of a summary that is to be written, in tokens."""

    prompt: int
    """The request that the instruction would be appended to."""
    hit: int
    """How much of that request would be read from the cache."""
    replaced: int
    """What the summary replaces, which is all that another model has to be sent."""
    instruction: int
    summary: int


class SummaryCall(Struct, frozen=True, kw_only=True):
    """One way to get a summary written."""

    how: Literal["warm", "cold", "other", "native"]
    """By the session's model: appended to its last request, whose prefix is cached (`warm`) or not (`cold`).
    By another model (`other`). By the provider's own compaction of the start of the request (`native`)."""
    model: str
    usage: Usage
    cost: int | None
    """In nano-dollars; None if that model's price is unknown."""


def summary_calls(
    work: SummaryWork, model: Model, *, other: Model | None = None, at: float | None = None
) -> list[SummaryCall]:
    """Return the ways to get a summary written that fit their model's window, the session's own model first.

    In a request appended to the session's, what is not read from the cache is plain input: it carries no cache mark,
    because what would be written to the cache is about to be replaced.
    """
    fresh = work.prompt - work.hit + work.instruction
    own = Usage(cache_read=work.hit, uncached=fresh, output=work.summary)
    calls: list[SummaryCall] = []
    if _fits(own, model):
        how: Literal["warm", "cold"] = "warm" if work.hit > 0 else "cold"
        calls.append(SummaryCall(how=how, model=model.name, usage=own, cost=cost_of(own, model, at)))
    alone = Usage(uncached=work.replaced + work.instruction, output=work.summary)
    if other is not None and _fits(alone, other):
        cost = cost_of(alone, other, at)
        calls.append(SummaryCall(how="other", model=other.name, usage=alone, cost=cost))
    return calls


def native_call(
    work: SummaryWork, model: Model, *, lifetime: MarkLifetime = "short", at: float | None = None
) -> SummaryCall | None:
    """Return the call in which the provider compacts the first `prompt` tokens itself; None if they do not fit its window.

    The request ends where the compacted part ends and has a cache mark there, so what is not cached yet is written. If
    nothing is cached, it has no mark. Anthropic bills it as a call of its own (`usage.iterations`).
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


# Rent


class Meter(Struct, frozen=True, kw_only=True, rename=stored_as("meter"), forbid_unknown_fields=True):
    """What one token in every prompt has cost since the session began, and the reading when each message left the tail.

    Messages leave the tail in order, and those that leave together share a run: `readings[i]` is the total at which the
    messages up to number `numbers[i]` left. Amounts are sums of prices, that is nano-dollars per 1,000 tokens.
    """

    total: int = 0
    numbers: tuple[int, ...] = ()
    readings: tuple[int, ...] = ()

    def advance(self, price: int) -> "Meter":
        """Return the meter after a call that billed each token of the old prompt at `price`."""
        return Meter(total=self.total + price, numbers=self.numbers, readings=self.readings)

    def left_tail(self, upto: int) -> "Meter":
        """Return the meter after the messages up to number `upto` have left the tail; they start to pay rent now."""
        if self.numbers and upto <= self.numbers[-1]:
            return self
        if self.readings and self.readings[-1] == self.total:
            return Meter(total=self.total, numbers=(*self.numbers[:-1], upto), readings=self.readings)
        return Meter(total=self.total, numbers=(*self.numbers, upto), readings=(*self.readings, self.total))

    def forget(self, upto: int) -> "Meter":
        """Return the meter without the runs that end at or before number `upto`, when none of their messages is shown.

        A message that comes back is treated like the oldest one left.
        """
        gone = bisect_left(self.numbers, upto + 1)
        return Meter(total=self.total, numbers=self.numbers[gone:], readings=self.readings[gone:])

    def kept_for(self, shown: Iterable[int]) -> "Meter":
        """Return the meter with only the runs that contain one of the messages `shown`; the rent of these is unchanged.

        Another message that comes back is treated like those that left the tail next after it.
        """
        runs = {bisect_left(self.numbers, number) for number in shown}
        kept = [run for run in range(len(self.numbers)) if run in runs or run == len(self.numbers) - 1]
        return Meter(
            total=self.total,
            numbers=tuple([self.numbers[run] for run in kept]),
            readings=tuple([self.readings[run] for run in kept]),
        )

    def restarted(self) -> "Meter":
        """Return the meter as if no message had left the tail: no rent has been paid."""
        return Meter(total=self.total)

    def paid(self, number: int) -> int:
        """Return the rent of 1,000 tokens of a message since it left the tail; 0 while it is in the tail."""
        run = bisect_left(self.numbers, number)
        return self.total - self.readings[run] if run < len(self.readings) else 0

    def rent(self, number: int, tokens: int) -> int:
        """Return the rent, in nano-dollars, of `tokens` tokens of a message."""
        return tokens * self.paid(number) // TOKENS_PER_PRICE

    def most_rent(self, tokens: int) -> int:
        """Return an upper bound on the rent of `tokens` tokens outside the tail: if every price is higher, nothing is due."""
        return tokens * (self.total - self.readings[0]) // TOKENS_PER_PRICE if self.readings else 0
