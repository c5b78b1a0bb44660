"""The rule that buys: whether a rewrite of the view is worth its price now, and which of several is the best.

The engine and the replay both decide by it: an `Offer` says what a rewrite costs and saves, `weighed` adds what the rule makes
of that, and `best_of` chooses. Amounts are all in the same unit, whichever that is. docs/economics.md has the arithmetic.
"""

from collections.abc import Iterable
from math import expm1, log, sqrt
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

_PAYBACK = 2
"""A purchase has to pay for itself within 1/`_PAYBACK` of the number of calls so far (bench/README.md, "The tail")."""
_NEVER = 10**12
"""Calls: stands for a purchase that is never due or never pays."""
_STEPS = 5
"""Steps of Newton's method; four are exact to a millionth."""


class Offer(Struct, frozen=True, kw_only=True):
    """A rewrite that can be bought before this call, with its price and what it saves."""

    removes: int
    """Tokens it removes from the prompt, in the model's count."""
    rent: int
    """What the tokens it removes have cost in prompts since they left the protected tail."""
    price: int
    """The cost of the next call with it, its summary and its expected rework, less the cost of the next call without it."""
    saves: int = 0
    """What it saves at each later call with a warm cache."""
    worth: int = 0
    """What it saves over the calls that can be expected, less its price."""
    should_buy_early: bool = False
    """Whether to buy although the rent has not reached the price, because waiting longer costs more than it is worth."""
    wait: int = 0
    """Further calls the session must last before it can be expected to last long enough to earn the price back."""

    @property
    def is_due(self) -> bool:
        """Whether to buy it now: it is worth its price, and the session can be expected to last long enough."""
        return not self.wait and self.is_worth_it

    @property
    def is_worth_it(self) -> bool:
        """Whether the rent paid has reached the price, or waiting for that does not pay."""
        return self.should_buy_early or self.rent >= self.price

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The sort key, highest is best: offers that are due by worth, before the others by how soon they are due; then by size."""
        if self.is_due:
            return True, self.worth, self.removes
        left = self.calls_left
        return False, -_NEVER if left is None else -left, self.removes

    @property
    def calls_left(self) -> int | None:
        """The number of calls until it is due; None if it never will be."""
        if self.is_due:
            return 0
        if self.saves <= 0:
            return None
        return max(self.wait, 0 if self.is_worth_it else -((self.rent - self.price) // self.saves))


AnyOffer = TypeVar("AnyOffer", bound=Offer)


def best_of(offers: Iterable[AnyOffer]) -> AnyOffer | None:
    """Return the offer to buy, or the one to wait for if none is due; None if there are no offers."""
    return max(offers, key=lambda offer: offer.rank, default=None)


def weighed(offer: AnyOffer, outlook: "Outlook | None", *, usual: int, worst: int) -> AnyOffer:
    """Return the offer with what the rule makes of it: its worth, whether to buy early, whether the session must last longer.

    `usual` is the price that the same purchase has at most times; `worst` its price if all of the last prompt is in the cache
    after all. Before the first call there is no outlook: then only the rent counts.
    """
    if outlook is None:
        return replace(offer, worth=-offer.price, should_buy_early=False, wait=0)
    return replace(
        offer,
        worth=outlook.calls * offer.saves - offer.price,
        should_buy_early=outlook.should_buy_early(saves=offer.saves, price=offer.price, usual=usual),
        wait=outlook.wait(saves=offer.saves, price=worst),
    )


class Outlook(Struct, frozen=True, kw_only=True):
    """What can be expected of a session."""

    calls: int
    """Calls so far. A session is assumed as likely as not to last for as many more, whatever its age."""
    growth: int
    """By how much the rent per call grows from one call to the next."""

    def should_buy_early(self, *, saves: int, price: int, usual: int) -> bool:
        """Return whether to buy now what saves `saves` at each call, because waiting is worth less than the rent of one call.

        `usual` is the price that the same purchase has at most times; below `price` it counts as `price`.
        """
        if price <= 0:
            return True
        early = 1 - sqrt(max(0.0, 1 - price / max(usual, price)))
        return saves >= early * self.patience(max(usual, price))

    def wait(self, *, saves: int, price: int) -> int:
        """Return how many more calls the session must last before a purchase at `price` is justified; 0 if it is now.

        A purchase that pays at once is always justified; one that costs something and saves nothing never is.
        """
        if price <= 0:
            return 0
        if saves <= 0:
            return _NEVER
        return max(0, -(-_PAYBACK * price // saves) - self.calls)

    def patience(self, usual: int) -> float:
        """Return the rent per call up to which waiting is worth it, at the usual price."""
        growth, lasts = max(1, self.growth), max(1, self.calls) / log(2)
        return growth * lasts * _solve_wait(usual / (growth * lasts * lasts))


def _solve_wait(share: float) -> float:
    """Return the m ≥ 0 for which m − 1 + exp(−m) = `share`."""
    found = sqrt(2 * share) + share / 3
    for _ in range(_STEPS):
        if found <= 0:
            return 0.0
        found += (share - found - expm1(-found)) / -expm1(-found)
    return found
