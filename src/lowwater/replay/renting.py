"""Rent-or-buy on a course: the live engine's rule (`economics.rent`) with the declared actions at the tail's edge."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from msgspec import Struct

from lowwater.core.costs.rent import Meter, Offer, Outlook, choose
from lowwater.replay.course import SHARE, Action, Prune, State, Summarise, after
from lowwater.replay.tally import LOST_BY_ELISION, Integers, Tally, fade

_ACTIONS: Mapping[str, Callable[..., Action]] = {"prune": Prune, "summarise": Summarise}


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
                is_ripe=outlook.is_ripe(saves=read * (size - left), price=price, usual=price + above),
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
