"""Taking turns on a session: one at a time, from threads and from tasks, and never over a change made meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from lowwater.engine.commit import Acted
from lowwater.engine.drive import Driver
from lowwater.engine.effects import Outcome, Summarize
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.timing import timed
from lowwater.engine.turn import Prepared
from lowwater.observe.sinks import tell
from lowwater.observe.usage_warnings import tell_warning
from lowwater.values.ledger import Ledger
from lowwater.values.summaries import Riding
from lowwater.wiring.kept import Kept
from lowwater.wiring.outside import Outside

T = TypeVar("T", Prepared, Acted)
Turn = Callable[[State, Setup, float], Generator[Summarize, Outcome, T]]

_ATTEMPTS = 3


class Turns:
    """The turns of one session."""

    def __init__(
        self,
        session: str,
        kept: Kept,
        setup: Setup,
        outside: Outside,
        *,
        riding: Callable[[Ledger | None], Riding | None],
    ) -> None:
        self._riding = riding
        self._session = session
        self._kept = kept
        self._setup = setup
        self._outside = outside
        self._lock = threading.RLock()
        # An asyncio lock belongs to the loop it was first waited for in, and a session may see several loops.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def take(self, turn: Turn[T]) -> T:
        """Take a turn, blocking until it is done."""
        summarizers = self._outside.blocking()
        with self._lock:
            return self._driver().drive(self._steps(turn), summarizers)

    async def atake(self, turn: Turn[T]) -> T:
        """Take a turn without blocking the event loop; one that is cancelled leaves the session as it was."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            return await self._driver().adrive(self._steps(turn), self._outside.summarizers)

    def _driver(self) -> Driver:
        return Driver(deadline=self._outside.deadline, clock=self._outside.clock, riding=self._riding)

    def _steps(self, turn: Turn[T]) -> Generator[Summarize, Outcome, T]:
        """Run the turn on the state as it is, and again if that has changed meanwhile; the last time nobody is asked."""
        for _ in range(_ATTEMPTS):
            seen = self._kept.state
            result = yield from self._run(turn, seen, self._setup)
            if self._kept.swap(seen, result.state):
                return self._told(result)
        with self._kept.held():
            result = yield from self._run(turn, self._kept.state, replace(self._setup, rungs=0))
            self._kept.swap(self._kept.state, result.state)
        return self._told(result)

    def _run(self, turn: Turn[T], state: State, setup: Setup) -> Generator[Summarize, Outcome, T]:
        windows, clock = self._outside.windows, self._outside.clock
        at = clock.now()
        result = yield from turn(windows.applied(state), windows.applied_to(setup), at)
        return timed(result, clock.now() - at)

    def _told(self, result: T) -> T:
        outside = self._outside
        for event in result.events:
            tell(outside.sinks, self._session, event)
        if isinstance(result, Prepared):
            for warning in result.warnings:
                tell_warning(warning, self._session, call=outside.on_warning, quiet=outside.quiet)
        return result
