"""What any view of a course measures and what each call of it costs, by prefix sums.

Costs are tokens times prices, undivided: a thousandth of a nano-dollar, exact in 64 bits.
"""

import numpy as np
import numpy.typing as npt

from lowwater.replay.course import SHARE, Action, Course, Sheet, State, Summarise, after

Integers = npt.NDArray[np.int64]
LOST_BY_ELISION = 150_000
"""The share of expected uses, in millionths, that the digest left by an elision does not serve."""
_YOUNG = 5


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
