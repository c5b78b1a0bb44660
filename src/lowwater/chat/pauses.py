"""What the chat does while it waits for the user: it keeps the cached prompt warm, or compacts it, if that pays."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from msgspec.structs import replace

from lowwater.core.costs.idle import IdleMode
from lowwater.errors import LowwaterError
from lowwater.protocols import Clock
from lowwater.session.dependencies import SystemClock
from lowwater.session.session import Session
from lowwater.settings import Settings

_LOOKS = 1.0
"""Seconds between two checks of the clocks."""
_DRIFT = 5.0
"""Seconds that the wall clock may gain on the monotonic one between two checks; if it gains more, the machine slept."""


def for_pauses(settings: Settings, mode: IdleMode) -> Settings:
    """Return the settings, with the short cache lifetime if prefixes are kept warm: together these cost less than the long one."""
    if mode not in ("keep-warm", "auto") or settings.model.cache_ttl != "auto":
        return settings
    return replace(settings, model=replace(settings.model, cache_ttl="5m"))


class PauseKeeper:
    """Acts in the pauses of one chat; its calls may cost at most `dollars` in all."""

    def __init__(
        self,
        mode: IdleMode,
        *,
        dollars: float,
        note: Callable[[str], None],
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        looks: float = _LOOKS,
    ) -> None:
        self._mode = mode
        self._left = round(dollars * 1_000_000_000)
        self._note = note
        self._clock = clock or SystemClock()
        self._monotonic = monotonic
        self._looks = looks
        self.pings = 0

    @contextmanager
    def waiting(self, session: Session, keep_warm: Callable[[], bytes] | None) -> Iterator[None]:
        """Act in the background until the block ends; `keep_warm` sends the last prompt once more."""
        if self._mode == "off" or keep_warm is None:
            yield
            return
        is_back = Event()
        thread = Thread(target=self._wait, args=(session, keep_warm, is_back), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_back.set()

    def _wait(self, session: Session, keep_warm: Callable[[], bytes], is_back: Event) -> None:
        try:
            plan = session.idle(self._mode)
            while plan.at is not None and plan.expires is not None:
                if not self._is_time(plan.at, plan.expires, is_back):
                    return
                if plan.action == "compact":
                    session.compress()
                    return
                if plan.costs > self._left:
                    self._note("the prompt is no longer kept warm: the limit is spent")
                    return
                self._left -= plan.costs
                plan = session.idle(self._mode, kept_warm=keep_warm())
                self.pings += 1
        except LowwaterError as error:
            self._note(f"the prompt is no longer kept warm: {error}")

    def _is_time(self, due: float, expires: float, is_back: Event) -> bool:
        """Wait until `due`; return False if the user is back, the machine slept, or it is too late."""
        wall, steady = self._clock.now(), self._monotonic()
        while wall < due:
            if is_back.wait(self._looks):
                return False
            now, tick = self._clock.now(), self._monotonic()
            if (now - wall) - (tick - steady) > _DRIFT:
                return False
            wall, steady = now, tick
        return wall < expires and not is_back.is_set()
