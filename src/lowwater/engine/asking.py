"""Asking one summarizer for at most so long; whatever it does, the answer is an outcome."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from inspect import isawaitable, iscoroutinefunction
from queue import Empty, SimpleQueue

from msgspec.structs import replace

from lowwater.compact.summary.sanitize import as_label, whole_characters
from lowwater.engine.effects import Failure, Outcome
from lowwater.errors import SummaryFailed
from lowwater.ports import AsyncSummarizer, Summarizer
from lowwater.values.summaries import SummaryRequest, Written
from lowwater.values.usage import Usage


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
