"""What a compaction works with, and what comes of it."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.compact.making import Making
from lowwater.compact.propose import Asked
from lowwater.engine.ladder import Ladder
from lowwater.engine.parked import Parked
from lowwater.values.events import Mode, Phase, Rejected
from lowwater.values.situation import scaled
from lowwater.values.summaries import Judged, Written
from lowwater.values.view import Item


class Work(Struct, frozen=True, kw_only=True):
    """What a compaction works with."""

    asked: Asked
    prompt: int
    """The size of the prompt before it, in the model's tokens."""
    at: float
    ladder: Ladder = Ladder()
    parked: Parked | None = None
    """A summary that stands ready and may be published now."""
    focus: str = ""
    by_hand: bool = False
    at_wall: bool = False
    """It has to fit, whatever it takes."""

    @property
    def making(self) -> Making:
        """What the mechanisms need."""
        return self.asked.making

    def size(self, items: Sequence[Item]) -> int:
        """Return the size of the prompt with these items instead, in the model's tokens."""
        return self.prompt - self.scaled(tokens_of(self.asked.items) - tokens_of(items))

    def scaled(self, counted: int) -> int:
        """Return counted tokens as the model's."""
        return scaled(counted, self.asked.scale)

    def phase(self, mechanism: str, before: Sequence[Item], after: Sequence[Item]) -> Phase:
        """Return what a mechanism did."""
        return Phase(mechanism=mechanism, removed=self.scaled(tokens_of(before) - tokens_of(after)))


class Result(Struct, frozen=True, kw_only=True):
    """What came of it; `items` are as before if nothing was gained."""

    items: tuple[Item, ...]
    phases: tuple[Phase, ...] = ()
    mode: Mode = "prune"
    first_changed: int = 0
    judged: Judged | None = None
    """The last summary of those that were made."""
    summaries: int = 0
    summary_tokens: int = 0
    failed_at: float | None = None
    """When the summarizers failed; None if they did not, or none was asked."""
    low: bool | None = None
    """Whether the first summarizer's last answer missed too much."""
    written: tuple[Written, ...] = ()
    """Everything that models wrote for it, used or not: all of it was billed."""
    lost: bool = False
    """Whether a call failed that may have been billed all the same."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as they were."""
    no_block: bool = False
    """Whether a provider was asked to compact by itself and gave nothing that was of use."""

    @property
    def changed(self) -> bool:
        """The view got smaller."""
        return bool(self.phases)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that made it so, each once."""
        return tuple(dict.fromkeys(phase.mechanism for phase in self.phases))


def first_difference(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return the index of the first item that is not the same."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (old, new) in pairs if old is not new), min(len(before), len(after)))


def tokens_of(items: Sequence[Item]) -> int:
    """Return the size of these items, as counted."""
    return sum([item.tokens for item in items])
