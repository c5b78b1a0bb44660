"""Drives a turn: a blocking and an async driver carry out the effects it yields, under one deadline.

A summarizer may hang, raise anything or return anything: what comes of it is always an `Outcome`, never a failed turn.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from inspect import isawaitable, iscoroutinefunction
from queue import Empty, SimpleQueue
from typing import TypeVar

from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction, Event
from lowwater.core.ledger import Ledger
from lowwater.core.summary.request import CachedPrefix, SummaryRequest, Written
from lowwater.core.summary.safety import as_label, shown_to_others, whole_characters
from lowwater.core.turns.commit import Acted
from lowwater.core.turns.costs import both
from lowwater.core.turns.effects import Announce, Effect, Failure, Outcome, Perform, Steps, Summarize
from lowwater.core.turns.state import State
from lowwater.core.turns.turn import Prepared
from lowwater.errors import SummaryFailed
from lowwater.protocols import AsyncSummarizer, Clock, Summarizer

T = TypeVar("T")

P = TypeVar("P", Prepared, Acted)


class Driver:
    """Drives one turn; `deadline` is how many seconds it may wait for summarizers and hooks, all together.

    `cached_prefix(ledger, upto)` returns the request that a summary can be asked for by extending it: the one sent last for
    `upto=0`, else one that ends after the first `upto` items of the view. `announce(ledger, seconds)` is called before each
    compaction, with the seconds that are left for it.
    """

    def __init__(
        self,
        *,
        deadline: float,
        clock: Clock,
        cached_prefix: Callable[[Ledger | None, int], CachedPrefix | None] = lambda _, __: None,
        announce: Callable[[Ledger, float], None] = lambda _, __: None,
    ) -> None:
        self._cached_prefix = cached_prefix
        self._announce = announce
        self._left = deadline
        self._clock = clock

    def drive(self, turn: Steps[T], summarizers: Sequence[Summarizer]) -> T:
        """Run a turn to its end."""
        try:
            effect = next(turn)
            while True:
                effect = turn.send(self._fulfil(effect, summarizers))
        except StopIteration as done:
            result: T = done.value
            return result

    async def adrive(self, turn: Steps[T], summarizers: Sequence[Summarizer | AsyncSummarizer]) -> T:
        """Run a turn to its end without blocking the event loop."""
        try:
            effect = next(turn)
            while True:
                effect = turn.send(await self._afulfil(effect, summarizers))
        except StopIteration as done:
            result: T = done.value
            return result

    def _fulfil(self, effect: Effect, summarizers: Sequence[Summarizer]) -> object:
        match effect:
            case Summarize():
                with self._on_the_clock():
                    outcome = ask(summarizers[effect.rung], self._request(effect), effect.share * self._left)
                return self._with_time(outcome)
            case Announce():
                with self._on_the_clock():
                    return self._announce(effect.ledger, max(0.0, self._left))
            case Perform():
                return effect.call()

    async def _afulfil(self, effect: Effect, summarizers: Sequence[Summarizer | AsyncSummarizer]) -> object:
        match effect:
            case Summarize():
                with self._on_the_clock():
                    outcome = await aask(
                        summarizers[effect.rung], self._request(effect), effect.share * self._left
                    )
                return self._with_time(outcome)
            case Announce():
                with self._on_the_clock():
                    return await asyncio.to_thread(self._announce, effect.ledger, max(0.0, self._left))
            case Perform():
                return await asyncio.to_thread(effect.call)

    def _request(self, effect: Summarize) -> SummaryRequest:
        """Return the request as its summarizer gets it: without secrets, and with the cached prefix if it extends that."""
        request = shown_to_others(effect.request)
        if not effect.rides and not effect.upto:
            return request
        return replace(request, riding=self._cached_prefix(effect.ledger, effect.upto))

    @contextmanager
    def _on_the_clock(self) -> Iterator[None]:
        """Take the time that the block needs from what is left of the deadline."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._left -= time.monotonic() - start

    def _with_time(self, outcome: Outcome) -> Outcome:
        return replace(outcome, at=self._clock.now()) if isinstance(outcome, Failure) else outcome


def ask(summarizer: Summarizer, request: SummaryRequest, seconds: float) -> Outcome:
    """Return what the summarizer answers within `seconds`; after that it is abandoned on its thread and counts as failed."""
    if seconds <= 0:
        return _timed_out()
    answers: SimpleQueue[object] = SimpleQueue()
    bounded = replace(request, within=seconds)
    _start_thread(lambda: _call(summarizer, bounded), answers.put)
    try:
        return _validated(answers.get(timeout=seconds))
    except Empty:
        return _timed_out()


