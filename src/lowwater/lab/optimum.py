"""Finds the cheapest schedule of prunes and summaries for a course, by dynamic programming over states."""

from itertools import accumulate
from math import isqrt

import numpy as np
from msgspec import Struct

from lowwater.lab.course import (
    SHARE,
    Action,
    Course,
    CourseAction,
    CoursePrune,
    CourseState,
    Sheet,
    Summarise,
)
from lowwater.lab.schedules import Integers, RentOrBuy, Tally, run

NEVER = 1 << 61
"""The cost of an impossible state."""


class Layer(Struct, frozen=True, kw_only=True):
    """Costs by state (row `summarised`, column `pruned`, both from edge `low`); other states are impossible."""

    low: int
    costs: Integers

    def cost(self, state: CourseState) -> int:
        """Return the cost of reaching a state."""
        row, column = state.summarised - self.low, state.pruned - self.low
        if row < 0 or max(row, column) >= len(self.costs):
            return NEVER
        return int(self.costs[row, column])

    def cheapest(self) -> CourseState:
        """Return the cheapest state."""
        row, column = divmod(int(self.costs.argmin()), len(self.costs))
        return CourseState(summarised=self.low + row, pruned=self.low + column)

    def trimmed(self) -> "Layer":
        """Return the layer without leading rows and columns of impossible states."""
        possible = self.costs.min(axis=1) < NEVER
        first = int(possible.argmax())
        if not first:
            return self
        return Layer(low=self.low + first, costs=np.ascontiguousarray(self.costs[first:, first:]))

    def reaching(self, edge: int) -> "Layer":
        """Return the layer with room for states up to an edge."""
        width, wanted = len(self.costs), edge + 1 - self.low
        if wanted <= width:
            return self
        grown = np.full((wanted, wanted), NEVER, np.int64)
        grown[:width, :width] = self.costs
        return Layer(low=self.low, costs=grown)


class ScheduleStep:
    """One turn: computes its layer from the previous one."""

    def __init__(self, tally: Tally, before: Layer, turn: int) -> None:
        self.tally, self.sheet, self.turn = tally, tally.sheet, turn
        before = before.reaching(tally.edges[turn])
        self.low, self.costs = before.low, before.costs
        self.edges = slice(before.low, before.low + len(self.costs))
        self.cold = tally.cold[turn]
        self.reach = tally.edges[turn] - before.low
        self.short, self.whole = tally.short[self.edges], tally.whole[self.edges]
        self.start = _starts(tally, before)
        self.size = sizes(tally, before, turn)

    def result(self) -> Layer:
        """Return the layer after the turn."""
        sheet, new = self.sheet, self.tally.course.turns[self.turn]
        if self.cold:
            best = self.costs + sheet.write * self.size
        else:
            best = self.costs + sheet.read * (self.size - new.whole) + sheet.write * new.whole
        if self.reach > 0:
            self._prune(best)
            self._summarise(best)
        best += self._rework() + sheet.output * new.output
        best[(self.size > sheet.wall) | (best > NEVER)] = NEVER
        return Layer(low=self.low, costs=best)

    def _prune(self, best: Integers) -> None:
        sheet, reach = self.sheet, self.reach
        from_here = self.costs[:, :reach]
        if not self.cold:
            hit = self.start[:, None] + self.short[None, :reach]
            from_here = from_here - (sheet.write - sheet.read) * hit
        offered = np.minimum.accumulate(from_here, axis=1) + sheet.write * self.size[:, 1 : reach + 1]
        np.minimum(best[:, 1 : reach + 1], offered, out=best[:, 1 : reach + 1])

    def _summarise(self, best: Integers) -> None:
        """Take summaries up to each edge: elisions behind it stay, so those before decide on the diagonal only."""
        sheet, reach = self.sheet, self.reach
        rate = sheet.input if self.cold else sheet.read
        whole = self.tally.course.turns[self.turn].whole
        extended = self.costs[:reach] + rate * (self.size[:reach] - whole)
        extended += sheet.input * sheet.instruction + sheet.output * sheet.summary
        asked = sheet.other_input * sheet.instruction + sheet.other_output * sheet.summary
        start = sheet.other_input * (self.start[:reach] - self.tally.course.fixed) + asked
        extended = np.minimum.accumulate(extended, axis=0)
        other = np.minimum.accumulate(self.costs[:reach] + start[:, None], axis=0)
        short, kept = self.short[1 : reach + 1, None], self.whole[1 : reach + 1, None]
        is_before = np.tri(reach, len(self.costs), 1, dtype=bool)
        unlike = other + sheet.other_input * (kept + (self.short - self.whole)[None, :])
        diagonal = np.where(is_before, np.minimum(extended, unlike), NEVER).min(axis=1)
        offered = np.minimum(extended, other + sheet.other_input * short)
        offered[is_before] = NEVER
        offered[np.arange(reach), np.arange(1, reach + 1)] = diagonal
        hit = 0 if self.cold else (sheet.write - sheet.read) * self.tally.course.fixed
        offered += sheet.write * self.size[1 : reach + 1] - hit
        np.minimum(best[1 : reach + 1], offered, out=best[1 : reach + 1])

    def _rework(self) -> Integers:
        by_elision, by_summary = (lost[:, self.edges] for lost in self.tally.lost(self.turn))
        uses = by_elision[0, None, :] + by_summary[0, :, None]
        tokens = by_elision[1, None, :] + by_summary[1, :, None]
        charged: Integers = (self.sheet.read * self.size * uses + self.sheet.write * tokens) // SHARE
        return charged


