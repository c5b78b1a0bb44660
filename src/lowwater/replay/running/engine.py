"""Where the sessions of a run are worked on: in this process, in others of this machine, or wherever an engine puts them."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Protocol

from lowwater.errors import BadSetting
from lowwater.replay.running.results import SessionResult
from lowwater.replay.running.session import Task

Work = Callable[[Task], SessionResult]
"""What is done with each task: a function that can be found by its name in another process."""

AHEAD = 2
"""Tasks that wait for each worker, so that a corpus need not fit into memory."""


class Engine(Protocol):
    """Does the same work on many tasks."""

    def map(self, work: Work, tasks: Iterable[Task], /) -> Iterator[SessionResult]:
        """Yield the results as they come, in any order; tasks are taken from the iterable only as they are needed."""
        ...


class LocalEngine:
    """All cores of this machine, one session at a time each; with one worker, this process alone."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise BadSetting(f"{workers} workers make no sense: at least one is needed")
        self.workers = workers or cores()

    def map(self, work: Work, tasks: Iterable[Task], /) -> Iterator[SessionResult]:
        """Yield the results as they come; leaving early ends the workers."""
        if self.workers == 1:
            yield from map(work, tasks)
            return
        pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_end_quietly)
        try:
            yield from _as_they_come(pool, work, iter(tasks), self.workers * AHEAD)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_quietly() -> None:
    """Let an interrupt end a worker at once; what it was working on is not done, and nobody needs its traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _as_they_come(
    pool: ProcessPoolExecutor, work: Work, tasks: Iterator[Task], ahead: int
) -> Iterator[SessionResult]:
    running: set[Future[SessionResult]] = set()
    for task in tasks:
        running.add(pool.submit(work, task))
        if len(running) >= ahead:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)
