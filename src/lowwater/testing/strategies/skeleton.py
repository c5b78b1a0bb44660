"""The skeleton of a legal conversation: who speaks when, which calls are made and answered."""

from typing import Literal

from hypothesis import strategies as st
from msgspec import Struct

_ROUNDS = st.sampled_from(((), (1,), (2,), (1, 1), (3, 1)))
_EXCHANGES = st.lists(st.tuples(_ROUNDS, st.booleans()), min_size=1, max_size=3)


class Slot(Struct, frozen=True, kw_only=True):
    """A place for one message: the model's may make calls, a tool slot answers all of them."""

    speaker: Literal["user", "model", "tools"]
    call_ids: tuple[str, ...] = ()


def skeletons() -> st.SearchStrategy[list[Slot]]:
    """Return a strategy for conversations in which every call is answered; they end wherever a request may be sent."""
    return _EXCHANGES.map(_slots)


def _slots(exchanges: list[tuple[tuple[int, ...], bool]]) -> list[Slot]:
    slots: list[Slot] = []
    for number, (rounds, answered) in enumerate(exchanges):
        slots.append(Slot(speaker="user"))
        for at, calls in enumerate(rounds):
            ids = tuple(f"call_{number}-{at}{'abc'[call]}" for call in range(calls))
            slots += [Slot(speaker="model", call_ids=ids), Slot(speaker="tools", call_ids=ids)]
        is_last = number == len(exchanges) - 1
        if answered or not (rounds or is_last):
            slots.append(Slot(speaker="model"))
    return slots
