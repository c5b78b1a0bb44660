"""Sinks that need no other package, and the delivery of events, memory hooks and usage warnings."""

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
from lowwater.core.limits import Level, UsageWarning
from lowwater.protocols import MemoryHook, Sink

_log = logging.getLogger("lowwater")
_SEVERITY: dict[Level, int] = {
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "critical": logging.CRITICAL,
}


class MemorySink:
    """Keeps every event in memory, for tests and inspection."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Event]] = []

    def record(self, session: str, event: Event, /) -> None:
        """Keep the event."""
        self.events.append((session, event))


class CallbackSink:
    """Passes every event to a function."""

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

    Only on a terminal, and only if logging is not set up: the log has the same lines.
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
        line = line_for(event) if isinstance(event, Compaction) else skip_line_for(event)
        self._write(session, event.at, line)

    def turn(self, session: str, record: TurnRecord, /) -> None:
        """Write one line about a call."""
        self._write(session, record.at, turn_line_for(record))

    def _write(self, session: str, at: float, line: str) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        when = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
        with (self._directory / f"{quote(session, safe=' ')}.log").open("a", encoding="utf-8") as file:
            file.write(f"{when} {line}\n")


def phases_of(session: str, event: Compaction) -> list[str]:
    """Return a compaction in lines: what triggered it and its result, then what each phase removed."""
    head = (
        f"lowwater: {session}: compaction {event.number} ({event.because.code}): "
        f"{event.before:,} → {event.after:,} tokens, {event.items_before:,} → {event.items_after:,} messages"
    )
    lines = [head, *(f"  {phase.mechanism}: −{phase.removed:,} tokens" for phase in event.phases)]
    if event.summarizer:
        lines.append(f"  summary: {event.summary_tokens:,} tokens by {event.summarizer}")
    return lines


def turn_line_for(record: TurnRecord) -> str:
    """Return one line about a call: its model and its tokens."""
    usage = record.usage
    if usage is None:
        return f"call to {record.model}: no usage reported"
    return (
        f"call to {record.model}: {usage.prompt:,} prompt tokens ({usage.cache_read:,} read from cache), "
        f"{usage.output:,} output"
    )


def line_for(event: Compaction) -> str:
    """Return one line about a compaction: its number, what triggered it, what each phase did, and what is left."""
    done = ", ".join(f"{phase.mechanism} −{phase.removed:,}" for phase in event.phases)
    by = f"; summary of {event.summary_tokens:,} tokens by {event.summarizer}" if event.summarizer else ""
    return (
        f"compaction {event.number} ({event.because.code}): {event.before:,} → {event.after:,} tokens, "
        f"{event.items_before:,} → {event.items_after:,} messages ({done}){by}"
        f"{_rejected(event)}; {event.seconds:.2f} s"
    )


def skip_line_for(event: Skip) -> str:
    """Return one line about a skip: reason, size and what was compared."""
    facts = ", ".join(f"{name} {fact}" for name, fact in event.because.facts.items())
    return f"kept {event.prompt:,} tokens ({event.because.code}: {facts}){_rejected(event)}"


def _rejected(event: Event) -> str:
    """Return which summaries were not accepted as written; how many references they miss, never which."""
    told = [f"{each.by} ({each.code}, {each.missing:,} references missing)" for each in event.rejected]
    return f"; not accepted as written: {', '.join(told)}" if told else ""


def send_event(sinks: Iterable[Sink], session: str, event: Event) -> None:
    """Pass an event to every sink; a failure is logged by the type of its error and has no other effect."""
    for sink in sinks:
        try:
            sink.record(session, event)
        except Exception as error:  # noqa: BLE001  # telling must never make a compaction fail
            _log.warning("a sink failed: %s", type(error).__name__)


def send_turn(sinks: Iterable[Sink], session: str, record: TurnRecord) -> None:
    """Pass the record of a turn to every sink that has a method `turn`; failures are logged likewise."""
    for sink in sinks:
        take = getattr(sink, "turn", None)
        if callable(take):
            try:
                take(session, record)
            except Exception as error:  # noqa: BLE001  # telling must never make a turn fail
                _log.warning("a sink failed: %s", type(error).__name__)


def run_memory_hooks(
    hooks: Iterable[MemoryHook], session: str, messages: Sequence[object], *, seconds: float
) -> None:
    """Pass the view to every hook and have it flush, if it can; wait at most `seconds` for all of them together.

    A failure is logged by the type of its error. A hook that is not done in time is left running on a daemon thread while the
    turn goes on; the hooks after it are called all the same.
    """
    until = time.monotonic() + seconds
    for hook in hooks:
        context = copy_context()
        thread = threading.Thread(
            target=context.run, args=(_run_hook, hook, session, messages), name="lowwater-hook", daemon=True
        )
        thread.start()
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            _log.warning(
                "%s: a memory hook was not done within the turn's deadline and is left behind: %s",
                session,
                type(hook).__name__,
            )


def _run_hook(hook: MemoryHook, session: str, messages: Sequence[object]) -> None:
    try:
        hook.on_pre_compress(messages)
        flush = getattr(hook, "flush", None)
        if callable(flush):
            flush()
    except BaseException as error:  # noqa: BLE001  # a memory must never stop a compaction, nor may its exit
        _log.warning("%s: a memory hook failed before a compaction: %s", session, type(error).__name__)


def hook_additions(
    hooks: Iterable[MemoryHook], session: str, messages: Sequence[object], *, seconds: float
) -> tuple[str, ...]:
    """Return the texts that hooks want in the view after a compaction; those that fail or are too slow add nothing."""
    until = time.monotonic() + seconds
    added: list[str] = []
    for hook in hooks:
        answers: list[object] = []
        context = copy_context()
        thread = threading.Thread(
            target=context.run,
            args=(_ask_hook, hook, session, messages, answers),
            name="lowwater-hook",
            daemon=True,
        )
        thread.start()
        thread.join(max(0.0, until - time.monotonic()))
        added += _texts(list(answers), hook, session)
    return tuple(added)


def _ask_hook(hook: MemoryHook, session: str, messages: Sequence[object], answers: list[object]) -> None:
    try:
        answers.append(getattr(hook, "on_post_compress")(messages))  # noqa: B009 - optional, so no part of the protocol
    except BaseException as error:  # noqa: BLE001  # a memory must never stop a turn, nor may its exit
        _log.warning("%s: a memory hook failed after a compaction: %s", session, type(error).__name__)


def _texts(answers: Sequence[object], hook: MemoryHook, session: str) -> list[str]:
    """Return the texts in a hook's answer: None, one text, or a list of texts."""
    answer = answers[0] if answers else None
    given: list[object] = (
        list(answer) if isinstance(answer, list | tuple) else [] if answer is None else [answer]
    )
    if not all(isinstance(text, str) for text in given):
        _log.warning(
            "%s: %s.on_post_compress returned something that is no text, which is left out",
            session,
            type(hook).__name__,
        )
    return [text for text in given if isinstance(text, str) and text.strip()]


def log_implausible_usage(why: str, session: str, *, quiet: bool) -> None:
    """Log that a provider's reported usage is implausible and ignored, unless `quiet`; the answer is recorded all the same."""
    if not quiet:
        _log.warning(
            "%s: the usage that the provider reported is not believed and left out: %s. This is said once.",
            session,
            why,
        )


def log_unread_fields(names: Sequence[str], session: str, *, quiet: bool) -> None:
    """Log what else of an answer could not be read and is left out, unless `quiet`; the answer is recorded all the same."""
    if not quiet:
        _log.warning(
            "%s: the provider's answer is recorded without what cannot be read: %s. This is said once.",
            session,
            ", ".join(names),
        )


def send_warnings(
    warnings: Sequence[UsageWarning],
    session: str,
    *,
    call: Callable[[UsageWarning], object] | None,
    quiet: bool,
) -> None:
    """Log the most urgent of the warnings, which is the last, unless `quiet`; and pass each of them to `call`.

    All of them have the same sentence and differ only in their level. If the callback fails, the type of its error is logged.
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
