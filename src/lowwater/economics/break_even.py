"""After how many calls a compaction has paid for itself, in multiples of the input price."""

from math import inf, sqrt
from typing import Literal

from msgspec import Struct

from lowwater.values.model import Prices

_NANO_DOLLARS_PER_TOKEN = 1_000
"""Of a price of one dollar per million tokens."""


class Ratios(Struct, frozen=True, kw_only=True):
    """Prices as multiples of the input price."""

    read: float
    write: float
    output: float


class Compaction(Struct, frozen=True, kw_only=True):
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


def own_summary(at: Ratios, what: Compaction, *, how: Literal["riding", "cold"]) -> float:
    """Return what the summary costs if the same model writes it after the same request, warm or not."""
    carried = at.read if how == "riding" else 1.0
    return carried * what.prompt + what.instruction + at.output * what.summary


def other_summary(what: Compaction, *, input: float, output: float) -> float:
    """Return what the summary costs from another model, at its prices as multiples of this model's input price."""
    return input * (what.replaced + what.instruction) + output * what.summary


def break_even(at: Ratios, what: Compaction, summary_cost: float = 0.0) -> float:
    """Return the calls after which a compaction of a warm prompt has paid for itself; infinite if it removes nothing."""
    saved = at.read * what.removes
    paid = (at.write - at.read) * (what.summary + what.kept) + summary_cost
    return paid / saved if saved > 0 else inf


def break_even_prune(at: Ratios, *, removes: int, survives: int) -> float:
    """Return the calls after which a prune has paid for itself, with `survives` tokens left behind its first edit."""
    return break_even(at, Compaction(before=0, replaced=removes, kept=survives))


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
