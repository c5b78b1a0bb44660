"""Computes lower bounds on what a session costs under any schedule of the engine's actions, whatever the schedule knows beforehand.

docs/economics.md ("A bound that bounds") has the proofs.
"""

from math import ceil

import numpy as np
from msgspec import Struct

from lowwater.lab.course import SHARE, Course, Sheet
from lowwater.lab.schedules import Integers, Tally

_IMPOSSIBLE = 1 << 60
_MOST_READS = 1_000
"""Keeping a prefix warm by more calls than this is dearer than writing it again."""
_FIRST_AHEAD, _MORE_AHEAD, _NONE_AHEAD = range(3)
"""Whether the first summary of a schedule is still to come, only later ones are, or none is."""


def carried(course: Course, sheet: Sheet) -> Integers:
    """Return what a token costs at least in the prompts of the calls from `i` to before `k`, by row `i` and column `k`.

    It is written at its first call and read at the later ones. A pause longer than the cache's lifetime is bridged by
    writing it again, by calls that keep it warm, or by having stored it for the longer lifetime.
    """
    count = len(course.turns)
    costs = np.zeros((count, count + 1), np.int64)
    long_write = sheet.write if sheet.write_long is None else sheet.write_long
    short = np.full(count, _IMPOSSIBLE, np.int64)
    long = short.copy()
    for turn, new in enumerate(course.turns):
        least = np.minimum(short, long)
        lifetime = max(sheet.ttl, sheet.ttl_long)
        short = np.minimum(short + sheet.read * _reads(new.gap, sheet.ttl), least + sheet.write)
        long = np.minimum(long + sheet.read * _reads(new.gap, lifetime), least + long_write)
        short[turn], long[turn] = sheet.write, long_write
        costs[: turn + 1, turn + 1] = np.minimum(short, long)[: turn + 1]
    return costs


def _reads(gap: float, lifetime: float) -> int:
    """Return how often a prefix is read until the next call has found it: by calls that keep it warm, and by that call."""
    return max(1, ceil(min(_MOST_READS, gap / lifetime))) if lifetime > 0 else _MOST_READS


# Courses


def lower_bound(course: Course, sheet: Sheet) -> int | None:
    """Return what no schedule costs less than, in nano-dollars, rework included; None if none fits the window.

    A schedule may, before each call, elide the results of any turns outside the course's tail, and replace any spans of
    turns there by summaries. Time and memory are the square of the number of turns.
    """
    tally = Tally(course, sheet)
    least = _Schedules(tally).least() if tally.count else 0
    return None if least >= _IMPOSSIBLE else least // 1_000


