"""A compaction that the provider made in its answer: the view follows it."""

from msgspec.structs import replace

from lowwater.compact import native
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.thinking import unbind
from lowwater.values.entries import Compacted
from lowwater.values.view import Summary, stands_of


def follow_native(state: State, setup: Setup, at: float) -> State:
    """Let the provider's newest compaction block stand for what came before it.

    Nobody says whether thinking behind the block is bound to what the provider left out, so that it counts as unbound.
    """
    items = state.ledger.view.items
    kept = native.absorb(items, setup.making(offers_recall=state.offers_recall))
    if kept is None:
        return state
    entry = Compacted(at=at, mechanisms=(native.NAME,), stands=stands_of(kept))
    holder = items[native.newest_block([item.message for item in items]) or 0]
    assert not isinstance(holder, Summary), "a summary is text"
    return unbind(replace(state, ledger=state.ledger.append(entry)), after=holder.number - 1)
