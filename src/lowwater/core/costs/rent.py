"""Rent: what it has cost so far to carry removable tokens in every prompt, and whether waiting longer to remove them pays.

docs/economics.md has the arithmetic.
"""

from bisect import bisect_left
from collections.abc import Iterable
from math import expm1, log, sqrt

from msgspec import Struct

from lowwater.core.models.model import TOKENS_PER_PRICE
from lowwater.core.stored_form import stored_as

_PAYBACK = 2
"""A purchase has to pay for itself within 1/`_PAYBACK` of the number of calls so far (bench/README.md, "The tail")."""
_NEVER = 10**12
"""Calls: stands for a purchase that never pays."""
_STEPS = 5
"""Steps of Newton's method; four are exact to a millionth."""


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


class Offer(Struct, frozen=True, kw_only=True):
    """A compaction on offer: the rent paid on what it removes, and its price including rework, both in nano-dollars."""

    name: str
    rent: int
    price: int
    after: int
    """The cost it leads to: its price, plus reading the view it leaves at each call that can be expected."""
    should_buy_early: bool = False
    """Waiting longer costs more than it is worth."""
    wait: int = 0
    """Further calls the session must last before it can be expected to last long enough to earn the price back."""

    @property
    def is_due(self) -> bool:
        """Whether the rent has reached the price or waiting does not pay, and the session can be expected to last long enough."""
        return not self.wait and (self.should_buy_early or self.rent >= self.price)

    @property
    def surplus(self) -> int:
        """By how much the rent paid exceeds the price."""
        return self.rent - self.price


def choose(offers: Iterable[Offer]) -> Offer | None:
    """Return the offer to buy, which of those due is the one that leads to the lowest cost; None if none is due."""
    due = [offer for offer in offers if offer.is_due]
    return min(due, key=lambda offer: (offer.after, -offer.surplus), default=None)


class Outlook(Struct, frozen=True, kw_only=True):
    """What can be expected of a session; amounts are all in the same unit, whichever that is."""

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