class _Schedules:
    """Finds the cheapest calls at which to change the view, if a change may reach anything outside the tail that was not in reach before."""

    def __init__(self, tally: Tally) -> None:
        self._tally, self._sheet = tally, tally.sheet
        self._edges = np.array(tally.edges, np.int64)
        self._carried = carried(tally.course, tally.sheet)
        self._pruned, self._pruned_first, self._summarised = _Rows(tally, self._carried, self._removal).sums()

    @property
    def _removal(self) -> int:
        """What a summary's request costs at least for each token that the summary replaces."""
        return min(self._sheet.read, self._sheet.other_input)

    def least(self) -> int:
        """Return the bound in thousandths of a nano-dollar."""
        tally, sheet, count = self._tally, self._sheet, self._tally.count
        costs = np.full((3, count), _IMPOSSIBLE, np.int64)
        costs[[_FIRST_AHEAD, _NONE_AHEAD], 0] = 0
        for turn in range(1, count):
            edge, edges = self._edges[turn], self._edges[:turn]
            if not edge:
                continue
            changed = np.where(self._fits(turn), costs[:, :turn], _IMPOSSIBLE) + self._rewritten(turn)
            pruned, pruned_first, summarised = (
                sums[edge, turn] - sums[edges, turn]
                for sums in (self._pruned, self._pruned_first, self._summarised)
            )
            asked = summarised + self._asked(turn)
            again = 0 if tally.cold[turn] else sheet.write - sheet.read
            newest = min(
                (changed[_FIRST_AHEAD] + asked).min() + sheet.summary * self._carried[turn, count],
                (changed[_MORE_AHEAD] + asked).min() + sheet.summary * again,
            )
            costs[_FIRST_AHEAD, turn] = (changed[_FIRST_AHEAD] + pruned_first).min()
            costs[_MORE_AHEAD, turn] = min(newest, (changed[_MORE_AHEAD] + pruned_first).min())
            costs[_NONE_AHEAD, turn] = min(newest, (changed[_NONE_AHEAD] + pruned).min())
        kept = self._carried[:, count] * np.diff(tally.whole)
        last = kept.sum() - np.concatenate(([0], np.cumsum(kept)))[self._edges]
        last[~self._fits(count)] = _IMPOSSIBLE
        always = tally.course.fixed * self._carried[0, count]
        always += sheet.output * sum(turn.output for turn in tally.course.turns)
        return min(_IMPOSSIBLE, int((costs[_NONE_AHEAD] + last).min() + always))

    def _fits(self, turn: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return for each call of a last change whether the prompt before `turn` can fit: all that was not in reach is in it."""
        tally, edges = self._tally, self._edges[:turn]
        certain = tally.course.fixed + tally.whole[turn] - tally.whole[edges]
        fits: np.ndarray[tuple[int], np.dtype[np.bool_]] = certain <= tally.sheet.wall
        return fits

    def _rewritten(self, turn: int) -> int:
        """Return what a change before a call costs: the tail behind it is written again, unless it has to be in any case."""
        tally, sheet = self._tally, self._sheet
        cached = int(tally.whole[turn] - tally.whole[self._edges[turn]])
        return 0 if tally.cold[turn] else (sheet.write - sheet.read) * cached

    def _asked(self, turn: int) -> int:
        """Return what the request for a summary costs at least, beside what it costs for each token that is replaced."""
        tally, sheet = self._tally, self._sheet
        tail = int(tally.whole[turn] - tally.whole[self._edges[turn]])
        riding = (
            sheet.read * (tally.course.fixed + tail)
            + sheet.input * sheet.instruction
            + sheet.output * sheet.summary
        )
        return min(riding, sheet.other_input * sheet.instruction + sheet.other_output * sheet.summary)


class _Rows:
    """What each turn costs at least (row) if the first change that may reach it is before a call (column)."""

    def __init__(self, tally: Tally, carried: Integers, removal: int) -> None:
        self._tally, self._sheet, self._carried, self._removal = tally, tally.sheet, carried, removal
        by_elision, by_summary = self._lost()
        self._by_elision, self._by_any = by_elision, by_elision + by_summary

    def _lost(self) -> tuple[Integers, Integers]:
        """Return what the uses of a turn's results from a call on cost, by turn and call: lost by elision, and besides by a summary."""
        tally, sheet, count = self._tally, self._sheet, self._tally.count
        found = []
        sizes = [
            tally.course.fixed + int(tally.whole[turn + 1] - tally.whole[tally.edges[turn]])
            for turn in range(count)
        ]
        for which in (0, 1):
            lost = np.stack([np.diff(tally.lost(turn)[which]) for turn in range(count)])
            prompts = np.array(sizes, np.int64)[:, None]
            cost = (sheet.read * prompts * lost[:, 0] + sheet.write * lost[:, 1]) // SHARE
            later = np.zeros((count, count + 1), np.int64)
            later[:, :count] = np.cumsum(cost[::-1], axis=0)[::-1].T
            found.append(later)
        return found[0], found[1]

    def sums(self) -> tuple[Integers, Integers, Integers]:
        """Return the sums over the turns before each edge: for a prune without later summaries, with one later, and for a summary."""
        tally = self._tally
        found = [np.zeros((tally.count + 1, tally.count + 1), np.int64) for _ in range(3)]
        for turn in range(tally.count):
            for sums, row in zip(found, self._row(turn), strict=True):
                sums[turn + 1] = sums[turn] + row
        return found[0], found[1], found[2]

    def _row(self, turn: int) -> tuple[Integers, Integers, Integers]:
        new, carry, sheet = self._tally.course.turns[turn], self._carried[turn], self._sheet
        kept = carry[-1]
        text = np.minimum(new.text * (carry + self._removal), new.text * kept)
        # By the call before which the results are elided or gone; the last column is never.
        elided = new.results * carry + self._by_elision[turn]
        for_good = elided.copy()
        for_good[:-1] += new.elided * self._carried[:, -1]
        elided[:-1] += new.elided * sheet.write
        gone = new.results * carry + self._by_any[turn]
        gone[:-1] += new.results * self._removal
        gone_after = np.append(gone[1:], gone[-1])
        pruned = new.text * kept + _from_here_on(for_good)
        pruned_first = np.append(text[1:], text[-1]) + _from_here_on(np.minimum(elided, gone_after))
        return pruned, pruned_first, text + _from_here_on(np.minimum(elided, gone))


def _from_here_on(costs: Integers) -> Integers:
    """Return the least of each value and those behind it."""
    least: Integers = np.minimum.accumulate(costs[::-1])[::-1]
    return least


# The real engine


class Reach(Struct, frozen=True, kw_only=True):
    """What the engine may change before each call."""

    edges: tuple[int, ...]
    """Before each call, the number of turns that are not in the tail, at least in part."""
    head: int = 0
    """The first turns that are protected unless a size forces a change."""
    forced_from: int | None = None
    """The smallest prompt that may force a change, of the newest turn too; None: there is none."""


def engine_bound(course: Course, sheet: Sheet, reach: Reach) -> int:
    """Return what the engine cannot cost less than, in nano-dollars, whatever it decides and whatever its summaries show.

    Whatever a change may reach can vanish with it: no summary or digest costs anything, and nothing is missed. What is left
    is to write and to carry what was not in reach yet, and to write again what stands behind a change.
    """
    return _Vanishing(Tally(course, sheet), reach).least() // 1_000 if course.turns else 0


class _Vanishing:
    """Finds the cheapest calls at which to change the view, if everything in reach of a change vanishes with it."""

    def __init__(self, tally: Tally, reach: Reach) -> None:
        self._tally, self._sheet, self._reach = tally, tally.sheet, reach
        self._carried = carried(tally.course, tally.sheet)
        rows = self._carried * np.diff(tally.whole)[:, None]
        self._sums = np.concatenate((np.zeros((1, tally.count + 1), np.int64), np.cumsum(rows, axis=0)))

    def least(self) -> int:
        """Return the bound in thousandths of a nano-dollar."""
        tally, sheet, sums, count = self._tally, self._sheet, self._sums, self._tally.count
        head = min(self._reach.head, count)
        edges, costs = np.full(2 * count, head), np.full(2 * count, _IMPOSSIBLE, np.int64)
        costs[0], known = 0, 1
        if self._can_force(0):
            edges[1], costs[1], known = max(1, head), 0, 2
        for turn in range(1, count):
            before, so_far = edges[:known], costs[:known]
            found: list[tuple[int, int]] = []
            if (edge := self._reach.edges[turn]) > head:
                reached = np.where(before < edge, so_far + sums[edge, turn] - sums[before, turn], _IMPOSSIBLE)
                cached = 0 if tally.cold[turn] else int(tally.whole[turn] - tally.whole[edge])
                found.append((edge, int(reached.min()) + (sheet.write - sheet.read) * cached))
            if self._can_force(turn):
                forced = so_far + sums[turn + 1, turn] - sums[before, turn] + self._carried_to(turn, before)
                found.append((turn + 1, int(forced.min())))
            for edge, cost in found:
                edges[known], costs[known] = edge, cost
                known += 1
        least = (costs[:known] + sums[count, count] - sums[edges[:known], count]).min()
        always = tally.course.fixed * self._carried[0, count] + sums[head, self._head_until()]
        always += sheet.output * sum(turn.output for turn in tally.course.turns)
        return int(least + always)

    def _can_force(self, turn: int) -> bool:
        forced_from = self._reach.forced_from
        return (
            forced_from is not None
            and self._tally.course.fixed + int(self._tally.whole[turn + 1]) >= forced_from
        )

    def _head_until(self) -> int:
        """Return the first call before which a size may force a change of the head; the number of calls if there is none."""
        count = self._tally.count
        return next((turn for turn in range(count) if self._can_force(turn)), count)

    def _carried_to(self, turn: int, edges: Integers) -> Integers:
        """Return what the last prompt cost besides what is reckoned with, if it was so large that this turn forces a change."""
        tally, reach = self._tally, self._reach
        size = (reach.forced_from or 0) - tally.course.turns[turn].whole
        reckoned = tally.course.fixed + tally.whole[min(reach.head, turn)]
        reckoned = reckoned + tally.whole[turn] - tally.whole[np.minimum(edges, turn)]
        beyond: Integers = self._sheet.read * np.maximum(0, size - reckoned)
        return beyond
