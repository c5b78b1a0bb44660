"""What a policy decides, what it knows when it decides, and the priced plans it can choose from."""

from math import isfinite
from typing import Literal, get_args

from msgspec import Struct

from lowwater.core.buy_rule import Offer, best_of
from lowwater.core.limits import Limits
from lowwater.core.proposals import Proposal
from lowwater.core.stored_form import stored_as

Fact = int | float | str
Currency = Literal["usd", "tokens"]
"""The unit of amounts: nano-dollars, or, if the model's price is unknown, nano-dollars at an assumed dollar per million input tokens."""
Warm = Literal["warm", "cold", "unsure"]


class Reason(Struct, frozen=True, kw_only=True, rename=stored_as("reason"), forbid_unknown_fields=True):
    """Why a decision was taken: a stable code, and the numbers that were compared."""

    code: str
    facts: dict[str, Fact] = {}


ReasonCode = Literal[
    # keeping
    "disabled",
    "policy-never",
    "below-threshold",
    "below-hygiene",
    "too-few-messages",
    "nothing-offered",
    "nothing-by-hand",
    "no-leaf-offered",
    "prune-alone-too-small",
    "prune-alone-falls-short",
    "too-little-raw",
    "budget-headroom",
    "cache-aware",
    "does-not-fit",
    "too-many-bytes",
    "ceiling-out-of-reach",
    "irreducible",
    "rent-cannot-be-due",
    "undone",
    "rent-rests",
    "nothing-to-buy",
    "rent-below-price",
    "too-young-to-pay",
    "cooling-down",
    # compacting
    "by-hand",
    "wall",
    "wall-into-tail",
    "wall-to-last",
    "ceiling-to-last",
    "ceiling-into-tail",
    "byte-limit",
    "cliff",
    "rent-paid",
    "waiting-in-vain",
    "free-now",
    "summary-due",
    "prune-suffices",
    "prune-falls-short",
    "prune-too-small",
    "prune-and-summary",
    "leaf-due",
    "leaf-pressure",
    "full-sweep",
    "cooling-down-prune",
    # after a compaction that did not make the prompt smaller
    "not-smaller",
    # truncating tool results on arrival
    "too-large-at-the-door",
    "no-room-at-the-door",
    # after the provider refused a request
    "images-refused",
]
CODES: tuple[ReasonCode, ...] = get_args(ReasonCode)


def because(code: ReasonCode, **facts: Fact) -> Reason:
    """Return a reason with this code and the numbers that were compared."""
    return Reason(code=code, facts=facts)


class Keep(
    Struct, frozen=True, kw_only=True, tag="keep", rename=stored_as("keep"), forbid_unknown_fields=True
):
    """Send the view as it is."""

    because: Reason


class Compact(
    Struct, frozen=True, kw_only=True, tag="compact", rename=stored_as("compact"), forbid_unknown_fields=True
):
    """Carry out `proposals`, in order, before sending.

    They stop as soon as the view is at or below `enough`. So a proposal that needs a model call is carried out only if
    those before it did not suffice.
    """

    proposals: tuple[Proposal, ...]
    because: Reason
    enough: int = 0
    below: int = 0
    """The compaction is fruitless if the view ends at this size or above, for the next one would be due at once; 0: no such limit."""
    fit: int = 0
    """The size that a `squeeze` among the proposals aims for; 0 if there is none."""


Decision = Keep | Compact


class PricedPlan(Offer, frozen=True, kw_only=True):
    """A plan, and what it costs and saves to carry it out before this call; amounts in nano-dollars."""

    plan: tuple[Proposal, ...]
    still_cached: int
    """Tokens of the prefix that the cache would still hold."""
    rewritten: int
    """Tokens after the first change that have to be written to the cache again."""
    summary: int = 0
    """The part of the price that pays for a model's summary."""
    disturbance: int = 0
    """The part of the price for what any change of the view disturbs: the calls that the model needs to find its way again."""
    rework: int = 0
    """The part of the price that pays for recalling what it removes, as far as can be expected."""


