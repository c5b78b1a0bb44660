"""Everything a policy may look at when it decides."""

from math import isfinite

from msgspec import Struct

from lowwater.values.limits import Limits
from lowwater.values.market import Market
from lowwater.values.proposal import Proposal
from lowwater.values.stored_form import stored_as


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


class Situation(Struct, frozen=True, kw_only=True):
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
    market: Market | None = None
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
