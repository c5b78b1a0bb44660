"""Taking turns on a session: one at a time, from threads and from tasks, and never over a change made meanwhile."""

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from lowwater.assemble.legal import mend
from lowwater.engine.commit import Acted
from lowwater.engine.drive import Driver
from lowwater.engine.effects import Perform, Steps
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.timing import timed
from lowwater.engine.turn import Prepared
from lowwater.errors import StoreFailed
from lowwater.observe.hooks import announce
from lowwater.observe.sinks import tell
from lowwater.observe.usage_warnings import tell_warning
from lowwater.values.events import Compaction
from lowwater.values.ledger import Ledger
from lowwater.values.summaries import Riding
from lowwater.wiring.brought import written_messages
from lowwater.wiring.home import Step
from lowwater.wiring.kept import Kept
from lowwater.wiring.lineage import new_name
from lowwater.wiring.outside import Outside

_log = logging.getLogger("lowwater")

T = TypeVar("T", Prepared, Acted)
Turn = Callable[[State, Setup, float], Steps[T]]

_ATTEMPTS = 3


class Turns:
    """The turns of one session."""

    def __init__(
        self,
        kept: Kept,
        setup: Setup,
        outside: Outside,
        *,
        riding: Callable[[Ledger | None], Riding | None],
    ) -> None:
        self._riding = riding
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
        outside = self._outside
        return Driver(
            deadline=outside.deadline,
            clock=outside.clock,
            riding=self._riding,
            announce=self._announce,
        )

    def _announce(self, ledger: Ledger) -> None:
        hooks = self._outside.hooks
        if hooks:
            announce(
                hooks, self._kept.home.name, written_messages(mend(ledger.view.messages), self._kept.state)
            )

    def _steps(self, turn: Turn[T]) -> Steps[T]:
        """Run the turn on the state as it is, and again if that has changed meanwhile; the last time nobody is asked."""
        for _ in range(_ATTEMPTS):
            seen = self._kept.state
            result = yield from self._run(turn, seen, self._setup)
            if (yield Perform(call=partial(self._kept.swap, seen, _step(result)))):
                if self._setup.settings.compression.split and _is_compacted(result):
                    yield Perform(call=self._split)
                return self._told(result)
        with self._kept.held():
            while True:
                seen = self._kept.state
                result = yield from self._run(turn, seen, replace(self._setup, rungs=0))
                if self._kept.swap(seen, _step(result)):
                    return self._told(result)

    def _run(self, turn: Turn[T], state: State, setup: Setup) -> Steps[T]:
        windows, clock = self._outside.windows, self._outside.clock
        at = clock.now()
        result = yield from turn(windows.applied(state), windows.applied_to(setup), at)
        return timed(result, clock.now() - at)

    def _split(self) -> None:
        """Go on in a child; if that fails, the compaction stands all the same."""
        at = self._outside.clock.now()
        try:
            self._kept.split(new_name(at), at)
        except StoreFailed as error:
            _log.warning("%s: it could not be split and goes on: %s", self._kept.home.name, error)

    def _told(self, result: T) -> T:
        outside = self._outside
        for event in result.events:
            tell(outside.sinks, self._kept.home.name, event)
        if isinstance(result, Prepared):
            for warning in result.warnings:
                tell_warning(warning, self._kept.home.name, call=outside.on_warning, quiet=outside.quiet)
        return result


def _is_compacted(result: Prepared | Acted) -> bool:
    """Return whether a turn changed what was there; shortening what is new is no reason to split."""
    return any(isinstance(event, Compaction) and event.mode != "shorten" for event in result.events)


def _step(result: Prepared | Acted) -> Step:
    return Step(state=result.state, events=result.events)