def sizes(tally: Tally, layer: Layer, turn: int) -> Integers:
    """Return the size of a turn's prompt by state."""
    edges = slice(layer.low, layer.low + len(layer.costs))
    behind = tally.whole[turn + 1] - tally.whole[edges] + tally.short[edges]
    found: Integers = _starts(tally, layer)[:, None] + behind[None, :]
    return found


def _starts(tally: Tally, layer: Layer) -> Integers:
    """Return by row what a view's start adds to the sum of what is elided before the other edge."""
    edges = np.arange(layer.low, layer.low + len(layer.costs))
    summary = np.where(edges > 0, tally.sheet.summary, 0)
    starts: Integers = tally.course.fixed + summary - tally.short[edges]
    return starts


def before_prune(tally: Tally, layer: Layer, then: CourseState, turn: int) -> CourseState | None:
    """Return the cheapest state to come from by a prune."""
    row, reach = then.summarised - layer.low, then.pruned - layer.low
    if row < 0 or row >= len(layer.costs) or reach <= 0:
        return None
    costs = layer.costs[row, :reach]
    saved = 0 if tally.cold[turn] else tally.sheet.write - tally.sheet.read
    best = np.argmin(costs - saved * tally.short[layer.low : layer.low + len(costs)])
    return CourseState(summarised=then.summarised, pruned=layer.low + int(best))


def before_summary(tally: Tally, layer: Layer, then: CourseState, turn: int) -> CourseState | None:
    """Return the cheapest state to come from by a summary: elisions behind it were there before."""
    sheet, upto = tally.sheet, then.summarised
    first = then.pruned - layer.low if then.pruned > upto else 0
    part = (slice(0, max(0, upto - layer.low)), slice(first, then.pruned - layer.low + 1))
    costs = layer.costs[part]
    if not costs.size:
        return None
    rate = sheet.input if tally.cold[turn] else sheet.read
    extended = rate * sizes(tally, layer, turn - 1)[part] + sheet.input * sheet.instruction
    elided = np.minimum(layer.low + np.arange(first, first + costs.shape[1]), upto)
    start = _starts(tally, layer)[part[0]] - tally.course.fixed + sheet.instruction + tally.whole[upto]
    covered = start[:, None] + (tally.short[elided] - tally.whole[elided])[None, :]
    other = sheet.other_input * covered + sheet.other_output * sheet.summary
    best = int(np.argmin(costs + np.minimum(extended + sheet.output * sheet.summary, other)))
    row, column = divmod(best, costs.shape[1])
    return CourseState(summarised=layer.low + row, pruned=layer.low + first + column)


