"""Rent or buy: carrying removable tokens costs rent at every call, removing them costs a price once.

A message pays rent from the moment it left the tail. An offer is due when the rent already paid on what it would remove
has reached its price (docs/economics.md, "The rule"), or before that if waiting on is worth less than it costs (`outlook`);
and never before the session is old enough to be expected to pay it back.
What was bought is gone, so it stops paying by itself.
"""

from bisect import bisect_left
from collections.abc import Iterable

from msgspec import Struct

from lowwater.values.model import TOKENS_PER_PRICE
from lowwater.values.stored_form import stored_as


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
    is_ripe: bool = False
    """Waiting on is worth less than it costs."""
    wait: int = 0
    """Calls that the session has to go on for before it can be expected to pay the price back."""

    @property
    def is_due(self) -> bool:
        """The rent has reached the price, or it would be in vain to wait for that; and it can be expected to pay."""
        return not self.wait and (self.is_ripe or self.rent >= self.price)

    @property
    def surplus(self) -> int:
        """By how much the rent paid exceeds the price."""
        return self.rent - self.price


def choose(offers: Iterable[Offer]) -> Offer | None:
    """Return the offer to buy, or None if none is due: of several due the one that leaves the lowest cost."""
    due = [offer for offer in offers if offer.is_due]
    return min(due, key=lambda offer: (offer.after, -offer.surplus), default=None)
