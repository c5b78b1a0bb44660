"""Policies restricted to the declared actions, and what a course costs under one of them."""

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from lowwater.core.policies.guarded import guard_leaf
from lowwater.replay.course import Act, Action, Course, Prune, Sheet, State, Summarise, after
from lowwater.replay.renting import RentOrBuy
from lowwater.replay.tally import Tally
from lowwater.settings import LeafSettings

RUNWAY = 0.15
EXPECTED = 30
"""Calls the exact gate expects a compaction to serve."""


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
