"""How long a turn took, told by whoever has a clock."""

from typing import TypeVar

from msgspec.structs import replace

from lowwater.engine.commit import Acted
from lowwater.engine.turn import Prepared
from lowwater.values.events import Compaction, Event

T = TypeVar("T", Prepared, Acted)


def timed(result: T, seconds: float) -> T:
    """Return what a turn came to with `seconds` in every compaction it tells of."""
    events: tuple[Event, ...] = tuple(
        replace(event, seconds=seconds) if isinstance(event, Compaction) else event for event in result.events
    )
    last = next((event for event in reversed(events) if isinstance(event, Compaction)), result.state.last)
    return replace(result, events=events, state=replace(result.state, last=last))