class Optimum(Struct, frozen=True, kw_only=True):
    """The cost of the cheapest schedule in nano-dollars and its actions; the cost is None if no schedule fits."""

    cost: int | None
    acts: tuple[CourseAction, ...] = ()


def optimum(course: Course, sheet: Sheet, *, with_acts: bool = False) -> Optimum:
    """Return the least that one action before each call can make of a course: none, a prune, or a summary.

    Time is at most the cube of the number of turns, memory the square. Acts take as long again: of the layers only the
    square root is kept, and those between are computed twice.
    """
    return ScheduleSearch(Tally(course, sheet)).run(with_acts=with_acts)


class ScheduleSearch:
    """Searches the layers of a course, one per turn, without states that cannot lead to the optimum."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        bought = run(tally, RentOrBuy(tally)).cost
        self._most = NEVER if bought is None else (bought + 1) * 1_000
        unavoidable = [self._unavoidable(turn) for turn in range(tally.count)]
        self._still_to_come = [*accumulate(reversed(unavoidable), initial=0)][::-1]

    def _unavoidable(self, turn: int) -> int:
        """Return the cost of a turn in any schedule: its output, its new tokens, tools and system, and the tail."""
        tally, sheet, new = self.tally, self.tally.sheet, self.tally.course.turns[turn]
        old = tally.course.fixed + int(tally.whole[turn] - tally.whole[max(tally.edges[: turn + 1])])
        rate = sheet.write if tally.cold[turn] else sheet.read
        return rate * old + sheet.write * new.whole + sheet.output * new.output

    def run(self, *, with_acts: bool) -> Optimum:
        """Return the optimum."""
        count = self.tally.count
        stride = isqrt(count) + 1
        layer = Layer(low=0, costs=np.zeros((1, 1), np.int64))
        stored = {0: layer}
        for turn in range(count):
            layer = self.step(layer, turn)
            if with_acts and (turn + 1) % stride == 0:
                stored[turn + 1] = layer
        least = int(layer.costs.min())
        if least >= NEVER:
            return Optimum(cost=None)
        return Optimum(cost=least // 1_000, acts=self._acts(layer, stored) if with_acts else ())

    def step(self, layer: Layer, turn: int) -> Layer:
        """Return the layer after a turn's call, without states that already cost more than a known schedule."""
        after = ScheduleStep(self.tally, layer, turn).result()
        after.costs[after.costs > self._most - self._still_to_come[turn + 1]] = NEVER
        return after.trimmed()

    def _acts(self, last: Layer, stored: dict[int, Layer]) -> tuple[CourseAction, ...]:
        """Return the actions of the optimum, walking back from its last state."""
        state = last.cheapest()
        acts: list[CourseAction] = []
        until = self.tally.count
        for start in sorted(stored, reverse=True):
            layers = [stored[start]]
            for turn in range(start, until):
                layers.append(self.step(layers[-1], turn))
            for turn in reversed(range(start, until)):
                cost = layers[turn - start + 1].cost(state)
                state, action = self._led_to(state, cost, layers[turn - start], turn)
                if action is not None:
                    acts.append(CourseAction(turn=turn, action=action))
            until = start
        return tuple(reversed(acts))

    def _led_to(
        self, then: CourseState, cost: int, layer: Layer, turn: int
    ) -> tuple[CourseState, Action | None]:
        """Return a state and an action that lead to `then` at `cost`; the costs are exact, so one of three does."""
        candidates: tuple[tuple[CourseState | None, Action | None], ...] = (
            (then, None),
            (before_prune(self.tally, layer, then, turn), CoursePrune(upto=then.pruned)),
            (before_summary(self.tally, layer, then, turn), Summarise(upto=then.summarised)),
        )
        for state, action in candidates:
            before = NEVER if state is None else layer.cost(state)
            if state and before < NEVER and before + self.tally.call(turn, state, action) == cost:
                return state, action
        raise AssertionError(f"nothing leads to {then} at turn {turn}")
