"""Compactions that a provider makes by itself: asked for as an offer, followed where they come unasked, undone for other models."""

from msgspec.structs import replace

from lowwater.compact import native, summarize
from lowwater.compact.propose import Asked, survey
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.thinking import unbind
from lowwater.values.entries import Compacted
from lowwater.values.native_block import newest_block
from lowwater.values.proposal import Proposal
from lowwater.values.view import Summary, stands_of


def native_rung(state: State, setup: Setup, at: float) -> int | None:
    """Return the summarizer whose provider can be asked to compact this session by itself; None if none can.

    It has to be the session's own model: only the one that reads the block again can vouch for what it stands for. Where
    summaries compete they have to be comparable, and none is asked for that cannot be mended.
    """
    competing = setup.settings.compression.competing_summaries
    if competing or not reads_blocks(state, setup) or not state.standing.asks_for_blocks(at):
        return None
    for rung in setup.native:
        writer = setup.summary_models[rung] if rung < setup.rungs else None
        if writer is not None and writer.name == state.model.name:
            return rung
    return None


def reads_blocks(state: State, setup: Setup) -> bool:
    """Return whether the model in use takes signed blocks back, and the settings say that calls carry what that needs."""
    spoken = state.format in (None, "anthropic") and state.model.provider == "anthropic"
    return setup.settings.model.native_compaction and state.model.compacts and spoken


def native_offer(asked: Asked) -> Proposal | None:
    """Return the offer to have the provider compact everything before the tail; None if that is no gain."""
    return native.propose(tuple(asked.items), survey(asked).zones, block_tokens=expected_summary(asked))


def expected_summary(asked: Asked) -> int:
    """Return how long a summary of everything before the tail is to be expected, as counted."""
    compression, replaced = asked.settings.compression, asked.items[: survey(asked).zones.tail]
    return summarize.budget(
        replaced,
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=summarize.usual(replaced, most=asked.counted(asked.limits.summary)),
    )


def follow_native(state: State, setup: Setup, at: float) -> State:
    """Let the provider's newest compaction block stand for what came before it, where it came in an answer.

    Nobody says whether thinking behind such a block is bound to what the provider left out, so that it counts as unbound.
    """
    items = state.ledger.view.items
    kept = native.absorb(items, setup.making(offers_recall=state.offers_recall))
    if kept is None:
        return state
    entry = Compacted(at=at, mechanisms=(native.NAME,), stands=stands_of(kept))
    holder = items[newest_block([item.message for item in items]) or 0]
    assert not isinstance(holder, Summary), (
        "a block that was asked for stands first, with nothing to absorb before it"
    )
    return unbind(replace(state, ledger=state.ledger.append(entry)), after=holder.number - 1)


def tell_in_words(state: State, setup: Setup, at: float) -> State:
    """Put what the block at the start of the view says in its place, where the model in use cannot read blocks.

    That takes no call, and what the block stood for is what the text stands for. Thinking behind it was bound to the block.
    """
    items = state.ledger.view.items
    if native.own_block(items) is None or reads_blocks(state, setup):
        return state
    kept = native.as_text(items, setup.making(offers_recall=state.offers_recall))
    entry = Compacted(at=at, mechanisms=(native.AS_TEXT,), stands=stands_of(kept))
    return unbind(replace(state, ledger=state.ledger.append(entry)), after=0)
