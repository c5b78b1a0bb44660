"""What a policy decides, what it may look at when it decides, and the plans it can choose from."""

from collections.abc import Iterable
from math import isfinite
from typing import Literal

from msgspec import Struct

from lowwater.core.limits import Limits
from lowwater.core.proposals import Proposal
from lowwater.core.stored_form import stored_as

Fact = int | float | str


class Reason(Struct, frozen=True, kw_only=True, rename=stored_as("reason"), forbid_unknown_fields=True):
    """Why a decision was taken: a stable code, and the numbers that were compared."""

    code: str
    facts: dict[str, Fact] = {}


class Keep(
    Struct, frozen=True, kw_only=True, tag="keep", rename=stored_as("keep"), forbid_unknown_fields=True
):
    """Send the view as it is."""

    because: Reason


class Compact(
    Struct, frozen=True, kw_only=True, tag="compact", rename=stored_as("compact"), forbid_unknown_fields=True
):
    """Carry out `proposals`, in order, before sending.

    When the view is at or below `enough` after some of them, the rest is not needed. A step that may cost a model call is
    reached only if those before it did not suffice.
    """

    proposals: tuple[Proposal, ...]
    because: Reason
    enough: int = 0
    below: int = 0
    """Ending at this size or above was fruitless: the next compaction would be due at once. 0: anything smaller will do."""
    fit: int = 0
    """The size that a squeeze among the proposals works towards; 0 if there is none."""


Decision = Keep | Compact


Currency = Literal["usd", "tokens"]
"""Nano-dollars; or, where the model's price is unknown, as if a million input tokens cost a dollar."""

Warm = Literal["warm", "cold", "unsure"]


_NEVER = 10**12


class PricedPlan(Struct, frozen=True, kw_only=True):
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
    should_buy_early: bool = False
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
        return self.should_buy_early or self.rent >= self.price

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


def best_of(bargains: Iterable[PricedPlan]) -> PricedPlan | None:
    """Return the plan to buy, or to wait for if none is due; None if there is none."""
    return max(bargains, key=lambda bargain: bargain.rank, default=None)


class Candidates(Struct, frozen=True, kw_only=True):
    """The prices of the moment; without bargains the mechanisms have not been asked yet."""

    currency: Currency
    warm: Warm
    hit: int
    """Tokens of the prompt as it is that the cache should find."""
    kept: int
    """What the prompt costs as it is."""
    bargains: tuple[PricedPlan, ...] = ()
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


class Past(Struct, frozen=True, kw_only=True, rename=stored_as("past"), forbid_unknown_fields=True):
    """What earlier compactions of the session teach."""

    compactions: int = 0
    turns_since: int = 0
    """Turns begun since the last compaction, or since the start."""
    fruitless: int = 0
    """Compactions in a row that could not get below their threshold, or were given up."""
    floor: int = 0
    """The size of the prompt after the last of these: what no mechanism could remove then."""
    fruitless_at: float | None = None
    """When the last of these was tried."""
    undelivered: int = 0
    """Tokens that the last of these was to remove and did not: offered again, they are nothing new."""
    failed_at: float | None = None
    """When the summarizer last failed; None after it succeeded."""
    failures: int = 0
    """Failures in a row."""


class DecisionContext(Struct, frozen=True, kw_only=True):
    """The state of a session before a call, in numbers; sizes are the model's tokens unless said otherwise."""

    at: float
    prompt: int
    """The size of the next prompt: the larger of what is stored and what was counted live, calibrated."""
    messages: int
    """Items in the view."""
    outside_tail: int
    """Raw (never summarised) tokens between head and tail."""
    limits: Limits
    proposals: tuple[Proposal, ...] = ()
    """What the mechanisms offer now; those that edit parts do not overlap each other."""
    bytes: int = 0
    """About how large the request is; 0 if nobody asks."""
    scale: float = 1.0
    """The model's tokens per counted token: what proposals say they remove is counted."""
    forced: bool = False
    """Asked for by hand: guards, threshold, rent and cool-down do not apply."""
    enabled: bool = True
    has_budget: bool = True
    """False if the window's size is unknown, which disables headroom and pressure."""
    growth: float = 0.0
    """Tokens a turn adds, measured."""
    tool_share: float = 0.0
    """Share of the view that is tool output."""
    past: Past = Past()
    market: Candidates | None = None
    """What is on sale, for a policy that compares prices; None if it was not worked out."""

    @property
    def fits(self) -> bool:
        """Whether the request is below the wall and the user's ceiling, and below what the provider takes in bytes."""
        return self.prompt <= self.limits.most and not self.is_too_large

    @property
    def is_too_large(self) -> bool:
        """Whether the request has more bytes than the provider takes."""
        return self.limits.max_bytes is not None and self.bytes > self.limits.max_bytes

    def offers(self, *mechanisms: str) -> tuple[Proposal, ...]:
        """Return what these mechanisms offer, in their order."""
        return tuple(p for name in mechanisms for p in self.proposals if p.mechanism == name)

    def removes(self, proposals: tuple[Proposal, ...]) -> int:
        """Return how many of the model's tokens these proposals would remove together, if they do not overlap."""
        return self.scaled(sum(proposal.removes for proposal in proposals))

    def after(self, proposals: tuple[Proposal, ...]) -> int:
        """Return the size of the prompt after these proposals, if they do not overlap."""
        return max(0, self.prompt - self.removes(proposals))

    def scaled(self, counted: int) -> int:
        """Return counted tokens as the model's."""
        return scaled(counted, self.scale)


def scaled(counted: int, scale: float) -> int:
    """Return counted tokens as the model's, `scale` of them for each; a scale that is no positive number is 1."""
    return round(scale * counted) if isfinite(scale) and scale > 0 else counted


def counted(tokens: int, scale: float) -> int:
    """Return the model's tokens as counted ones; a scale that is no positive number is 1."""
    return int(tokens / scale) if isfinite(scale) and scale > 0 else tokens


def effective_size(stored: int, live: float | None = None) -> int:
    """Return the larger of the size in the store and the size counted live; a live count that is not finite is none."""
    if live is None or not isfinite(live):
        return stored
    return max(stored, round(live))
