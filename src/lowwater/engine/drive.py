"""Fulfilling a turn's effects: a summarizer is asked under a deadline, on a thread or awaited."""

import asyncio
import threading
from collections.abc import Awaitable, Generator, Sequence
from inspect import isawaitable
from queue import Empty, SimpleQueue
from typing import TypeVar

from lowwater.engine.effects import Failure, Outcome, Summarize
from lowwater.errors import LowwaterError, SummaryFailed
from lowwater.ports import AsyncSummarizer, Summarizer
from lowwater.values.summaries import SummaryRequest, Written

T = TypeVar("T")


def drive(turn: Generator[Summarize, Outcome, T], summarizers: Sequence[Summarizer], deadline: float) -> T:
    """Run a turn to its end; a summarizer that is not done after `deadline` seconds is left behind."""
    try:
        effect = next(turn)
        while True:
            effect = turn.send(_ask(summarizers[effect.rung], effect.request, deadline))
    except StopIteration as done:
        result: T = done.value
        return result


async def adrive(
    turn: Generator[Summarize, Outcome, T],
    summarizers: Sequence[Summarizer | AsyncSummarizer],
    deadline: float,
) -> T:
    """Run a turn to its end without blocking the event loop; a summarizer that only knows how to block gets a thread."""
    try:
        effect = next(turn)
        while True:
            effect = turn.send(await _await(summarizers[effect.rung], effect.request, deadline))
    except StopIteration as done:
        result: T = done.value
        return result


def _ask(summarizer: Summarizer, request: SummaryRequest, deadline: float) -> Outcome:
    answers: SimpleQueue[Outcome] = SimpleQueue()

    def work() -> None:
        answers.put(_outcome(summarizer, request))

    threading.Thread(target=work, name="lowwater-summarizer", daemon=True).start()
    try:
        return answers.get(timeout=deadline)
    except Empty:
        return Failure(kind="timeout", said=f"no summary within {deadline:g} seconds")


async def _await(
    summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest, deadline: float
) -> Outcome:
    try:
        async with asyncio.timeout(deadline):
            if asyncio.iscoroutinefunction(summarizer.summarize):
                answer = summarizer.summarize(request)
                assert isawaitable(answer)
                return await _awaited(answer)
            return await asyncio.to_thread(_outcome, summarizer, request)  # type: ignore[arg-type]  # not the async one
    except TimeoutError:
        return Failure(kind="timeout", said=f"no summary within {deadline:g} seconds")


async def _awaited(answer: Awaitable[Written]) -> Outcome:
    try:
        return await answer
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a summarizer raises is a failed summary, never a failed turn
        return _failure(error)


def _outcome(summarizer: Summarizer, request: SummaryRequest) -> Outcome:
    try:
        return summarizer.summarize(request)
    except Exception as error:  # noqa: BLE001  # whatever a summarizer raises is a failed summary, never a failed turn
        return _failure(error)


def _failure(error: Exception) -> Failure:
    if isinstance(error, SummaryFailed):
        return Failure(kind=error.kind, said=str(error))
    if isinstance(error, ConnectionError | TimeoutError):
        return Failure(kind="network", said=type(error).__name__)
    return Failure(
        kind="failed", said=str(error) if isinstance(error, LowwaterError) else type(error).__name__
    )
