"""The time, as the machine tells it or as a replay sets it."""

import time

from lowwater.errors import BadSetting


class SystemClock:
    """Reads the system's clock."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class ManualClock:
    """Stands still until it is moved forward: for sessions that are played at the times they were recorded."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the time it was moved to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if not seconds >= 0:
            raise BadSetting(f"cannot advance a clock by {seconds} seconds: time only goes forward")
        self._now += seconds
