"""What there is to tell about a session as it goes: compactions, skips, warnings (SPEC I, K)."""

from typing import Literal

from msgspec import Struct

from lowwater.values.decision import Reason

Mode = Literal["prune", "summary", "condense", "shorten"]


class Phase(Struct, frozen=True, kw_only=True):
    """What one mechanism did in a compaction, in the model's tokens."""

    mechanism: str
    removed: int


class Compaction(Struct, frozen=True, kw_only=True, tag="compaction"):
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

    @property
    def reclaimed(self) -> int:
        """How many of the model's tokens the prompt lost."""
        return self.before - self.after

    @property
    def ratio(self) -> float:
        """The prompt after it as a share of the prompt before."""
        return self.after / self.before if self.before else 1.0


class Skip(Struct, frozen=True, kw_only=True, tag="skip"):
    """A decision to leave the view as it is, or a compaction that was given up."""

    at: float
    because: Reason
    prompt: int


Event = Compaction | Skip
