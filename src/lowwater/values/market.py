"""What is on sale before a call: plans with their prices, and the rent paid so far for what they would remove."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from lowwater.values.proposal import Proposal

Currency = Literal["usd", "tokens"]
"""Nano-dollars; or, where the model's price is unknown, as if a million input tokens cost a dollar."""

Warm = Literal["warm", "cold", "unsure"]


_NEVER = 10**12


class Bargain(Struct, frozen=True, kw_only=True):
    """One plan and what it would cost to carry it out before this call rather than never; money in nano-dollars."""

    plan: tuple[Proposal, ...]
    removes: int
    """The model's tokens."""
    kept: int
    """Tokens of the prefix that the cache would still find."""
    rewritten: int
    """Tokens behind the first change that have to be written again."""
    rent: int
    """What carrying the tokens it removes has cost since they left the tail."""
    price: int
    """The next call with it, its summary and its expected rework, less the next call without it."""
    summary: int = 0
    """The part of the price that a model's summary costs."""
    rework: int = 0
    """The part of the price that recalling what it loses can be expected to cost."""
    saves: int = 0
    """What each call over a warm cache costs less from then on."""
    worth: int = 0
    """What it saves over as many calls as are expected, less its price."""
    is_ripe: bool = False
    """Whether waiting on is worth less than it costs, though the rent has not reached the price."""
    wait: int = 0
    """Calls that the session has to go on for before it can be expected to pay the price back."""

    @property
    def is_due(self) -> bool:
        """Whether the rent paid has reached the price, or waiting for that is in vain, and it can be expected to pay."""
        return not self.wait and self.is_worth_it

    @property
    def is_worth_it(self) -> bool:
        """Whether the rent paid has reached the price, or it would be in vain to wait for that."""
        return self.is_ripe or self.rent >= self.price

    @property
    def rank(self) -> tuple[bool, int, int]:
        """What the best plan has most of: of those due, what it is worth, then what it removes; otherwise how soon it is due."""
        if self.is_due:
            return True, self.worth, self.removes
        left = self.calls_left
        return False, -_NEVER if left is None else -left, self.removes

    @property
    def calls_left(self) -> int | None:
        """After how many more calls it is due; None if it never is."""
        if self.is_due:
            return 0
        if self.saves <= 0:
            return None
        return max(self.wait, 0 if self.is_worth_it else -((self.rent - self.price) // self.saves))


def best_of(bargains: Iterable[Bargain]) -> Bargain | None:
    """Return the plan to buy, or to wait for if none is due; None if there is none."""
    return max(bargains, key=lambda bargain: bargain.rank, default=None)


class Market(Struct, frozen=True, kw_only=True):
    """The prices of the moment; without bargains the mechanisms have not been asked yet."""

    currency: Currency
    warm: Warm
    hit: int
    """Tokens of the prompt as it is that the cache should find."""
    kept: int
    """What the prompt costs as it is."""
    bargains: tuple[Bargain, ...] = ()
    most_rent: int | None = None
    """No offer can have more rent paid on it; None if that is not known."""
    least_price: int | None = None
    """No offer can cost less; None if that is not known."""
    held: int = 0
    """Calls for which nothing is bought, because the user has undone a compaction."""
    rests: bool = False
    """At the last look nothing was nearly due, and little has changed since: the bargains are those of then."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing can be due, whatever the mechanisms offer."""
        if self.most_rent is None or self.least_price is None:
            return False
        return self.most_rent < self.least_price
