"""What a turn spent that has to be taken again: the summaries were paid all the same."""

from typing import TypeVar

from msgspec.structs import replace

from lowwater.engine.commit import Acted
from lowwater.engine.turn import Prepared
from lowwater.values.events import Compaction

T = TypeVar("T", Prepared, Acted)


def spent_on(result: T) -> int | None:
    """Return what the summaries of a turn cost, in nano-dollars; None if that is not known."""
    costs = [event.cost for event in result.events if isinstance(event, Compaction)]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def booked(result: T, spent: int | None) -> T:
    """Return a turn with what was spent in vain before it: in the totals, and in the compaction it came to, if any."""
    if spent == 0:
        return result
    events = list(result.events)
    at = next((at for at, event in enumerate(events) if isinstance(event, Compaction)), None)
    if at is not None:
        event = events[at]
        assert isinstance(event, Compaction)
        known = spent is not None and event.cost is not None
        events[at] = replace(event, cost=(event.cost or 0) + (spent or 0) if known else None)
    state = replace(result.state, totals=result.state.totals.paid(spent, for_summaries=True))
    return replace(result, state=state, events=tuple(events))
