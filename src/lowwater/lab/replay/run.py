"""Replays many sessions: in this process, in worker processes or on a Ray cluster; with a folder, runs are resumable."""

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
from lowwater.lab.replay.course_replay import SessionResult
from lowwater.lab.replay.session import VERSION, ReplayOptions, ReplayTask, replay_session
from lowwater.logs.recording import Recording

if TYPE_CHECKING:
    from ray import ObjectRef

Work = Callable[[ReplayTask], SessionResult]
"""The function applied to each task; it must be importable by name in another process."""
AHEAD = 2
"""Tasks queued per worker, so that a corpus need not fit into memory."""
_PACKAGES = ("lowwater", "msgspec", "numpy", "splintr-rs", "genai-prices")
"""Packages whose versions may change results."""
_RAY_VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # no deprecation warning
}
_HOST_AND_PORT = re.compile(r"(?:ray://)?(?P<host>[^/]+):(?P<port>\d+)$")
_MISSING_PACKAGE = re.compile(r"No (?:module named|package metadata was found for) '?([\w.-]+)")
_CONNECT_TIMEOUT = 5.0
"""Seconds to wait for a cluster; Ray itself would try for minutes."""


class Environment(Struct, frozen=True, kw_only=True):
    """The version of results and of the packages that compute them; it must be the same on all machines."""

    results: int
    packages: dict[str, str]