class Candidates(Struct, frozen=True, kw_only=True):
    """The plans that can be bought now, with their prices; no plans if the mechanisms were not asked."""

    currency: Currency
    warm: Warm
    hit: int
    """Tokens of the unchanged prompt that the cache should hold."""
    unchanged_cost: int
    """The cost of the next call with the prompt unchanged."""
    plans: tuple[PricedPlan, ...] = ()
    lasting: PricedPlan | None = None
    """The plan that costs least per call until the next compaction is forced; None where no size limit forces one, or if no plan
    leaves room for several turns."""
    most_rent: int | None = None
    """An upper bound on the rent paid for any plan; None if unknown."""
    least_price: int | None = None
    """A lower bound on the price of any plan; None if unknown."""
    paused_calls: int = 0
    """For how many more calls nothing is bought, because the user undid a compaction."""
    is_from_earlier_turn: bool = False
    """Whether the plans are those of an earlier turn: nothing was nearly due then, and little has changed since."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing can be due, whatever the mechanisms propose."""
        if self.most_rent is None or self.least_price is None:
            return False
        return self.most_rent < self.least_price

    @property
    def best(self) -> PricedPlan | None:
        """The plan to buy, or the one to wait for if none is due; None if there are no plans."""
        return best_of(self.plans) if self.plans else None


class Past(Struct, frozen=True, kw_only=True, rename=stored_as("past"), forbid_unknown_fields=True):
    """What is remembered of the session's earlier compactions."""

    compactions: int = 0
    turns_since: int = 0
    """Turns since the last compaction, or since the start."""
    fruitless: int = 0
    """Consecutive compactions that did not get below their threshold or were abandoned."""
    floor: int = 0
    """The size of the prompt after the last fruitless one: what no mechanism could remove."""
    fruitless_at: float | None = None
    """When the last fruitless one was tried."""
    undelivered: int = 0
    """Tokens that the last fruitless one promised to remove and did not: a new proposal has to offer more than these."""
    failed_at: float | None = None
    """When the summarizer last failed; None once it has succeeded again."""
    failures: int = 0
    """Consecutive failures of the summarizer."""


class DecisionContext(Struct, frozen=True, kw_only=True):
    """The state of a session before a call, in numbers; sizes are in the model's tokens unless said otherwise."""

    at: float
    prompt: int
    """The size of the next prompt (`effective_size`), calibrated."""
    messages: int
    """Items in the view."""
    outside_tail: int
    """Tokens between head and tail that were never summarised."""
    limits: Limits
    proposals: tuple[Proposal, ...] = ()
    """What the mechanisms propose; proposals that edit parts do not overlap each other."""
    bytes: int = 0
    """The approximate size of the request; 0 if the provider has no limit."""
    scale: float = 1.0
    """The model's tokens per counted token; sizes in proposals are counted tokens."""
    forced: bool = False
    """The user asked for a compaction: guards, threshold, rent and cool-down do not apply."""
    enabled: bool = True
    has_budget: bool = True
    """False if the size of the context window is unknown, which disables rules about headroom and pressure."""
    growth: float = 0.0
    """Tokens that a turn adds, as measured."""
    past: Past = Past()
    candidates: Candidates | None = None
    """The priced plans, for a policy that compares prices; None for the others."""

    @property
    def fits(self) -> bool:
        """Whether the request is within the wall, the user's ceiling and the provider's limit in bytes."""
        return self.prompt <= self.limits.most and not self.is_too_large

    @property
    def is_too_large(self) -> bool:
        """Whether the request has more bytes than the provider accepts."""
        return self.limits.max_bytes is not None and self.bytes > self.limits.max_bytes

    def offers(self, *mechanisms: str) -> tuple[Proposal, ...]:
        """Return the proposals of these mechanisms, in the order of `mechanisms`."""
        return tuple(p for name in mechanisms for p in self.proposals if p.mechanism == name)

    def removes(self, proposals: tuple[Proposal, ...]) -> int:
        """Return how many tokens these proposals would remove together, if they do not overlap."""
        return self.scaled(sum(proposal.removes for proposal in proposals))

    def after(self, proposals: tuple[Proposal, ...]) -> int:
        """Return the size of the prompt after these proposals, if they do not overlap."""
        return max(0, self.prompt - self.removes(proposals))

    def scaled(self, counted: int) -> int:
        """Return counted tokens in the model's tokens."""
        return scaled(counted, self.scale)


def scaled(counted: int, scale: float) -> int:
    """Return counted tokens in the model's tokens, `scale` for each; a scale that is not a positive number counts as 1."""
    return round(scale * counted) if isfinite(scale) and scale > 0 else counted


def unscaled(tokens: int, scale: float) -> int:
    """Return the model's tokens as counted tokens; a scale that is not a positive number counts as 1."""
    return int(tokens / scale) if isfinite(scale) and scale > 0 else tokens


def effective_size(stored: int, live: float | None = None) -> int:
    """Return the larger of the stored size and the one counted live; a live count that is not finite is ignored."""
    if live is None or not isfinite(live):
        return stored
    return max(stored, round(live))
