"""Sinks for events that need no other package, memory hooks, and usage warnings."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from lowwater.core.events import Compaction, Event, Skip, TurnRecord
from lowwater.core.policies.warnings import Level, UsageWarning
from lowwater.protocols import MemoryHook, Sink

_log = logging.getLogger("lowwater")
_SEVERITY: dict[Level, int] = {
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "critical": logging.CRITICAL,
}


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


class ConsoleSink:
    """Prints each compaction to standard error: what triggered it, what each phase did, and which one it is.

    Only where a person watches who has not set up logging: then the lines are the log's, and are not said twice.
    """

    def record(self, session: str, event: Event, /) -> None:
        """Print a few lines."""
        if isinstance(event, Compaction) and sys.stderr.isatty() and not _log.hasHandlers():
            sys.stderr.write("".join(f"{line}\n" for line in phases_of(session, event)))


class SessionLogSink:
    """Writes a log file for each session into a directory: compactions, skips and calls; numbers only, never contents."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def record(self, session: str, event: Event, /) -> None:
        """Write one line about an event."""
        said = line_for(event) if isinstance(event, Compaction) else skip_line_for(event)
        self._write(session, event.at, said)

    def turn(self, session: str, record: TurnRecord, /) -> None:
        """Write one line about a call."""
        self._write(session, record.at, turn_line_for(record))

    def _write(self, session: str, at: float, said: str) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        when = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
        with (self._directory / f"{quote(session, safe=' ')}.log").open("a", encoding="utf-8") as file:
            file.write(f"{when} {said}\n")


def phases_of(session: str, event: Compaction) -> list[str]:
    """Return a compaction in lines: what triggered it and how far it came, then what each phase removed."""
    head = (
        f"lowwater: {session}: compaction {event.number} ({event.because.code}): "
        f"{event.before:,} → {event.after:,} tokens, {event.items_before:,} → {event.items_after:,} messages"
    )
    lines = [head, *(f"  {phase.mechanism}: −{phase.removed:,} tokens" for phase in event.phases)]
    if event.summarizer:
        lines.append(f"  summary: {event.summary_tokens:,} tokens by {event.summarizer}")
    return lines


def turn_line_for(record: TurnRecord) -> str:
    """Say on one line what a call was: its model, its tokens, and what it cost."""
    usage = record.usage
    if usage is None:
        return f"call to {record.model}: no usage reported"
    return (
        f"call to {record.model}: {usage.prompt:,} prompt tokens ({usage.cache_read:,} read from cache), "
        f"{usage.output:,} output"
    )


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


def announce(
    hooks: Iterable[MemoryHook], session: str, messages: Sequence[object], *, seconds: float
) -> None:
    """Hand the view to every hook and have it flush what it gathered, if it can; wait for all of them for `seconds`.

    One that fails is logged by the kind of its error. One that is not done in time goes on by itself, on a thread that keeps
    nobody from leaving, while the turn goes on without it; those behind it are told all the same.
    """
    until = time.monotonic() + seconds
    for hook in hooks:
        context = copy_context()
        thread = threading.Thread(
            target=context.run, args=(_told, hook, session, messages), name="lowwater-hook", daemon=True
        )
        thread.start()
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            _log.warning(
                "%s: a memory hook was not done within the turn's deadline and is left behind: %s",
                session,
                type(hook).__name__,
            )


def _told(hook: MemoryHook, session: str, messages: Sequence[object]) -> None:
    try:
        hook.on_pre_compress(messages)
        flush = getattr(hook, "flush", None)
        if callable(flush):
            flush()
    except BaseException as error:  # noqa: BLE001  # a memory must never stop a compaction, nor may its exit
        _log.warning("%s: a memory hook failed before a compaction: %s", session, type(error).__name__)


def tell_doubt(why: str, session: str, *, quiet: bool) -> None:
    """Log that a provider's usage is not believed, unless `quiet`; the answer is kept all the same."""
    if not quiet:
        _log.warning(
            "%s: the usage that the provider reported is not believed and left out: %s. This is said once.",
            session,
            why,
        )


def tell_warnings(
    warnings: Sequence[UsageWarning],
    session: str,
    *,
    call: Callable[[UsageWarning], object] | None,
    quiet: bool,
) -> None:
    """Log the last of the warnings that are due at once, the most urgent, unless `quiet`; and hand each to `call`.

    All of them say the same sentence, and only a program can tell their levels apart. A callback that fails is logged by the
    kind of its error.
    """
    for warning in warnings[-1:] if not quiet else ():
        _log.log(_SEVERITY[warning.level], "%s: %s", session, warning.sentence)
    if call is None:
        return
    for warning in warnings:
        try:
            call(warning)
        except Exception as error:  # noqa: BLE001  # a warning must never make a turn fail
            _log.warning("the warning callback failed: %s", type(error).__name__)
