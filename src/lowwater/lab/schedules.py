"""Policies limited to the declared actions (prune, summarise), and the cost of a course under them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lowwater.core.buy_rule import Offer, Outlook, best_of, weighed
from lowwater.core.costs.losses import LOST_BY_ELISION, LOST_BY_SUMMARY
from lowwater.core.costs.prices import Meter
from lowwater.core.mechanisms.reuse import YOUNG
from lowwater.core.policies.guarded import guard_leaf
from lowwater.lab.course import (
    SHARE,
    Action,
    Course,
    CourseAction,
    CoursePrune,
    CourseState,
    Sheet,
    Summarise,
    after,
)
from lowwater.settings import LeafSettings

Integers = npt.NDArray[np.int64]
RUNWAY = 0.15
EXPECTED = 30
"""The number of later calls for which the exact gate expects a compaction to pay."""


class Tally:
    """Sums over a course under a price sheet; `whole[i]` and `short[i]` are the full and elided tokens of the turns before i."""

    def __init__(self, course: Course, sheet: Sheet) -> None:
        self.course, self.sheet = course, sheet
        self.count = len(course.turns)
        self.whole = _sums([turn.whole for turn in course.turns])
        self.short = _sums([turn.text + turn.elided for turn in course.turns])
        self.cold = [not index or turn.gap > sheet.ttl for index, turn in enumerate(course.turns)]
        self.edges = [self._edge(index) for index in range(self.count)]
        self.chances = np.array([turn.chance for turn in course.turns], np.int64)
        self.sizes = np.array([turn.results for turn in course.turns], np.int64)
        self._rework = _expected(self.chances, self.sizes) if course.uses is None else _recorded(course)

    def _edge(self, turn: int) -> int:
        """Return the last edge up to which an action may reach: the tail after it shrinks only to fit the wall."""
        end = int(self.whole[turn + 1])
        edge = int(np.searchsorted(self.whole[: turn + 1], end - self.course.tail, side="right")) - 1
        room = self.sheet.wall - self.course.fixed - self.sheet.summary
        fits = int(np.searchsorted(self.whole[: turn + 1], end - room, side="left"))
        return min(turn, max(0, edge, fits if end > room else 0))

    def size(self, turn: int, state: CourseState) -> int:
        """Return the tokens of the prompt at a turn's call."""
        summary = self.sheet.summary if state.summarised else 0
        short = self.short[state.pruned] - self.short[state.summarised]
        return int(self.course.fixed + summary + short + self.whole[turn + 1] - self.whole[state.pruned])

    def kept(self, state: CourseState) -> int:
        """Return the tokens at the start of the prompt that a further prune leaves unchanged."""
        summary = self.sheet.summary if state.summarised else 0
        return int(self.course.fixed + summary + self.short[state.pruned] - self.short[state.summarised])

    def call(self, turn: int, state: CourseState, action: Action | None) -> int:
        """Return the cost of a turn, including output and rework, if `action` is taken before it in `state`."""
        output = self.sheet.output * self.course.turns[turn].output
        return self.prompt(turn, state, action) + output + self.rework(turn, after(state, action))

    def prompt(self, turn: int, state: CourseState, action: Action | None) -> int:
        """Return the cost of a turn's prompt, with the summary request if `action` needs one."""
        sheet, size = self.sheet, self.size(turn, after(state, action))
        asked = self.asking(turn, state, action.upto) if isinstance(action, Summarise) else 0
        if self.cold[turn]:
            return asked + sheet.write * size
        hit = self._hit(turn, state, action)
        return asked + sheet.read * hit + sheet.write * (size - hit)

    def _hit(self, turn: int, state: CourseState, action: Action | None) -> int:
        if action is None:
            return self.size(turn - 1, state)
        return self.course.fixed if isinstance(action, Summarise) else self.kept(state)

    def asking(self, turn: int, state: CourseState, upto: int) -> int:
        """Return the cost of a summary request: on the cached prefix, or by another model, whichever is cheaper."""
        sheet = self.sheet
        rate = sheet.input if self.cold[turn] else sheet.read
        extended = (
            rate * self.size(turn - 1, state) + sheet.input * sheet.instruction + sheet.output * sheet.summary
        )
        covered = self.covered(state, upto) + sheet.instruction
        return min(extended, sheet.other_input * covered + sheet.other_output * sheet.summary)

    def covered(self, state: CourseState, upto: int) -> int:
        """Return the tokens that a summary up to an edge would replace."""
        elided = min(state.pruned, upto)
        old = self.sheet.summary if state.summarised else 0
        short = self.short[elided] - self.short[state.summarised]
        return int(old + short + self.whole[upto] - self.whole[elided])

    def rework(self, turn: int, state: CourseState) -> int:
        """Return the cost of recalling what this turn uses and the view no longer shows."""
        by_elision, by_summary = self.lost(turn)
        uses, tokens = by_elision[:, state.pruned] + by_summary[:, state.summarised]
        return int((self.sheet.read * self.size(turn, state) * uses + self.sheet.write * tokens) // SHARE)

    def lost(self, turn: int) -> tuple[Integers, Integers]:
        """Return the uses and tokens lost at a turn, in millionths by edge: to elision, and additionally to a summary."""
        return self._rework[0][turn], self._rework[1][turn]


def fade(age: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the share of a result's uses still to come after so many calls, beside those after five."""
    return np.sqrt(YOUNG / np.maximum(YOUNG, np.asarray(age, np.float64)))


def _sums(values: list[int]) -> Integers:
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64))).astype(np.int64)


