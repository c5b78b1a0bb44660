"""What is reported about a session as it goes: turns, compactions, skips and warnings."""

from typing import Literal

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Reason
from lowwater.core.stored_form import stored_as


class TurnRecord(
    Struct, frozen=True, kw_only=True, rename=stored_as("turn_record"), forbid_unknown_fields=True
):
    """One recorded turn; money is in nano-dollars and None where a price was not known."""

    at: float
    model: str
    usage: Usage | None = None
    """What the provider reported; None if it reported nothing."""
    expected: Usage | None = None
    """What the input of the call should have been billed, told before it was made."""
    cost: int | None = None
    """What the call cost; what summaries cost stands with their events."""
    untouched: int | None = None
    """About what it would have cost had nothing ever been compacted: what was removed carried along, nothing rewritten."""
    removed: int = 0
    """The model's tokens that compactions kept out of its prompt."""
    decision: str = ""
    """The reason code of the decision before it."""
    thinking_off: bool = False
    """Its thinking was disabled, because the provider would have refused it in a tool loop whose beginning was compacted."""


Mode = Literal["prune", "summary", "condense", "shorten"]


class Phase(Struct, frozen=True, kw_only=True, rename=stored_as("phase"), forbid_unknown_fields=True):
    """What one mechanism did in a compaction, in the model's tokens."""

    mechanism: str
    removed: int


class Rejected(Struct, frozen=True, kw_only=True, rename=stored_as("rejected"), forbid_unknown_fields=True):
    """A summary that was not accepted as it was (docs/specification.md: J), or a summarizer that gave none."""

    by: str
    code: str
    """What is wrong with it: `references_missing`, `too_short` and the like."""
    missing: int
    """How many critical references it does not have."""
    first_missing: tuple[str, ...]
    """The first five of them. These are contents of messages, which must not get into a log."""
    said: str = ""
    """Why there is no summary at all, in words without contents; empty if there is one."""


class Compaction(
    Struct,
    frozen=True,
    kw_only=True,
    tag="compaction",
    rename=stored_as("compaction"),
    forbid_unknown_fields=True,
):
    """One compaction that was committed."""

    at: float
    model: str
    mode: Mode
    mechanisms: tuple[str, ...]
    because: Reason
    before: int
    """The prompt before it, in the model's tokens."""
    after: int
    items_before: int
    items_after: int
    first_changed: int
    """The index of the first item of the view that changed."""
    disturbed: int
    """Tokens behind that item that have to be written to the cache again."""
    summary_tokens: int = 0
    summarizer: str = ""
    score: float | None = None
    """The share of critical references the summary kept."""
    seconds: float = 0.0
    phases: tuple[Phase, ...] = ()
    """What each mechanism removed, in the order they were carried out."""
    number: int = 0
    """Which of the session's compactions it is, from 1: the checkpoint `before-compaction-1` stands before the first."""
    cost: int | None = 0
    """Nano-dollars for the calls that wrote its summaries, ahead of it or in vain too; None if a price is not known."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as they were, in the order they were written."""
    price: int | None = None
    """Nano-dollars it was to cost in all when it was decided: its summaries, and what it makes the next call cost more."""
    saves: int | None = None
    """Nano-dollars that each later call over a warm cache was to cost less."""
    summary_prompts: int = 0
    """Tokens of the prompts that asked for its summaries, as reported, those written ahead of it or in vain included."""

    @property
    def payback(self) -> float | None:
        """Over how many later calls it was to pay for itself; None if no price is known, or if it never was to."""
        if self.price is None or self.saves is None:
            return None
        if self.price <= 0:
            return 0.0
        return self.price / self.saves if self.saves > 0 else None

    @property
    def reclaimed(self) -> int:
        """How many of the model's tokens the prompt lost."""
        return self.before - max(0, self.after)

    @property
    def ratio(self) -> float:
        """The prompt after it as a share of the prompt before."""
        return max(0, self.after) / self.before if self.before else 1.0


class Skip(
    Struct, frozen=True, kw_only=True, tag="skip", rename=stored_as("skip"), forbid_unknown_fields=True
):
    """A decision to leave the view as it is, or a compaction that was given up."""

    at: float
    because: Reason
    prompt: int
    rejected: tuple[Rejected, ...] = ()
    """The summaries it was given up for, or nothing."""
    summary_prompts: int = 0
    """Tokens of the prompts that asked for these, as reported."""


Event = Compaction | Skip
