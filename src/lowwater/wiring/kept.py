"""A session's state in the hands of several threads and tasks: no change is ever lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lowwater.engine.state import State


class Kept:
    """One value that many may read and change; long work swaps its result in only if nothing came in between."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = threading.RLock()

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self._state

    def change(self, step: Callable[[State], State]) -> None:
        """Take a short step; if it raises, nothing has changed."""
        with self._lock:
            self._state = step(self._state)

    def swap(self, seen: State, new: State) -> bool:
        """Put `new` in place of `seen`, and tell whether that was still the state."""
        with self._lock:
            if self._state is not seen:
                return False
            self._state = new
            return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep everybody else from changing it; only for work that waits for nobody."""
        with self._lock:
            yield
