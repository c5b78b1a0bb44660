"""The sessions of a run worked on by a Ray cluster: one that is there, or one of this machine for as long as the run takes."""

import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lowwater.errors import BadInput, BadSetting
from lowwater.replay.running.engine import AHEAD, Work, cores
from lowwater.replay.running.results import SessionResult
from lowwater.replay.running.session import VERSION, Task

if TYPE_CHECKING:
    from ray import ObjectRef

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
