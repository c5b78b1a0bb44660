"""Where asking for a summary begins and what is made of the answers: the ladder, and where a session stands on it."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.values.stored_form import stored_as

_LOW_IN_A_ROW = 3
_RECOVERS = 3_600.0


class Standing(Struct, frozen=True, kw_only=True, rename=stored_as("standing"), forbid_unknown_fields=True):
    """Where the ladder begins: repeatedly low scores move it down a rung, an hour moves it back to the top."""

    first: int = 0
    low: int = 0
    """Low scores in a row on that rung."""
    since: float = 0.0
    """When it was last moved."""
    no_block_since: float | None = None
    """When a provider was last asked for a block of its own and gave none that was of use; None if it never was."""

    def at(self, now: float) -> "Standing":
        """Return where it begins at this time."""
        recovered = self.first and not 0 <= now - self.since < _RECOVERS
        return Standing(no_block_since=self.no_block_since) if recovered else self

    def after(self, *, low: bool | None, now: float) -> "Standing":
        """Return it after an answer of its first rung was judged; None if none was."""
        if low is None:
            return self
        if low and self.low + 1 >= _LOW_IN_A_ROW:
            return replace(self, first=self.first + 1, low=0, since=now)
        return replace(self, low=self.low + 1 if low else 0)

    def asks_for_blocks(self, now: float) -> bool:
        """Return whether a provider may be asked to compact by itself: for an hour after it did no good it is not."""
        since = self.no_block_since
        return since is None or not 0 <= now - since < _RECOVERS


class Ladder(Struct, frozen=True, kw_only=True):
    """Which summarizers are asked before the extractive one, and what is made of their answers."""

    rungs: int = 0
    first: int = 0
    competing: bool = False
    """Ask all of them and take the best, rather than the first that is good enough."""
    order: tuple[int, ...] = ()
    """The rungs from top to bottom, if not as they are numbered: the cheapest first."""
    names: tuple[str, ...] = ()
    """What the summarizers are called, by rung."""
    riding: frozenset[int] = frozenset()
    """The rungs that are asked most cheaply by extending the request that was sent last."""
    native: int | None = None
    """The rung whose provider can be asked to compact by itself; None if there is none."""
    accepts_weak: bool = True
    """Go on with the best there is if all of them miss too much."""

    def name(self, rung: int) -> str:
        """Return what the summarizer of a rung is called."""
        return self.names[rung] if rung < len(self.names) else f"summarizer {rung + 1}"

    def without(self, rung: int) -> "Ladder":
        """Return the ladder with one rung left out."""
        order = tuple(each for each in self.order or range(self.rungs) if each != rung)
        return replace(self, order=order, rungs=self.rungs if order else 0)

    @property
    def asked(self) -> tuple[int, ...]:
        """The rungs to ask, in order."""
        rungs = self.order or range(self.rungs)
        return tuple(rung for rung in rungs if rung < self.rungs)[self.first :]
