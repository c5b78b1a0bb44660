"""What of a layout is still in the provider's cache, and how much of it a call would read."""

from bisect import bisect_right

from msgspec import Struct


class Warmth(Struct, frozen=True, kw_only=True):
    """The stored boundaries that lie on a layout and are alive, and the rule by which they are found.

    Where the provider finds the longest prefix by itself (`step` > 0), every whole step up to the deepest boundary can
    be read; otherwise only a boundary itself, and only if a mark finds it.
    """

    positions: tuple[int, ...] = ()
    """Where the boundaries lie, in tokens, ascending."""
    blocks: tuple[int, ...] = ()
    """The blocks they end."""
    ends: tuple[int, ...] = ()
    """Where each block of the layout ends."""
    marks: tuple[int, ...] = ()
    """The blocks from which the provider looks back, ascending."""
    lookback: int | None = None
    """How many blocks it looks back from each; None is no limit."""
    step: int = 0
    least: int = 0
    """Tokens below which nothing is read."""
    chance: float = 1.0
    """How likely the boundaries are still there; below 1 only where no lifetime is published."""

    def hit(self, upto: int | None = None) -> int:
        """Return the tokens that would be read if the layout is unchanged up to token `upto`; None is all of it.

        A changed layout is taken to have a mark at its last unchanged block.
        """
        limit = self.ends[-1] if upto is None and self.ends else upto or 0
        found = self._by_step(limit) if self.step else self._by_boundary(limit, edge=upto is not None)
        return found if found >= self.least else 0

    def expected(self, upto: int | None = None) -> int:
        """Return the tokens read, weighed by the chance that they are there."""
        hit = self.hit(upto)
        return hit if self.chance >= 1.0 else round(hit * self.chance)

    def _by_step(self, limit: int) -> int:
        depth = self.positions[-1] if self.positions else 0
        return min(depth, limit) // self.step * self.step

    def _by_boundary(self, limit: int, *, edge: bool) -> int:
        last = bisect_right(self.ends, limit) - 1
        if self.lookback is None:
            return self._deepest(last, 0)
        starts = [mark for mark in self.marks if mark <= last]
        if edge and last >= 0:
            starts.append(last)
        return max((self._deepest(start, start - self.lookback) for start in starts), default=0)

    def _deepest(self, last: int, first: int) -> int:
        """Return the position of the deepest boundary that ends one of the blocks from `first` to `last`."""
        at = bisect_right(self.blocks, last) - 1
        return self.positions[at] if at >= 0 and self.blocks[at] >= first else 0
