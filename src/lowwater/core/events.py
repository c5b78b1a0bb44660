"""What is recorded about a session: a record of each turn, and an event for each compaction that was decided and each that was not."""

from typing import Literal

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Reason
from lowwater.core.stored_form import stored_as


class RecallUse(
    Struct, frozen=True, kw_only=True, rename=stored_as("recall_use"), forbid_unknown_fields=True
):
    """How often the model used recall between the answer before and this one."""

    searches: int = 0
    expands: int = 0
    found: int = 0
    """Calls that gave it something."""
    named: int = 0
    """Calls that gave it a name (a path, an identifier, a number) which was not in view, and which it then used."""

    @property
    def calls(self) -> int:
        """How often it was used."""
        return self.searches + self.expands


class TurnRecord(
    Struct, frozen=True, kw_only=True, rename=stored_as("turn_record"), forbid_unknown_fields=True
):
    """One recorded turn; amounts are in nano-dollars, None if a price is unknown."""

    at: float
    model: str
    usage: Usage | None = None
    """What the provider reported; None if it reported nothing."""
    expected: Usage | None = None
    """The input that the call was expected to be billed for, estimated before it was made."""
    cost: int | None = None
    """What the call cost; the costs of summaries are in their events."""
    untouched: int | None = None
    """An estimate of what it would have cost if nothing had ever been compacted."""
    removed: int = 0
    """Tokens, in the model's count, that compactions kept out of its prompt."""
    decision: str = ""
    """The reason code of the decision made before the call."""
    thinking_off: bool = False
    """Whether thinking was disabled, because the provider rejects it in a tool loop whose beginning was compacted."""
    recall: RecallUse | None = None
    """How the model used recall; None if it was not offered."""
    estimated: int | None = None
    """Only in shadow mode: the estimate of `untouched`, which is then what the call really cost; `cost` is what it would have cost."""


Mode = Literal["prune", "summary", "condense", "shorten"]


class Phase(Struct, frozen=True, kw_only=True, rename=stored_as("phase"), forbid_unknown_fields=True):
    """What one mechanism did in a compaction, in the model's tokens."""

    mechanism: str
    removed: int


class Rejected(Struct, frozen=True, kw_only=True, rename=stored_as("rejected"), forbid_unknown_fields=True):
    """A summary that was not accepted as it was written (docs/specification.md: J), or a summarizer that gave none."""

    by: str
    code: str
    """What is wrong with it: `references_missing`, `too_short` and the like."""
    missing: int
    """How many critical references it lacks."""
    first_missing: tuple[str, ...]
    """The first five of them. They are content of messages and must not be logged."""
    error: str = ""
    """Why there is no summary at all, without any content of messages; empty if there is one."""
    score: float | None = None
    """The score of the summary as it was written; None if there is none."""


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
    """Tokens after that item that have to be written to the cache again."""
    summary_tokens: int = 0
    summarizer: str = ""
    score: float | None = None
    """The score of the summary as it was written: what it keeps of the critical references, less for what it invents."""
    repaired_score: float | None = None
    """The score of the summary in place, if it was repaired; None if it stands as it was written."""
    seconds: float = 0.0
    phases: tuple[Phase, ...] = ()
    """What each mechanism removed, in the order they were carried out."""
    number: int = 0
    """Its number among the session's compactions, from 1; the checkpoint `before-compaction-1` is the view before the first."""
    cost: int | None = 0
    """Nano-dollars for the calls that wrote its summaries, prefetched and rejected ones included; None if a price is unknown."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as they were written, in order."""
    price: int | None = None
    """Nano-dollars it was expected to cost when it was decided: its summaries, and the extra cost of the next call."""
    saves: int | None = None
    """Nano-dollars it was expected to save at each later call with a warm cache."""
    summary_prompts: int = 0
    """Reported prompt tokens of the calls for its summaries, prefetched and rejected ones included."""

    @property
    def payback(self) -> float | None:
        """After how many calls it was expected to pay for itself; None if no price is known or it was not expected to."""
        if self.price is None or self.saves is None:
            return None
        if self.price <= 0:
            return 0.0
        return self.price / self.saves if self.saves > 0 else None

    @property
    def reclaimed(self) -> int:
        """By how many tokens, in the model's count, the prompt shrank."""
        return self.before - max(0, self.after)

    @property
    def ratio(self) -> float:
        """The prompt after it as a share of the prompt before."""
        return max(0, self.after) / self.before if self.before else 1.0


class Skip(
    Struct, frozen=True, kw_only=True, tag="skip", rename=stored_as("skip"), forbid_unknown_fields=True
):
    """A decision to leave the view as it is, or a compaction that was abandoned."""

    at: float
    because: Reason
    prompt: int
    rejected: tuple[Rejected, ...] = ()
    """The rejected summaries for which it was abandoned, if any."""
    summary_prompts: int = 0
    """Reported prompt tokens of the calls for these."""


Event = Compaction | Skip
