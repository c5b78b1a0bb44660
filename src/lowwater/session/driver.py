"""Drives a turn: a sync and an async driver fulfil what it asks for, under a deadline."""

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


def ask(summarizer: Summarizer, request: SummaryRequest, seconds: float) -> Outcome:
    """Return what the summarizer made of the request; one that is not done after `seconds` is left behind."""
    if seconds <= 0:
        return _too_late()
    answers: SimpleQueue[object] = SimpleQueue()
    bounded = replace(request, within=seconds)
    _on_thread(lambda: _called(summarizer, bounded), answers.put)
    try:
        return _checked(answers.get(timeout=seconds))
    except Empty:
        return _too_late()


async def aask(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest, seconds: float) -> Outcome:
    """Do what `ask` does without blocking the event loop; a summarizer that only knows how to block gets a thread."""
    if seconds <= 0:
        return _too_late()
    # A summarizer may swallow its cancellation: it is told to stop, and nobody waits until it does.
    task = asyncio.ensure_future(_answered(summarizer, replace(request, within=seconds)))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            return _too_late()
        return Failure(kind="failed", said="cancelled") if task.cancelled() else _checked(task.result())
    finally:
        task.cancel()


def is_async(summarizer: Summarizer | AsyncSummarizer) -> bool:
    """Return whether the summarizer has to be awaited."""
    return iscoroutinefunction(summarizer.summarize)


async def _answered(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> object:
    try:
        answer: object = (
            summarizer.summarize(request) if is_async(summarizer) else _threaded(summarizer, request)
        )
        while isawaitable(answer):
            answer = await answer
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it raises is a failed summary, never a failed turn
        return _failure(error)
    return answer


def _threaded(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> "asyncio.Future[object]":
    """Return a future of the answer; unlike the loop's own threads this one keeps nobody from leaving."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def deliver(answer: object) -> None:
        if not future.done():
            future.set_result(answer)

    def hand_over(answer: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, answer)

    _on_thread(lambda: _called(summarizer, request), hand_over)
    return future


def _on_thread(work: Callable[[], object], deliver: Callable[[object], object]) -> None:
    threading.Thread(target=lambda: deliver(work()), name="lowwater-summarizer", daemon=True).start()


def _called(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> object:
    try:
        return summarizer.summarize(request)
    except BaseException as error:  # noqa: BLE001  # on its thread even an exit only means that there is no summary
        return _failure(error)


def _checked(answer: object) -> Outcome:
    """Return the answer if it is one: a summarizer may return anything."""
    match answer:
        case Written(text=str(), by=str(), model=str(), block=bytes(), usage=Usage() | None):
            # A signed block is judged by what it says, and that has to be what it says.
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
    """Return the failure an error means; only errors made for it may speak, others may quote a message."""
    if isinstance(error, SummaryFailed):
        spent = error.spent if isinstance(error.spent, Usage) else None
        return Failure(kind=error.kind, said=str(error), usage=spent)
    unreachable = isinstance(error, ConnectionError | TimeoutError)
    return Failure(kind="network" if unreachable else "failed", said=type(error).__name__)


def _too_late() -> Failure:
    return Failure(kind="timeout", said="no summary in time")


T = TypeVar("T")


class Driver:
    """What one turn is driven with: `deadline` is how many seconds it may wait for summarizers and hooks, all together.

    `riding` gives the request that a summary can be asked for by extending, or one that ends behind the first so many items
    of the view; `announce` is told before each compaction, and how many seconds are left for that.
    """

    def __init__(
        self,
        *,
        deadline: float,
        clock: Clock,
        riding: Callable[[Ledger | None, int], CachedPrefix | None] = lambda _, __: None,
        announce: Callable[[Ledger, float], None] = lambda _, __: None,
    ) -> None:
        self._riding = riding
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
                with self._waiting():
                    outcome = ask(summarizers[effect.rung], self._request(effect), effect.share * self._left)
                return self._stamped(outcome)
            case Announce():
                with self._waiting():
                    return self._announce(effect.ledger, max(0.0, self._left))
            case Perform():
                return effect.call()

    async def _afulfil(self, effect: Effect, summarizers: Sequence[Summarizer | AsyncSummarizer]) -> object:
        match effect:
            case Summarize():
                with self._waiting():
                    outcome = await aask(
                        summarizers[effect.rung], self._request(effect), effect.share * self._left
                    )
                return self._stamped(outcome)
            case Announce():
                with self._waiting():
                    return await asyncio.to_thread(self._announce, effect.ledger, max(0.0, self._left))
            case Perform():
                return await asyncio.to_thread(effect.call)

    def _request(self, effect: Summarize) -> SummaryRequest:
        request = shown_to_others(effect.request)
        if not effect.rides and not effect.upto:
            return request
        return replace(request, riding=self._riding(effect.ledger, effect.upto))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._left -= time.monotonic() - start

    def _stamped(self, outcome: Outcome) -> Outcome:
        return replace(outcome, at=self._clock.now()) if isinstance(outcome, Failure) else outcome


P = TypeVar("P", Prepared, Acted)


def timed(result: P, seconds: float) -> P:
    """Return what a turn came to with `seconds` in every compaction it tells of."""
    events: tuple[Event, ...] = tuple(
        replace(event, seconds=seconds) if isinstance(event, Compaction) else event for event in result.events
    )
    last = next((event for event in reversed(events) if isinstance(event, Compaction)), result.state.last)
    return replace(result, events=events, state=replace(result.state, last=last))


def spent_on(seen: State, result: P) -> int | None:
    """Return what the summaries of a turn on `seen` cost, in nano-dollars; None if that is not known.

    It is what its compactions were billed, with what is left for a later one and without what was paid ahead.
    """
    total = result.state.ahead
    for event in result.events:
        total = both(total, event.cost) if isinstance(event, Compaction) else total
    return None if total is None or seen.ahead is None else total - seen.ahead


def booked(result: P, spent: int | None) -> P:
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