class RunFolder:
    """A folder with one file per result, named by its key; the same session under other options has another key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnreadableFile(f"no results can be kept in {path}: {error.strerror}") from None

    def has(self, key: str) -> bool:
        """Return whether there is a readable result."""
        try:
            self.find(key)
        except UnreadableFile:
            return False
        return True

    def find(self, key: str) -> SessionResult:
        """Return a stored result, or raise UnreadableFile."""
        try:
            return msgspec.msgpack.decode(self._file(key).read_bytes(), type=SessionResult)
        except (OSError, msgspec.MsgspecError) as error:
            raise UnreadableFile(f"no result can be read from {self._file(key)}: {error}") from None

    def keep(self, result: SessionResult) -> None:
        """Store a result atomically."""
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
    """Applies a function to many tasks."""

    def map(self, work: Work, tasks: Iterable[ReplayTask], /) -> Iterator[SessionResult]:
        """Yield the results as they complete, in any order; tasks are consumed only as needed."""
        ...


def replay_recordings(
    recordings: Iterable[Recording],
    options: ReplayOptions,
    *,
    engine: Engine,
    folder: RunFolder | None = None,
) -> Iterator[SessionResult]:
    """Yield the result of each session, in any order; results already in the folder are not computed again."""
    if folder is None:
        yield from engine.map(
            replay_session, (ReplayTask(recording=each, options=options) for each in recordings)
        )
        return
    finished: deque[str] = deque()
    for result in engine.map(replay_session, _unfinished(recordings, options, folder, finished)):
        folder.keep(result)
        yield result
        yield from _finished_results(finished, folder)
    yield from _finished_results(finished, folder)


def _unfinished(
    recordings: Iterable[Recording],
    options: ReplayOptions,
    folder: RunFolder,
    finished: deque[str],
) -> Iterator[ReplayTask]:
    """Yield the tasks without a stored result, and append the keys of the others to `finished`."""
    for recording in recordings:
        task = ReplayTask(recording=recording, options=options)
        if folder.has(task.key):
            finished.append(task.key)
        else:
            yield task


def _finished_results(keys: deque[str], folder: RunFolder) -> Iterator[SessionResult]:
    while keys:
        yield folder.find(keys.popleft())


class LocalEngine:
    """Worker processes on this machine, one session each at a time; with one worker, this process."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise BadSetting(f"{workers} workers make no sense: at least one is needed")
        self.workers = workers or cores()

    def map(self, work: Work, tasks: Iterable[ReplayTask], /) -> Iterator[SessionResult]:
        """Yield the results as they complete; closing the iterator early stops the workers."""
        if self.workers == 1:
            yield from map(work, tasks)
            return
        pool = ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=_default_interrupt
        )
        try:
            yield from _completed(pool, work, iter(tasks), self.workers * AHEAD)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _default_interrupt() -> None:
    """Let Ctrl-C end a worker at once, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _completed(
    pool: ProcessPoolExecutor, work: Work, tasks: Iterator[ReplayTask], ahead: int
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


class RayEngine:
    """A Ray cluster, one session at a time per core; without an address, one is started on this machine and stopped afterwards."""

    def __init__(self, address: str = "", *, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise BadSetting(f"{workers} workers make no sense: at least one is needed")
        if find_spec("ray") is None:
            raise BadSetting("a Ray cluster needs the package ray: install lowwater[ray]")
        self._address, self._workers = address, workers

    def map(self, work: Work, tasks: Iterable[ReplayTask], /) -> Iterator[SessionResult]:
        """Yield the results as they complete; closing the iterator early cancels the rest.

        If the program is already connected to a cluster, that one is used and stays connected.
        """
        import ray  # noqa: PLC0415 (the extra `ray`)

        if ray.is_initialized():
            yield from self._completed(work, tasks)
            return
        try:
            self._connect()
            yield from self._completed(work, tasks)
        finally:
            ray.shutdown()

    def _connect(self) -> None:
        import ray  # noqa: PLC0415

        for name, value in _RAY_VARIABLES.items():
            os.environ.setdefault(name, value)
        cluster: dict[str, Any] = {"address": self._address}
        if not self._address:
            cluster = {"address": "local", "num_cpus": self._workers or cores(), "include_dashboard": False}
        try:
            _check_reachable(self._address)
            ray.init(**cluster, logging_level=logging.ERROR, log_to_driver=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise BadSetting(f"no Ray cluster at {self._address or 'this machine'}: {error}") from None

    def _completed(self, work: Work, tasks: Iterable[ReplayTask]) -> Iterator[SessionResult]:
        import ray  # noqa: PLC0415

        remote, by = ray.remote(work_in_same_environment), local_environment()
        running: list[ObjectRef[SessionResult]] = []
        try:
            for task in tasks:
                running.append(remote.remote(work, task, by))
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
        """Return how many tasks to queue on the cluster, which may grow during the run."""
        import ray  # noqa: PLC0415

        if self._address and self._workers:
            return self._workers
        there = ray.cluster_resources()  # type: ignore[no-untyped-call] # untyped in Ray
        return AHEAD * max(1, int(there.get("CPU", 1)))


def local_environment() -> Environment:
    """Return the environment of this process."""
    return Environment(results=VERSION, packages={name: version(name) for name in _PACKAGES})


def work_in_same_environment(work: Work, task: ReplayTask, by: Environment) -> SessionResult:
    """Run `work` on a machine of the cluster, or raise BadSetting if its environment differs from that of the driver."""
    here = local_environment()
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


def _check_reachable(address: str) -> None:
    """Raise OSError if nothing listens at the address; an address without a port is left to Ray."""
    if place := _HOST_AND_PORT.match(address):
        socket.create_connection(
            (place["host"].strip("[]"), int(place["port"])), timeout=_CONNECT_TIMEOUT
        ).close()


def _result(reference: "ObjectRef[SessionResult]") -> SessionResult:
    import ray  # noqa: PLC0415
    from ray.exceptions import RayError, RayTaskError  # noqa: PLC0415

    try:
        return ray.get(reference)
    except RayError as error:
        if missing := _MISSING_PACKAGE.search(str(error)):
            raise BadSetting(
                f"a machine of the Ray cluster has no {missing[1]}: install lowwater[ray] there"
            ) from None
        if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
            raise error.cause from None
        raise BadInput(f"the Ray cluster failed: {str(error).splitlines()[0]}") from None
