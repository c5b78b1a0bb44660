"""Where asking for a summary begins and what is made of the answers: the ladder, and where a session stands on it."""

from msgspec import Struct
from msgspec.structs import replace

_LOW_IN_A_ROW = 3
_RECOVERS = 3_600.0


class Standing(Struct, frozen=True, kw_only=True):
    """Where the ladder begins: repeatedly low scores move it down a rung, an hour moves it back to the top."""

    first: int = 0
    low: int = 0
    """Low scores in a row on that rung."""
    since: float = 0.0
    """When it was last moved."""

    def at(self, now: float) -> "Standing":
        """Return where it begins at this time."""
        return Standing() if self.first and not 0 <= now - self.since < _RECOVERS else self

    def after(self, *, low: bool | None, now: float) -> "Standing":
        """Return it after an answer of its first rung was judged; None if none was."""
        if low is None:
            return self
        if low and self.low + 1 >= _LOW_IN_A_ROW:
            return Standing(first=self.first + 1, since=now)
        return replace(self, low=self.low + 1 if low else 0)


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
    accepts_weak: bool = True
    """Go on with the best there is if all of them miss too much."""

    def name(self, rung: int) -> str:
        """Return what the summarizer of a rung is called."""
        return self.names[rung] if rung < len(self.names) else f"summarizer {rung + 1}"

    @property
    def asked(self) -> tuple[int, ...]:
        """The rungs to ask, in order."""
        rungs = self.order or range(self.rungs)
        return tuple(rung for rung in rungs if rung < self.rungs)[self.first :]
