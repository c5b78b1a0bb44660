"""Policies restricted to the declared actions, and what a course costs under one of them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lowwater.core.costs.rent import Meter, Offer, Outlook, choose
from lowwater.core.policies.guarded import guard_leaf
from lowwater.lab.course import SHARE, Act, Action, Course, Prune, Sheet, State, Summarise, after
from lowwater.settings import LeafSettings

Integers = npt.NDArray[np.int64]
LOST_BY_ELISION = 150_000
"""The share of expected uses, in millionths, that the digest left by an elision does not serve."""
_YOUNG = 5
_ACTIONS: Mapping[str, Callable[..., Action]] = {"prune": Prune, "summarise": Summarise}
RUNWAY = 0.15
EXPECTED = 30
"""Calls the exact gate expects a compaction to serve."""


class Tally:
    """A course measured under a price sheet; `whole[i]` and `short[i]` are the tokens of the turns before i."""

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
        """Return the last edge an action may have: what is behind it is the tail, which shrinks only to fit the wall."""
        end = int(self.whole[turn + 1])
        edge = int(np.searchsorted(self.whole[: turn + 1], end - self.course.tail, side="right")) - 1
        room = self.sheet.wall - self.course.fixed - self.sheet.summary
        fits = int(np.searchsorted(self.whole[: turn + 1], end - room, side="left"))
        return min(turn, max(0, edge, fits if end > room else 0))

    def size(self, turn: int, state: State) -> int:
        """Return the size of the prompt at a turn's call."""
        summary = self.sheet.summary if state.summarised else 0
        short = self.short[state.pruned] - self.short[state.summarised]
        return int(self.course.fixed + summary + short + self.whole[turn + 1] - self.whole[state.pruned])

    def kept(self, state: State) -> int:
        """Return how many tokens at the start of the prompt a further prune leaves as they are."""
        summary = self.sheet.summary if state.summarised else 0
        return int(self.course.fixed + summary + self.short[state.pruned] - self.short[state.summarised])

    def call(self, turn: int, state: State, action: Action | None) -> int:
        """Return what a turn costs, its output and rework included, if `action` is taken before it in `state`."""
        output = self.sheet.output * self.course.turns[turn].output
        return self.prompt(turn, state, action) + output + self.rework(turn, after(state, action))

    def prompt(self, turn: int, state: State, action: Action | None) -> int:
        """Return what a turn's prompt costs, with the request for a summary if `action` needs one."""
        sheet, size = self.sheet, self.size(turn, after(state, action))
        asked = self.asking(turn, state, action.upto) if isinstance(action, Summarise) else 0
        if self.cold[turn]:
            return asked + sheet.write * size
        hit = self._hit(turn, state, action)
        return asked + sheet.read * hit + sheet.write * (size - hit)

    def _hit(self, turn: int, state: State, action: Action | None) -> int:
        if action is None:
            return self.size(turn - 1, state)
        return self.course.fixed if isinstance(action, Summarise) else self.kept(state)

    def asking(self, turn: int, state: State, upto: int) -> int:
        """Return what the request for a summary costs: riding the last request, or by another model."""
        sheet = self.sheet
        rate = sheet.input if self.cold[turn] else sheet.read
        riding = (
            rate * self.size(turn - 1, state) + sheet.input * sheet.instruction + sheet.output * sheet.summary
        )
        covered = self.covered(state, upto) + sheet.instruction
        return min(riding, sheet.other_input * covered + sheet.other_output * sheet.summary)

    def covered(self, state: State, upto: int) -> int:
        """Return the tokens of the view that a summary up to an edge would replace."""
        elided = min(state.pruned, upto)
        old = self.sheet.summary if state.summarised else 0
        short = self.short[elided] - self.short[state.summarised]
        return int(old + short + self.whole[upto] - self.whole[elided])

    def rework(self, turn: int, state: State) -> int:
        """Return what this turn's uses of things no longer in view cost."""
        by_elision, by_summary = self.lost(turn)
        uses, tokens = by_elision[:, state.pruned] + by_summary[:, state.summarised]
        return int((self.sheet.read * self.size(turn, state) * uses + self.sheet.write * tokens) // SHARE)

    def lost(self, turn: int) -> tuple[Integers, Integers]:
        """Return uses and tokens lost at a turn, in millionths by edge: to elision, and to a summary beside that."""
        return self._rework[0][turn], self._rework[1][turn]


def fade(age: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the share of a result's uses still to come after so many calls, beside those after five."""
    return np.sqrt(_YOUNG / np.maximum(_YOUNG, np.asarray(age, np.float64)))


def _sums(values: list[int]) -> Integers:
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64))).astype(np.int64)


