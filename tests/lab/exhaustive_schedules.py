"""Every schedule of the engine's actions on a small course: the cheapest of them, found by trying all."""

from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from math import ceil

import numpy as np
from msgspec import Struct

from lowwater.lab.bound import Reach
from lowwater.lab.course import SHARE, Course, Sheet
from lowwater.lab.schedules import Tally


class Piece(Struct, frozen=True):
    """A piece of a view: a turn, whole or with its results elided, or a summary of the turns from `start` to before `stop`."""

    start: int
    stop: int
    kind: str
    written: int = 0
    """The call before which a summary was written."""


View = tuple[Piece, ...]


class Cached(Struct, frozen=True):
    """The view at the last call, and how many of its pieces, from the first on, are stored for the longer lifetime.

    Tools and system prompt are stored like the first piece; -1 if not even they are stored for long.
    """

    view: View
    long: int


def cheapest(course: Course, sheet: Sheet, reach: Reach | None = None) -> int | None:
    """Return what the cheapest of all schedules costs in nano-dollars; None if none fits the window.

    Without a `reach` a change may reach what is outside the course's tail.
    """
    least = _Search(course, sheet, reach).least()
    return None if least is None else least // 1_000


class _Search:
    def __init__(self, course: Course, sheet: Sheet, reach: Reach | None) -> None:
        self.course, self.sheet, self.tally = course, sheet, Tally(course, sheet)
        self.reach = reach or Reach(edges=tuple(self.tally.edges))
        self.long_write = sheet.write if sheet.write_long is None else sheet.write_long
        lost = [self.tally.lost(turn) for turn in range(self.tally.count)]
        self.by_elision = [np.diff(each[0]) for each in lost]
        self.by_summary = [np.diff(each[1]) for each in lost]
        self._size, self._rework = cache(self._size_of), cache(self._rework_of)

    def least(self) -> int | None:
        """Return the least cost, in thousandths of a nano-dollar, going from call to call over all that can be cached then."""
        costs: dict[Cached | None, int] = {None: 0}
        for turn in range(self.tally.count):
            after: dict[Cached | None, int] = {}
            for cached, so_far in costs.items():
                for then, cost in self._calls(turn, cached):
                    after[then] = min(so_far + cost, after.get(then, so_far + cost))
            costs = after
        return min(costs.values(), default=None)

    def _calls(self, turn: int, cached: Cached | None) -> Iterator[tuple[Cached, int]]:
        before = () if cached is None else cached.view
        for whole in self._views(turn, before):
            if self._size(whole) > self.sheet.wall:
                continue
            cost = self._asked(turn, before, whole) + self._rework(turn, whole)
            cost += self.sheet.output * self.course.turns[turn].output
            for alive, kept in self._alive(turn, cached):
                shared = sum(
                    1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, whole, strict=False))
                )
                yield from (
                    (Cached(whole, long), cost + kept + sent)
                    for long, sent in self._sent(whole, min(shared, alive), cached)
                )

    def _views(self, turn: int, before: View) -> Iterator[View]:
        """Yield what the pieces in reach of a change can be changed to, followed by the others."""
        grown = (*before, Piece(turn, turn + 1, "whole"))
        forced_from = self.reach.forced_from
        is_forced = forced_from is not None and self._size(grown) >= forced_from
        edge, head = self.reach.edges[turn], self.reach.head
        start = 0 if is_forced else sum(piece.start < head for piece in grown)
        stop = len(grown) if is_forced else sum(piece.stop <= edge for piece in grown)
        for changed in self._changed(turn, grown[start:stop]):
            yield grown[:start] + changed + grown[max(start, stop) :]

    def _changed(self, turn: int, pieces: View) -> Iterator[View]:
        if not pieces:
            yield ()
            return
        first = pieces[0]
        choices = [first, Piece(first.start, first.stop, "elided")] if first.kind == "whole" else [first]
        for rest in self._changed(turn, pieces[1:]):
            yield from ((choice, *rest) for choice in choices)
        for count in range(1, len(pieces) + 1):
            summary = Piece(first.start, pieces[count - 1].stop, "summary", turn)
            yield from ((summary, *rest) for rest in self._changed(turn, pieces[count:]))

    def _tokens(self, piece: Piece) -> int:
        if piece.kind == "summary":
            return self.sheet.summary
        new = self.course.turns[piece.start]
        return new.whole if piece.kind == "whole" else new.text + new.elided

    def _size_of(self, view: View) -> int:
        return self.course.fixed + sum(self._tokens(piece) for piece in view)

    def _asked(self, turn: int, before: View, view: View) -> int:
        """Return what the new summaries cost; they are asked for while the last prompt is still cached."""
        sheet, cost = self.sheet, 0
        for piece in view:
            if piece.kind == "summary" and piece.written == turn:
                covered = sum(self._tokens(old) for old in before if piece.start <= old.start < piece.stop)
                riding = sheet.read * self._size(before) + sheet.input * sheet.instruction
                other = sheet.other_input * (covered + sheet.instruction) + sheet.other_output * sheet.summary
                cost += min(riding + sheet.output * sheet.summary, other)
        return cost

    def _rework_of(self, turn: int, view: View) -> int:
        lost = np.zeros(2, np.int64)
        for piece in view:
            for old in range(piece.start, piece.stop) if piece.kind != "whole" else ():
                lost += self.by_elision[turn][:, old]
                lost += self.by_summary[turn][:, old] if piece.kind == "summary" else 0
        return int((self.sheet.read * self._size(view) * lost[0] + self.sheet.write * lost[1]) // SHARE)

    def _alive(self, turn: int, cached: Cached | None) -> Iterator[tuple[int, int]]:
        """Yield how many pieces of the last view can still be cached, -1 for not even tools and system, and what that cost."""
        yield -1, 0
        if cached is None:
            return
        gap, sheet = self.course.turns[turn].gap, self.sheet
        pings = max(0, ceil(gap / sheet.ttl) - 1)
        yield len(cached.view), sheet.read * pings * self._size(cached.view)
        if cached.long >= 0 and sheet.ttl_long:
            pings = max(0, ceil(gap / sheet.ttl_long) - 1)
            yield cached.long, sheet.read * pings * self._size(cached.view[: cached.long])

    def _sent(self, view: View, hit: int, cached: Cached | None) -> Iterator[tuple[int, int]]:
        """Yield what a prompt can cost, by how much of it is stored for long then."""
        sheet = self.sheet
        read = 0 if hit < 0 else self._size(view[:hit])
        stored = -1 if hit < 0 or cached is None else min(cached.long, hit)
        written = self._size(view) - read
        yield stored, sheet.read * read + sheet.write * written
        if sheet.write_long is None or stored < hit:
            return
        for long in range(max(0, hit), len(view) + 1):
            part = self._size(view[:long]) - read
            if part:
                yield long, sheet.read * read + self.long_write * part + sheet.write * (written - part)
