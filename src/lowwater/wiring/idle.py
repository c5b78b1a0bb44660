"""What a session does in idle time: it has a summary prepared, beside its turns and never in their way."""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from lowwater.core.ledger import Ledger
from lowwater.core.summary.request import Riding
from lowwater.core.turns.effects import Outcome, Summarize
from lowwater.core.turns.prefetch import Parking, is_parked, park, settle
from lowwater.core.turns.state import Setup
from lowwater.session.driver import Driver
from lowwater.wiring.kept import Kept
from lowwater.wiring.opening import setup_for
from lowwater.wiring.outside import Outside


class Idle:
    """The idle time of one session; whoever takes a turn meanwhile does not wait for it."""

    def __init__(
        self,
        kept: Kept,
        setup: Setup,
        outside: Outside,
        *,
        riding: Callable[[Ledger | None, int], Riding | None],
    ) -> None:
        self._kept = kept
        self._setup = setup
        self._outside = outside
        self._riding = riding
        self._busy = threading.Lock()

    def park(self) -> bool:
        """Have a summary prepared if that makes sense, blocking until it is, and return whether one is ready."""
        summarizers = self._outside.blocking()
        with self._alone() as alone:
            if alone:
                self._settle(self._driver().drive(self._steps(), summarizers))
        return is_parked(self._kept.state)

    async def apark(self) -> bool:
        """Do the same without blocking the event loop; if it is cancelled, nothing is parked."""
        with self._alone() as alone:
            if alone:
                parking = await self._driver().adrive(self._steps(), self._outside.summarizers)
                await asyncio.to_thread(self._settle, parking)
        return is_parked(self._kept.state)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Tell whether nobody else is having one prepared: the same summary is not paid twice, and nobody waits."""
        alone = self._busy.acquire(blocking=False)
        try:
            yield alone
        finally:
            if alone:
                self._busy.release()

    def _steps(self) -> Generator[Summarize, Outcome, Parking | None]:
        windows, at = self._outside.windows, self._outside.clock.now()
        state = self._kept.state
        return park(windows.applied(state), windows.applied_to(setup_for(state, self._setup), state), at)

    def _settle(self, parking: Parking | None) -> None:
        if parking is not None:
            self._kept.change(lambda state: settle(state, parking))

    def _driver(self) -> Driver:
        return Driver(deadline=self._outside.deadline, clock=self._outside.clock, riding=self._riding)