def _expected(chances: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    count = len(chances)
    ages = np.arange(count)[:, None] - np.arange(count)[None, :]
    uses = np.where(ages > 0, np.rint(chances * (fade(ages - 1) - fade(ages))), 0).astype(np.int64)
    every = _by_edge(np.stack([uses, uses * sizes], axis=1))
    by_elision = every * LOST_BY_ELISION // SHARE
    return by_elision, every - by_elision


def _recorded(course: Course) -> tuple[Integers, Integers]:
    count = len(course.turns)
    lost = np.zeros((2, count, 2, count), np.int64)
    for use in course.uses or ():
        lost[int(use.in_digest), use.at, 0, use.of] += SHARE
        lost[int(use.in_digest), use.at, 1, use.of] += SHARE * use.tokens
    return _by_edge(lost[0]), _by_edge(lost[1])


def _by_edge(lost: Integers) -> Integers:
    """Return sums over the turns before each edge, with the edge last."""
    before = np.zeros((*lost.shape[:-1], 1), np.int64)
    return np.concatenate((before, np.cumsum(lost, axis=-1)), axis=-1)


class _Sums(Struct, frozen=True, kw_only=True):
    """Tokens of the turns before each edge times the meter's reading when they left the tail."""

    whole: list[int]
    short: list[int]


class RentOrBuy:
    """Buys an offer when the rent paid on what it removes has reached its price, rework included, or waiting is in vain."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._meter = Meter()
        self._weighed = _Sums(whole=[0], short=[0])

    def __call__(self, turn: int, state: State) -> Action | None:
        """Return what to buy before the call of a turn, and let what is outside the tail pay for the call."""
        tally = self._tally
        chosen = choose(self.offers(turn, state))
        self._meter = self._meter.advance(tally.sheet.write if tally.cold[turn] else tally.sheet.read)
        return _ACTIONS[chosen.name](upto=tally.edges[turn]) if chosen else None

    def offers(self, turn: int, state: State) -> Iterator[Offer]:
        """Yield the actions that would make the view smaller, each with its rent and its price."""
        tally, size = self._tally, self._tally.size(turn, state)
        self._leave_tail(tally.edges[turn])
        kept = tally.prompt(turn, state, None)
        outlook, above = self._outlook(turn), self._usually_above(turn)
        read = tally.sheet.read
        for name, kind in _ACTIONS.items():
            action = kind(upto=tally.edges[turn])
            then = after(state, action)
            left = tally.size(turn, then)
            if action.upto <= state.summarised or left >= size:
                continue
            price = tally.prompt(turn, state, action) - kept + self._rework(turn, state, then, left)
            yield Offer(
                name=name,
                rent=self._rent(action, state),
                price=price,
                after=price + outlook.calls * read * left,
                should_buy_early=outlook.should_buy_early(
                    saves=read * (size - left), price=price, usual=price + above
                ),
                wait=outlook.wait(saves=read * (size - left), price=self._risk(turn, state, action, price)),
            )

    def _risk(self, turn: int, state: State, action: Action, price: int) -> int:
        """Return what an action that is not free costs if all of the prompt before is in the cache after all."""
        tally, sheet = self._tally, self._tally.sheet
        if price <= 0 or not tally.cold[turn]:
            return price
        sent = tally.size(turn - 1, state) if turn else 0
        kept = min(sent, tally.course.fixed if isinstance(action, Summarise) else tally.kept(state))
        return price + max(0, sheet.write - sheet.read) * (sent - kept)

    def _outlook(self, turn: int) -> Outlook:
        """Return what is to be expected at a turn: the calls there were, and turns like those that have left the tail."""
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
        """Let the turns before an edge start to pay."""
        tally, weighed = self._tally, self._weighed
        for left in range(len(weighed.whole), edge + 1):
            turn = tally.course.turns[left - 1]
            weighed.whole.append(weighed.whole[-1] + turn.whole * self._meter.total)
            weighed.short.append(weighed.short[-1] + (turn.text + turn.elided) * self._meter.total)

    def _rent(self, action: Action, state: State) -> int:
        """Return what the tokens that an action removes have paid, undivided; a first summary puts a share of them back."""
        whole = self._paid(self._tally.whole, self._weighed.whole, state.pruned, action.upto)
        elided = self._paid(self._tally.short, self._weighed.short, state.pruned, action.upto)
        if isinstance(action, Prune):
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

    def _rework(self, turn: int, state: State, then: State, size: int) -> int:
        """Return what later uses of what an action takes out of view are expected to cost.

        A session is expected to go on for as many calls as it has had; uses after that are not reckoned with.
        """
        tally, sheet = self._tally, self._tally.sheet
        edge = max(then.pruned, then.summarised)
        lost = np.zeros(edge)
        lost[state.pruned : then.pruned] = LOST_BY_ELISION / SHARE
        lost[state.summarised : then.summarised] += 1 - LOST_BY_ELISION / SHARE
        age = turn - np.arange(edge)
        soon = fade(age) - fade(age + turn)
        uses = lost * tally.chances[:edge] * soon / SHARE
        return round(float(sheet.read * size * uses.sum() + sheet.write * (uses @ tally.sizes[:edge])))


class Policy(Protocol):
    """Decides before every call of one course; asked once a turn, in order."""

    def __call__(self, turn: int, state: State, /) -> Action | None:
        """Return what to do before the call of a turn."""
        ...


class Run(Struct, frozen=True, kw_only=True):
    """A course under a policy: its cost in nano-dollars, and what was done; no cost if it did not fit the wall."""

    cost: int | None
    acts: tuple[Act, ...]


def run(tally: Tally, policy: Policy) -> Run:
    """Return what a course costs under a policy; above the wall, where it does nothing, a summary is forced."""
    state, cost, acts = State(), 0, []
    for turn in range(tally.count):
        action = policy(turn, state) if tally.edges[turn] else None
        if tally.size(turn, after(state, action)) > tally.sheet.wall:
            action = Summarise(upto=tally.edges[turn])
        if action is not None:
            acts.append(Act(turn=turn, action=action))
        cost += tally.call(turn, state, action)
        state = after(state, action)
        if tally.size(turn, state) > tally.sheet.wall:
            return Run(cost=None, acts=tuple(acts))
    return Run(cost=cost // 1_000, acts=tuple(acts))


def never(_tally: Tally) -> Policy:
    """Nothing before the wall."""
    return lambda _turn, _state: None


def threshold(share: float) -> Callable[[Tally], Policy]:
    """A summary of all but the tail at a share of the window."""

    def made(tally: Tally) -> Policy:
        """At a share of the window, a summary of all but the tail."""

        def decide(turn: int, state: State) -> Action | None:
            return _summary(tally, turn, state) if _is_at(tally, turn, state, share) else None

        return decide

    return made


def runway(tally: Tally) -> Policy:
    """At half of the window a prune, or a summary where that would leave less than 15 % of the window free below it."""

    def decide(turn: int, state: State) -> Action | None:
        if not _is_at(tally, turn, state, 0.5):
            return None
        prune = Prune(upto=tally.edges[turn])
        pruned = tally.size(turn, after(state, prune))
        is_enough = pruned <= (0.5 - RUNWAY) * tally.sheet.window
        return prune if is_enough else _summary(tally, turn, state)

    return decide


def rolling_mask(tally: Tally) -> Policy:
    """All results outside the tail are elided before every call."""

    def decide(turn: int, state: State) -> Action | None:
        return Prune(upto=tally.edges[turn]) if tally.edges[turn] > state.pruned else None

    return decide


def leaf_guards(tally: Tally) -> Policy:
    """A pass over the oldest chunk when the guards of lossless-claw's PR 306 let it through."""
    leaf = LeafSettings()

    def decide(turn: int, state: State) -> Action | None:
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


def exact_gate(tally: Tally) -> Policy:
    """Whatever saves most over the next 30 calls, as soon as it saves anything; it knows no rework."""

    def decide(turn: int, state: State) -> Action | None:
        edge, best, most = tally.edges[turn], None, 0
        kept = tally.prompt(turn, state, None)
        for action in (Prune(upto=edge), Summarise(upto=edge)):
            then = after(state, action)
            if then == state or then.summarised < state.summarised:
                continue
            saved = tally.size(turn, state) - tally.size(turn, then)
            net = EXPECTED * tally.sheet.read * saved + kept - tally.prompt(turn, state, action)
            best, most = (action, net) if net > most else (best, most)
        return best

    return decide


POLICIES: Mapping[str, Callable[[Tally], Policy]] = {
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
    """Return what a course costs under a named policy."""
    tally = Tally(course, sheet)
    return run(tally, POLICIES[policy](tally)).cost


def _is_at(tally: Tally, turn: int, state: State, share: float) -> bool:
    return tally.size(turn, state) >= share * tally.sheet.window


def _summary(tally: Tally, turn: int, state: State) -> Action | None:
    return Summarise(upto=tally.edges[turn]) if tally.edges[turn] > state.summarised else None
