"""The cheapest schedule of compactions a course could have had: a dynamic program with hindsight (docs/economics.md)."""

from itertools import accumulate
from math import isqrt

import numpy as np
from msgspec import Struct

from lowwater.replay.course import Act, Action, Course, Prune, Sheet, State, Summarise
from lowwater.replay.layer import NEVER, Layer, Step, before_prune, before_summary
from lowwater.replay.policies import run
from lowwater.replay.renting import RentOrBuy
from lowwater.replay.tally import Tally


class Optimum(Struct, frozen=True, kw_only=True):
    """What the cheapest schedule costs, in nano-dollars, and its acts; no cost if no schedule fits the wall."""

    cost: int | None
    acts: tuple[Act, ...] = ()


def optimum(course: Course, sheet: Sheet, *, with_acts: bool = False) -> Optimum:
    """Return the least that one action before each call can make of a course: none, a prune, or a summary.

    Time is at most the cube of the number of turns, memory the square. Acts take as long again: of the layers only the
    square root is kept, and those between are computed twice.
    """
    return Search(Tally(course, sheet)).run(with_acts=with_acts)


class Search:
    """The layers of a course, one for each turn, without the states that cannot lead to the optimum."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        bought = run(tally, RentOrBuy(tally)).cost
        self._most = NEVER if bought is None else (bought + 1) * 1_000
        unavoidable = [self._unavoidable(turn) for turn in range(tally.count)]
        self._still_to_come = [*accumulate(reversed(unavoidable), initial=0)][::-1]

    def _unavoidable(self, turn: int) -> int:
        """Return what a turn costs in any schedule: its output, its new tokens, and the tail behind tools and system."""
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
        """Return the layer after a turn's call: what already costs more than a known schedule is given up."""
        after = Step(self.tally, layer, turn).result()
        after.costs[after.costs > self._most - self._still_to_come[turn + 1]] = NEVER
        return after.trimmed()

    def _acts(self, last: Layer, stored: dict[int, Layer]) -> tuple[Act, ...]:
        """Walk back from the cheapest end, finding at each turn what led there."""
        state = last.cheapest()
        acts: list[Act] = []
        until = self.tally.count
        for start in sorted(stored, reverse=True):
            layers = [stored[start]]
            for turn in range(start, until):
                layers.append(self.step(layers[-1], turn))
            for turn in reversed(range(start, until)):
                cost = layers[turn - start + 1].cost(state)
                state, action = self._led_to(state, cost, layers[turn - start], turn)
                if action is not None:
                    acts.append(Act(turn=turn, action=action))
            until = start
        return tuple(reversed(acts))

    def _led_to(self, then: State, cost: int, layer: Layer, turn: int) -> tuple[State, Action | None]:
        """Return a state and an action that lead to `then` at `cost`; the costs are exact, so one of three does."""
        candidates: tuple[tuple[State | None, Action | None], ...] = (
            (then, None),
            (before_prune(self.tally, layer, then, turn), Prune(upto=then.pruned)),
            (before_summary(self.tally, layer, then, turn), Summarise(upto=then.summarised)),
        )
        for state, action in candidates:
            before = NEVER if state is None else layer.cost(state)
            if state and before < NEVER and before + self.tally.call(turn, state, action) == cost:
                return state, action
        raise AssertionError(f"nothing leads to {then} at turn {turn}")
