"""Sinks that need nothing: a list in memory, a function, the standard log."""

import logging
from collections.abc import Callable, Iterable

from lowwater.ports import Sink
from lowwater.values.events import Compaction, Event, Skip
from lowwater.values.turn_record import TurnRecord

_log = logging.getLogger("lowwater")


class MemorySink:
    """Keeps every event, for tests and for looking back."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Event]] = []

    def record(self, session: str, event: Event, /) -> None:
        """Keep the event."""
        self.events.append((session, event))


class CallbackSink:
    """Hands every event to a function."""

    def __init__(self, call: Callable[[str, Event], object]) -> None:
        self._call = call

    def record(self, session: str, event: Event, /) -> None:
        """Call the function."""
        self._call(session, event)


class LogSink:
    """Writes compactions to the log `lowwater` at info and skips at debug; numbers only, never contents."""

    def record(self, session: str, event: Event, /) -> None:
        """Write one line."""
        match event:
            case Compaction():
                _log.info("%s: %s", session, line_for(event))
            case Skip():
                _log.debug("%s: %s", session, skip_line_for(event))


def line_for(event: Compaction) -> str:
    """Say on one line which compaction it is, what triggered it, what each phase did, and what is left."""
    done = ", ".join(f"{phase.mechanism} −{phase.removed:,}" for phase in event.phases)
    by = f"; summary of {event.summary_tokens:,} tokens by {event.summarizer}" if event.summarizer else ""
    return (
        f"compaction {event.number} ({event.because.code}): {event.before:,} → {event.after:,} tokens, "
        f"{event.items_before:,} → {event.items_after:,} messages ({done}){by}"
        f"{_rejected(event)}; {event.seconds:.2f} s"
    )


def skip_line_for(event: Skip) -> str:
    """Say on one line why a view was left as it is: reason, size and what was compared."""
    facts = ", ".join(f"{name} {fact}" for name, fact in event.because.facts.items())
    return f"kept {event.prompt:,} tokens ({event.because.code}: {facts}){_rejected(event)}"


def _rejected(event: Event) -> str:
    """Say which summaries were not accepted as they were; how much they miss, and never what."""
    told = [f"{each.by} ({each.code}, {each.missing:,} references missing)" for each in event.rejected]
    return f"; not accepted as written: {', '.join(told)}" if told else ""


def tell(sinks: Iterable[Sink], session: str, event: Event) -> None:
    """Give an event to every sink; one that fails is logged by the kind of its error and changes nothing."""
    for sink in sinks:
        try:
            sink.record(session, event)
        except Exception as error:  # noqa: BLE001  # telling must never make a compaction fail
            _log.warning("a sink failed: %s", type(error).__name__)


def tell_turn(sinks: Iterable[Sink], session: str, record: TurnRecord) -> None:
    """Give the record of a turn to every sink that takes one, likewise."""
    for sink in sinks:
        take = getattr(sink, "turn", None)
        if callable(take):
            try:
                take(session, record)
            except Exception as error:  # noqa: BLE001  # telling must never make a turn fail
                _log.warning("a sink failed: %s", type(error).__name__)
