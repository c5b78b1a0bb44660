"""What a turn spent that has to be taken again: the summaries were paid all the same."""

from typing import TypeVar

from msgspec.structs import replace

from lowwater.engine.billing import both
from lowwater.engine.commit import Acted
from lowwater.engine.state import State
from lowwater.engine.turn import Prepared
from lowwater.values.events import Compaction

T = TypeVar("T", Prepared, Acted)


def spent_on(seen: State, result: T) -> int | None:
    """Return what the summaries of a turn on `seen` cost, in nano-dollars; None if that is not known.

    It is what its compactions were billed, with what is left for a later one and without what was paid ahead.
    """
    total = result.state.ahead
    for event in result.events:
        total = both(total, event.cost) if isinstance(event, Compaction) else total
    return None if total is None or seen.ahead is None else total - seen.ahead


def booked(result: T, spent: int | None) -> T:
    """Return a turn with what was spent in vain before it: in the totals, and in the compaction it came to, or will."""
    if spent == 0:
        return result
    events = list(result.events)
    at = next((at for at, event in enumerate(events) if isinstance(event, Compaction)), None)
    state = replace(result.state, totals=result.state.totals.paid(spent, for_summaries=True))
    if at is None:
        state = replace(state, ahead=both(state.ahead, spent))
    else:
        event = events[at]
        assert isinstance(event, Compaction)
        events[at] = replace(event, cost=both(event.cost, spent))
    return replace(result, state=state, events=tuple(events))
