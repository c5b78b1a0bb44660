"""Thinking that a model binds to what stood before it: gone once that has changed.

A provider can be asked to drop such blocks itself (`thinking.block_binding` at Anthropic), but only in a beta and with
adaptive thinking. Its model then sees what it sees when they are stripped here, while the request still carries them; so
they are stripped for every model that binds, and a client that asks for dropping gets its wish passed on.
"""

from msgspec.structs import replace

from lowwater.compact.reasoning import strip_behind
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.values.entries import Compacted
from lowwater.values.view import Summary, stands_of


def unbind(state: State, *, after: int) -> State:
    """Remember that thinking in messages numbered above `after` was thought behind a prefix that is gone."""
    if not state.binds_thinking:
        return state
    return replace(state, unbound=after if state.unbound is None else min(after, state.unbound))


def strip_unbound(state: State, setup: Setup, at: float) -> State:
    """Take thinking that its model would refuse out of the view."""
    if state.unbound is None:
        return state
    items = state.ledger.view.items
    first = next(
        (
            index
            for index, item in enumerate(items)
            if not isinstance(item, Summary) and item.number > state.unbound
        ),
        len(items),
    )
    kept = strip_behind(items, first, setup.making(offers_recall=state.offers_recall))
    state = replace(state, unbound=None)
    if all(old is new for old, new in zip(items, kept, strict=True)):
        return state
    entry = Compacted(at=at, mechanisms=("reasoning",), stands=stands_of(kept))
    return replace(state, ledger=state.ledger.append(entry))
