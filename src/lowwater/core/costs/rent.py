"""Rent: what carrying removable content has cost so far, and what waiting can still save."""

from bisect import bisect_left
from collections.abc import Iterable
from math import expm1, log, sqrt

from msgspec import Struct

from lowwater.core.models.model import TOKENS_PER_PRICE
from lowwater.core.stored_form import stored_as


class Meter(Struct, frozen=True, kw_only=True, rename=stored_as("meter"), forbid_unknown_fields=True):
    """What one token has paid in prompts since the session began, and what it had paid when each message left the tail.

    Messages left in order, those that left together share a run: `readings[i]` holds for the numbers up to `numbers[i]`.
    Amounts are sums of prices, that is nano-dollars per 1,000 tokens.
    """

    total: int = 0
    numbers: tuple[int, ...] = ()
    readings: tuple[int, ...] = ()

    def advance(self, price: int) -> "Meter":
        """Return the meter after a recorded call that billed a token of the old prompt at `price`."""
        return Meter(total=self.total + price, numbers=self.numbers, readings=self.readings)

    def left_tail(self, upto: int) -> "Meter":
        """Return the meter once every message up to number `upto` has left the tail; the new ones start to pay now."""
        if self.numbers and upto <= self.numbers[-1]:
            return self
        if self.readings and self.readings[-1] == self.total:
            return Meter(total=self.total, numbers=(*self.numbers[:-1], upto), readings=self.readings)
        return Meter(total=self.total, numbers=(*self.numbers, upto), readings=(*self.readings, self.total))

    def forget(self, upto: int) -> "Meter":
        """Return the meter without the runs that end at number `upto` or before: none of their messages is in the view.

        Should one come back, it pays as the oldest of those that are left.
        """
        gone = bisect_left(self.numbers, upto + 1)
        return Meter(total=self.total, numbers=self.numbers[gone:], readings=self.readings[gone:])

    def kept_for(self, shown: Iterable[int]) -> "Meter":
        """Return the meter without the runs that none of the messages `shown` is in: the others pay what they paid.

        Should another one come back, it pays as those that left the tail next after it.
        """
        runs = {bisect_left(self.numbers, number) for number in shown}
        kept = [run for run in range(len(self.numbers)) if run in runs or run == len(self.numbers) - 1]
        return Meter(
            total=self.total,
            numbers=tuple([self.numbers[run] for run in kept]),
            readings=tuple([self.readings[run] for run in kept]),
        )

    def restarted(self) -> "Meter":
        """Return the meter as if no message had left the tail yet: none has paid anything."""
        return Meter(total=self.total)

    def paid(self, number: int) -> int:
        """Return what 1,000 tokens of a message have paid since it left the tail; nothing while it is in it."""
        run = bisect_left(self.numbers, number)
        return self.total - self.readings[run] if run < len(self.readings) else 0

    def rent(self, number: int, tokens: int) -> int:
        """Return the rent in nano-dollars that so many tokens of a message have paid."""
        return tokens * self.paid(number) // TOKENS_PER_PRICE

    def most_rent(self, tokens: int) -> int:
        """Return what so many tokens outside the tail have paid at most: if no price is below it, nothing is due."""
        return tokens * (self.total - self.readings[0]) // TOKENS_PER_PRICE if self.readings else 0


class Offer(Struct, frozen=True, kw_only=True):
    """A purchase: the rent paid on what it removes, and its price now with rework, both in nano-dollars."""

    name: str
    rent: int
    price: int
    after: int
    """The resulting cost: its price, and the view it leaves read at as many calls as are expected."""
    should_buy_early: bool = False
    """Waiting on is worth less than it costs."""
    wait: int = 0
    """Calls that the session has to go on for before it can be expected to pay the price back."""

    @property
    def is_due(self) -> bool:
        """The rent has reached the price, or it would be in vain to wait for that; and it can be expected to pay."""
        return not self.wait and (self.should_buy_early or self.rent >= self.price)

    @property
    def surplus(self) -> int:
        """By how much the rent paid exceeds the price."""
        return self.rent - self.price


def choose(offers: Iterable[Offer]) -> Offer | None:
    """Return the offer to buy, or None if none is due: of several due the one that leaves the lowest cost."""
    due = [offer for offer in offers if offer.is_due]
    return min(due, key=lambda offer: (offer.after, -offer.surplus), default=None)


_PAYBACK = 2
"""A purchase has to pay for itself within one part in so many of the calls so far (bench/README.md, "The tail")."""
_NEVER = 10**12
_STEPS = 5
"""Of Newton's method; four are exact to a millionth."""


class Outlook(Struct, frozen=True, kw_only=True):
    """What is to be expected of a session; money in any one unit."""

    calls: int
    """Calls so far. A session of any age is as likely as not to go on for as many more."""
    growth: int
    """By how much the rent of one call grows from call to call."""

    def should_buy_early(self, *, saves: int, price: int, usual: int) -> bool:
        """Whether to buy now what saves so much at each call: waiting is worth less than the rent of one call.

        `usual` is what the same purchase costs at most moments, and no less than `price`.
        """
        if price <= 0:
            return True
        early = 1 - sqrt(max(0.0, 1 - price / max(usual, price)))
        return saves >= early * self.patience(max(usual, price))

    def wait(self, *, saves: int, price: int) -> int:
        """Return for how many more calls a session has to go on before it is old enough to pay so much; 0 if it is.

        What saves something at once is always bought; what saves nothing and costs something never is.
        """
        if price <= 0:
            return 0
        if saves <= 0:
            return _NEVER
        return max(0, -(-_PAYBACK * price // saves) - self.calls)

    def patience(self, usual: int) -> float:
        """Return the rent of one call up to which waiting is worth it, at the usual price."""
        growth, lasts = max(1, self.growth), max(1, self.calls) / log(2)
        return growth * lasts * _wait(usual / (growth * lasts * lasts))


def _wait(share: float) -> float:
    """Return m for which m − 1 + exp(−m) is `share`."""
    found = sqrt(2 * share) + share / 3
    for _ in range(_STEPS):
        if found <= 0:
            return 0.0
        found += (share - found - expm1(-found)) / -expm1(-found)
    return found
