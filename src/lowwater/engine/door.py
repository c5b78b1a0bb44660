"""Very large tool results are shortened before they first enter the prompt, so that no later rewrite is needed (SPEC M)."""

from msgspec.structs import replace

from lowwater.compact import shorten
from lowwater.engine.setup import Setup
from lowwater.engine.situate import limits_for
from lowwater.engine.state import State
from lowwater.values.entries import Compacted
from lowwater.values.view import Original, stands_of


def shorten_new(state: State, setup: Setup, at: float) -> State:
    """Shorten the results that came since the last answer and are above the insertion limit.

    Only where the request offers recall, or the prompt would not fit otherwise.
    """
    settings = setup.settings.tool_results
    limits = limits_for(state, setup)
    limit = min(int(settings.insertion_limit_ratio * limits.context), settings.insertion_limit_tokens)
    if limit <= 0 or not (state.offers_recall or state.prompt > limits.wall):
        return state
    items = state.ledger.view.items
    counted = int(limit / state.calibration.scale)
    start = len(items)
    while (
        start > 0 and isinstance(items[start - 1], Original) and items[start - 1].message.role != "assistant"
    ):
        start -= 1
    making = setup.making(offers_recall=state.offers_recall)
    proposal = shorten.propose(items, range(start, len(items)), making, limit=counted)
    if proposal is None:
        return state
    shorter = shorten.apply(items, proposal, making, limit=counted)
    entry = Compacted(at=at, mechanisms=(shorten.NAME,), stands=stands_of(shorter))
    return replace(state, ledger=state.ledger.append(entry))