def _expected(chances: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    count = len(chances)
    ages = np.arange(count)[:, None] - np.arange(count)[None, :]
    uses = np.where(ages > 0, np.rint(chances * (fade(ages - 1) - fade(ages))), 0).astype(np.int64)
    every = _by_edge(np.stack([uses, uses * sizes], axis=1))
    by_elision, by_summary = (
        every * round(lost * SHARE) // SHARE for lost in (LOST_BY_ELISION, LOST_BY_SUMMARY)
    )
    return by_elision, by_summary - by_elision


def _recorded(course: Course) -> tuple[Integers, Integers]:
    count = len(course.turns)
    lost = np.zeros((2, count, 2, count), np.int64)
    for use in course.uses or ():
        lost[int(use.in_digest), use.at, 0, use.of] += SHARE
        lost[int(use.in_digest), use.at, 1, use.of] += SHARE * use.tokens
    return _by_edge(lost[0]), _by_edge(lost[1])


def _by_edge(lost: Integers) -> Integers:
    """Return sums over the turns before each edge, with the edge as last axis."""
    before = np.zeros((*lost.shape[:-1], 1), np.int64)
    return np.concatenate((before, np.cumsum(lost, axis=-1)), axis=-1)


class _Sums(Struct, frozen=True, kw_only=True):
    """Tokens of the turns before each edge times the meter's reading when they left the tail."""

    whole: list[int]
    short: list[int]


class CourseOffer(Offer, frozen=True, kw_only=True):
    """An action on offer; amounts in thousandths of a nano-dollar."""

    action: Action


class RentOrBuy:
    """Buys an action when the rent paid on what it removes has reached its price, including rework, or when waiting cannot pay."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._meter = Meter()
        self._weighed = _Sums(whole=[0], short=[0])

    def __call__(self, turn: int, state: CourseState) -> Action | None:
        """Return the action to buy before a turn's call, and charge rent for this call to everything outside the tail."""
        tally = self._tally
        best = best_of(self.offers(turn, state))
        self._meter = self._meter.advance(tally.sheet.write if tally.cold[turn] else tally.sheet.read)
        return best.action if best is not None and best.is_due else None

    def offers(self, turn: int, state: CourseState) -> Iterator[CourseOffer]:
        """Yield the actions that would shrink the view, each with the rent paid and its price."""
        tally, size = self._tally, self._tally.size(turn, state)
        self._leave_tail(tally.edges[turn])
        kept = tally.prompt(turn, state, None)
        outlook, above = self._outlook(turn), self._usually_above(turn)
        for action in (CoursePrune(upto=tally.edges[turn]), Summarise(upto=tally.edges[turn])):
            then = after(state, action)
            left = tally.size(turn, then)
            if action.upto <= state.summarised or left >= size:
                continue
            price = tally.prompt(turn, state, action) - kept + self._rework(turn, state, then, left)
            offer = CourseOffer(
                action=action,
                removes=size - left,
                rent=self._rent(action, state),
                price=price,
                saves=tally.sheet.read * (size - left),
            )
            yield weighed(offer, outlook, usual=price + above, worst=self._risk(turn, state, action, price))

    def _risk(self, turn: int, state: CourseState, action: Action, price: int) -> int:
        """Return the cost of an action that is not free if the whole previous prompt is cached after all."""
        tally, sheet = self._tally, self._tally.sheet
        if price <= 0 or not tally.cold[turn]:
            return price
        sent = tally.size(turn - 1, state) if turn else 0
        kept = min(sent, tally.course.fixed if isinstance(action, Summarise) else tally.kept(state))
        return price + max(0, sheet.write - sheet.read) * (sent - kept)

    def _outlook(self, turn: int) -> Outlook:
        """Return the expectation at a turn: as many calls as there were, with turns like those that left the tail."""
        return Outlook(calls=turn, growth=self._tally.sheet.read * self._mean_turn(turn))

    def _usually_above(self, turn: int) -> int:
        """Return by how much a purchase usually costs more than at a turn: there is less of the tail to write again now.

        At most calls all of the tail is in the cache but for what the call itself adds.
        """
        tally, sheet = self._tally, self._tally.sheet
        edge = tally.edges[turn]
        cached = 0 if tally.cold[turn] else max(0, int(tally.whole[turn] - tally.whole[edge]))
        return (sheet.write - sheet.read) * max(0, tally.course.tail - self._mean_turn(turn) - cached)

    def _mean_turn(self, turn: int) -> int:
        edge = self._tally.edges[turn]
        return int(self._tally.whole[edge]) // edge

    def _leave_tail(self, edge: int) -> None:
        """Start charging rent to the turns before an edge."""
        tally, weighed = self._tally, self._weighed
        for left in range(len(weighed.whole), edge + 1):
            turn = tally.course.turns[left - 1]
            weighed.whole.append(weighed.whole[-1] + turn.whole * self._meter.total)
            weighed.short.append(weighed.short[-1] + (turn.text + turn.elided) * self._meter.total)

    def _rent(self, action: Action, state: CourseState) -> int:
        """Return the rent paid by the tokens that an action removes, in thousandths of a nano-dollar; a first summary puts a share of them back."""
        whole = self._paid(self._tally.whole, self._weighed.whole, state.pruned, action.upto)
        elided = self._paid(self._tally.short, self._weighed.short, state.pruned, action.upto)
        if isinstance(action, CoursePrune):
            return whole - elided
        rent = whole + self._paid(
            self._tally.short, self._weighed.short, state.summarised, min(state.pruned, action.upto)
        )
        covered = self._tally.covered(state, action.upto)
        summary = self._tally.sheet.summary
        return rent if state.summarised else rent * max(0, covered - summary) // max(covered, 1)

    def _paid(self, sums: Integers, weighed: list[int], start: int, end: int) -> int:
        if end <= start:
            return 0
        return self._meter.total * int(sums[end] - sums[start]) - (weighed[end] - weighed[start])

    def _rework(self, turn: int, state: CourseState, then: CourseState, size: int) -> int:
        """Return what later uses of what an action takes out of view are expected to cost.

        A session is expected to go on for as many calls as it has had; uses after that are not reckoned with.
        """
        tally, sheet = self._tally, self._tally.sheet
        edge = max(then.pruned, then.summarised)
        lost = np.zeros(edge)
        lost[state.pruned : then.pruned] = LOST_BY_ELISION
        lost[state.summarised : then.summarised] += LOST_BY_SUMMARY - LOST_BY_ELISION
        age = turn - np.arange(edge)
        soon = fade(age) - fade(age + turn)
        uses = lost * tally.chances[:edge] * soon / SHARE
        return round(float(sheet.read * size * uses.sum() + sheet.write * (uses @ tally.sizes[:edge])))


class SchedulePolicy(Protocol):
    """Decides before every call of one course; called once per turn, in order."""

    def __call__(self, turn: int, state: CourseState, /) -> Action | None:
        """Return the action before a turn's call, or None."""
        ...


class Run(Struct, frozen=True, kw_only=True):
    """The result of a course under a policy: its cost in nano-dollars and the actions taken; the cost is None if it did not fit."""

    cost: int | None
    acts: tuple[CourseAction, ...]


def run(tally: Tally, policy: SchedulePolicy) -> Run:
    """Run a course under a policy; if the policy leaves a prompt above the wall, a summary is forced."""
    state, cost, acts = CourseState(), 0, []
    for turn in range(tally.count):
        action = policy(turn, state) if tally.edges[turn] else None
        if tally.size(turn, after(state, action)) > tally.sheet.wall:
            action = Summarise(upto=tally.edges[turn])
        if action is not None:
            acts.append(CourseAction(turn=turn, action=action))
        cost += tally.call(turn, state, action)
        state = after(state, action)
        if tally.size(turn, state) > tally.sheet.wall:
            return Run(cost=None, acts=tuple(acts))
    return Run(cost=cost // 1_000, acts=tuple(acts))


def never(_tally: Tally) -> SchedulePolicy:
    """No action before the wall."""
    return lambda _turn, _state: None


def threshold(share: float) -> Callable[[Tally], SchedulePolicy]:
    """A summary of all but the tail at a share of the window."""

    def made(tally: Tally) -> SchedulePolicy:
        """At a share of the window, a summary of all but the tail."""

        def decide(turn: int, state: CourseState) -> Action | None:
            return _summary(tally, turn, state) if _is_at(tally, turn, state, share) else None

        return decide

    return made


def runway(tally: Tally) -> SchedulePolicy:
    """At half of the window a prune, or a summary if a prune would leave less than 15 % of the window as runway."""

    def decide(turn: int, state: CourseState) -> Action | None:
        if not _is_at(tally, turn, state, 0.5):
            return None
        prune = CoursePrune(upto=tally.edges[turn])
        pruned = tally.size(turn, after(state, prune))
        is_enough = pruned <= (0.5 - RUNWAY) * tally.sheet.window
        return prune if is_enough else _summary(tally, turn, state)

    return decide


def rolling_mask(tally: Tally) -> SchedulePolicy:
    """All results outside the tail are elided before every call."""

    def decide(turn: int, state: CourseState) -> Action | None:
        return CoursePrune(upto=tally.edges[turn]) if tally.edges[turn] > state.pruned else None

    return decide


def leaf_guards(tally: Tally) -> SchedulePolicy:
    """A pass over the oldest chunk if the guards of lossless-claw's PR 306 allow it."""
    leaf = LeafSettings()

    def decide(turn: int, state: CourseState) -> Action | None:
        edge, upto = tally.edges[turn], state.summarised
        if edge <= upto:
            return None
        size, raw = tally.size(turn, state), tally.covered(state, edge) - tally.covered(state, upto)
        if not guard_leaf(raw=raw, assembled=size, budget=tally.sheet.wall, leaf=leaf).compacts:
            return None
        first = tally.covered(state, upto)
        while upto < edge and tally.covered(state, upto) - first < leaf.leaf_chunk_tokens:
            upto += 1
        return Summarise(upto=upto)

    return decide


def exact_gate(tally: Tally) -> SchedulePolicy:
    """Whatever saves most over the next 30 calls, as soon as it saves anything; rework is ignored."""

    def decide(turn: int, state: CourseState) -> Action | None:
        edge, best, most = tally.edges[turn], None, 0
        kept = tally.prompt(turn, state, None)
        for action in (CoursePrune(upto=edge), Summarise(upto=edge)):
            then = after(state, action)
            if then == state or then.summarised < state.summarised:
                continue
            saved = tally.size(turn, state) - tally.size(turn, then)
            net = EXPECTED * tally.sheet.read * saved + kept - tally.prompt(turn, state, action)
            best, most = (action, net) if net > most else (best, most)
        return best

    return decide


POLICIES: Mapping[str, Callable[[Tally], SchedulePolicy]] = {
    "never": never,
    "threshold 85 %": threshold(0.85),
    "threshold 50 %": threshold(0.5),
    "runway": runway,
    "rolling mask": rolling_mask,
    "leaf guards": leaf_guards,
    "exact gate": exact_gate,
    "rent-or-buy": RentOrBuy,
}


def cost(course: Course, sheet: Sheet, policy: str) -> int | None:
    """Return the cost of a course under a named policy."""
    tally = Tally(course, sheet)
    return run(tally, POLICIES[policy](tally)).cost


def _is_at(tally: Tally, turn: int, state: CourseState, share: float) -> bool:
    return tally.size(turn, state) >= share * tally.sheet.window


def _summary(tally: Tally, turn: int, state: CourseState) -> Action | None:
    return Summarise(upto=tally.edges[turn]) if tally.edges[turn] > state.summarised else None