async def aask(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest, seconds: float) -> Outcome:
    """Do what `ask` does without blocking the event loop; a blocking summarizer runs on a thread."""
    if seconds <= 0:
        return _timed_out()
    # A summarizer may swallow its cancellation, so the task is cancelled and not awaited.
    task = asyncio.ensure_future(_acall(summarizer, replace(request, within=seconds)))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            return _timed_out()
        return Failure(kind="failed", said="cancelled") if task.cancelled() else _validated(task.result())
    finally:
        task.cancel()


def is_async(summarizer: Summarizer | AsyncSummarizer) -> bool:
    """Return whether the summarizer has to be awaited."""
    return iscoroutinefunction(summarizer.summarize)


async def _acall(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> object:
    try:
        answer: object = (
            summarizer.summarize(request) if is_async(summarizer) else _call_on_thread(summarizer, request)
        )
        while isawaitable(answer):
            answer = await answer
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it raises is a failed summary, never a failed turn
        return _failure(error)
    return answer


def _call_on_thread(
    summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest
) -> "asyncio.Future[object]":
    """Return a future of the answer; unlike the loop's own executor threads, this one does not delay the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def deliver(answer: object) -> None:
        if not future.done():
            future.set_result(answer)

    def hand_over(answer: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, answer)

    _start_thread(lambda: _call(summarizer, request), hand_over)
    return future


def _start_thread(work: Callable[[], object], deliver: Callable[[object], object]) -> None:
    threading.Thread(target=lambda: deliver(work()), name="lowwater-summarizer", daemon=True).start()


def _call(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> object:
    try:
        return summarizer.summarize(request)
    except BaseException as error:  # noqa: BLE001  # on this thread even SystemExit only means that there is no summary
        return _failure(error)


def _validated(answer: object) -> Outcome:
    """Return the answer with its texts cleaned, or a failure if it is not a summary."""
    match answer:
        case Written(text=str(), by=str(), model=str(), block=bytes(), usage=Usage() | None):
            # The text of a signed block has to stay as the provider signed it.
            text = answer.text if answer.block else whole_characters(answer.text)
            return replace(answer, text=text, by=as_label(answer.by), model=as_label(answer.model))
        case Failure():
            return replace(answer, said=as_label(answer.said))
        case Coroutine():
            answer.close()
            return Failure(kind="failed", said="the summarizer has to be awaited")
        case _:
            return Failure(kind="failed", said=f"the summarizer returned a {type(answer).__name__}")


def _failure(error: BaseException) -> Failure:
    """Return the failure an error means; of errors other than SummaryFailed only the type is told, for they may quote a message."""
    if isinstance(error, SummaryFailed):
        spent = error.spent if isinstance(error.spent, Usage) else None
        return Failure(kind=error.kind, said=str(error), usage=spent)
    unreachable = isinstance(error, ConnectionError | TimeoutError)
    return Failure(kind="network" if unreachable else "failed", said=type(error).__name__)


def _timed_out() -> Failure:
    return Failure(kind="timeout", said="no summary in time")


def with_duration(result: P, seconds: float) -> P:
    """Return the result of a turn with `seconds` as the duration of its compactions."""
    events: tuple[Event, ...] = tuple(
        replace(event, seconds=seconds) if isinstance(event, Compaction) else event for event in result.events
    )
    last = next((event for event in reversed(events) if isinstance(event, Compaction)), result.state.last)
    return replace(result, events=events, state=replace(result.state, last=last))


def summary_spending(seen: State, result: P) -> int | None:
    """Return what a turn on the state `seen` spent on summaries, in nano-dollars; None if that is not known.

    `State.ahead` is what was spent and not yet charged to a compaction: what the turn adds to it counts, what it found does not.
    """
    total = result.state.ahead
    for event in result.events:
        total = both(total, event.cost) if isinstance(event, Compaction) else total
    return None if total is None or seen.ahead is None else total - seen.ahead


def with_wasted_spending(result: P, spent: int | None) -> P:
    """Return a turn with what earlier attempts at it spent on summaries that were not used.

    It is added to the totals and charged to the turn's first compaction, or to the next one if the turn made none.
    """
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
