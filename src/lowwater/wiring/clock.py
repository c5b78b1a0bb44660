"""The time as the machine tells it."""

import time


class SystemClock:
    """Reads the system's clock."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()
