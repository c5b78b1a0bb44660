"""A run: the sessions of a corpus worked on in this process, in others, or on a Ray cluster; resumable."""

import logging
import os
import re
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from lowwater.errors import BadInput, BadSetting, UnreadableFile
from lowwater.lab.replay.on_course import SessionResult
from lowwater.lab.replay.session import VERSION, Options, Task, replay_session
from lowwater.logs.recording import Recording

if TYPE_CHECKING:
    from ray import ObjectRef

Work = Callable[[Task], SessionResult]
"""What is done with each task: a function that can be found by its name in another process."""
AHEAD = 2
"""Tasks that wait for each worker, so that a corpus need not fit into memory."""
_DECIDING = ("lowwater", "msgspec", "numpy", "splintr-rs", "genai-prices")
"""Packages whose versions results may depend on."""
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray would tell its makers of the run
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # and warn of what it will change some day
}
_PLACE = re.compile(r"(?:ray://)?(?P<host>[^/]+):(?P<port>\d+)$")
_MISSING = re.compile(r"No (?:module named|package metadata was found for) '?([\w.-]+)")
_PATIENCE = 5.0
"""Seconds for a cluster to answer; Ray itself would try for minutes."""


class RunFolder:
    """Results by their keys: the same session under other options is another result, and neither gets in the other's way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnreadableFile(f"no results can be kept in {path}: {error.strerror}") from None

    def has(self, key: str) -> bool:
        """Return whether a result is kept that can be read."""
        try:
            self.find(key)
        except UnreadableFile:
            return False
        return True

    def find(self, key: str) -> SessionResult:
        """Return a result that was kept, or raise UnreadableFile."""
        try:
            return msgspec.msgpack.decode(self._file(key).read_bytes(), type=SessionResult)
        except (OSError, msgspec.MsgspecError) as error:
            raise UnreadableFile(f"no result can be read from {self._file(key)}: {error}") from None

    def keep(self, result: SessionResult) -> None:
        """Keep a result; a process that is killed meanwhile leaves none."""
        file = self._file(result.key)
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(msgspec.msgpack.encode(result))
            unfinished.replace(file)
        except OSError as error:
            raise UnreadableFile(f"a result cannot be kept in {self._path}: {error.strerror}") from None

    def _file(self, key: str) -> Path:
        return self._path / f"{key}.result"


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


class Made(Struct, frozen=True, kw_only=True):
    """What results are made with: the same on all machines, or they would not be the same to the byte."""

    results: int
    packages: dict[str, str]


class RayEngine:
    """A Ray cluster, one session at a time on each of its cores; without an address one is started here, and ended again."""

    def __init__(self, address: str = "", *, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise BadSetting(f"{workers} workers make no sense: at least one is needed")
        if find_spec("ray") is None:
            raise BadSetting("a Ray cluster needs the package ray: install lowwater[ray]")
        self._address, self._workers = address, workers

    def map(self, work: Work, tasks: Iterable[Task], /) -> Iterator[SessionResult]:
        """Yield the results as they come; leaving early ends what is still worked on.

        A program that is connected to a cluster already stays so, and its cluster is used.
        """
        import ray  # noqa: PLC0415 (the extra `ray`)

        if ray.is_initialized():
            yield from self._as_they_come(work, tasks)
            return
        try:
            self._connect()
            yield from self._as_they_come(work, tasks)
        finally:
            ray.shutdown()

    def _connect(self) -> None:
        import ray  # noqa: PLC0415

        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        cluster: dict[str, Any] = {"address": self._address}
        if not self._address:
            cluster = {"address": "local", "num_cpus": self._workers or cores(), "include_dashboard": False}
        try:
            _reach(self._address)
            ray.init(**cluster, logging_level=logging.ERROR, log_to_driver=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise BadSetting(f"no Ray cluster at {self._address or 'this machine'}: {error}") from None

    def _as_they_come(self, work: Work, tasks: Iterable[Task]) -> Iterator[SessionResult]:
        import ray  # noqa: PLC0415

        worked, by = ray.remote(work_alike), made_here()
        running: list[ObjectRef[SessionResult]] = []
        try:
            for task in tasks:
                running.append(worked.remote(work, task, by))
                if len(running) >= self._ahead():
                    done, running = ray.wait(running)
                    yield from map(_result, done)
            while running:
                done, running = ray.wait(running)
                yield from map(_result, done)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)

    def _ahead(self) -> int:
        """Return how many tasks the cluster may hold, so that a corpus need not fit into it; one may grow meanwhile."""
        import ray  # noqa: PLC0415

        if self._address and self._workers:
            return self._workers
        there = ray.cluster_resources()  # type: ignore[no-untyped-call] # Ray left it out
        return AHEAD * max(1, int(there.get("CPU", 1)))


def made_here() -> Made:
    """Return what results are made with in this process."""
    return Made(results=VERSION, packages={name: version(name) for name in _DECIDING})


def work_alike(work: Work, task: Task, by: Made) -> SessionResult:
    """Do the work on a machine of the cluster, or raise BadSetting if results could differ from those made by others."""
    here = made_here()
    if here != by:
        differing = [
            f"{name} {here.packages[name]} instead of {wanted}"
            for name, wanted in by.packages.items()
            if here.packages[name] != wanted
        ]
        raise BadSetting(
            f"{socket.gethostname()} would make other results: it has {', '.join(differing) or 'another Lowwater'}"
        )
    return work(task)


def _reach(address: str) -> None:
    """Raise OSError if nobody listens there; an address without a port is left to Ray."""
    if place := _PLACE.match(address):
        socket.create_connection((place["host"].strip("[]"), int(place["port"])), timeout=_PATIENCE).close()


def _result(reference: "ObjectRef[SessionResult]") -> SessionResult:
    import ray  # noqa: PLC0415
    from ray.exceptions import RayError, RayTaskError  # noqa: PLC0415

    try:
        return ray.get(reference)
    except RayError as error:
        if missing := _MISSING.search(str(error)):
            raise BadSetting(
                f"a machine of the Ray cluster has no {missing[1]}: install lowwater[replay,ray] there"
            ) from None
        if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
            raise error.cause from None
        raise BadInput(f"the Ray cluster failed: {str(error).splitlines()[0]}") from None


def replay(
    recordings: Iterable[Recording], options: Options, *, engine: Engine, folder: RunFolder | None = None
) -> Iterator[SessionResult]:
    """Yield the result of each session once, in no certain order; with a folder, what is there is not done again."""
    if folder is None:
        yield from engine.map(replay_session, (Task(recording=each, options=options) for each in recordings))
        return
    finished: deque[str] = deque()
    for result in engine.map(replay_session, _unfinished(recordings, options, folder, finished)):
        folder.keep(result)
        yield result
        yield from _taken(finished, folder)
    yield from _taken(finished, folder)


def _unfinished(
    recordings: Iterable[Recording],
    options: Options,
    folder: RunFolder,
    finished: deque[str],
) -> Iterator[Task]:
    """Yield the tasks that are still to do, and put the keys of the others aside."""
    for recording in recordings:
        task = Task(recording=recording, options=options)
        if folder.has(task.key):
            finished.append(task.key)
        else:
            yield task


def _taken(keys: deque[str], folder: RunFolder) -> Iterator[SessionResult]:
    while keys:
        yield folder.find(keys.popleft())
