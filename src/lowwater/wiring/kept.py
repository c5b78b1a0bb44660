"""A session's state in the hands of several threads, tasks and processes: no change is ever lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from lowwater.engine.state import State
from lowwater.errors import StaleLedger
from lowwater.wiring.home import Home, Step
from lowwater.wiring.lineage import child_of, ended


class Kept:
    """One value that many may read and change, and that is stored before anybody sees it changed.

    Long work swaps its result in only if nothing came in between, here or from another process.
    """

    def __init__(self, home: Home, *, enter: Callable[[Home, State | None], State]) -> None:
        self.home = home
        self._enter = enter
        self._state = enter(home, None)
        self._lock = threading.RLock()

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self._state

    def change(self, step: Callable[[State], State]) -> None:
        """Take a short step; if it raises, nothing has changed."""
        self.take(lambda state: Step(state=step(state)))

    def take(self, step: Callable[[State], Step]) -> Step:
        """Take a short step that has more to keep than the state; it is taken again if another process was faster."""
        with self._lock:
            while True:
                new = step(self._state)
                if self._committed(new):
                    return new

    def think(self, step: Callable[[State], State]) -> None:
        """Take a step that only this process needs to know of."""
        with self._lock:
            self._state = step(self._state)

    def swap(self, seen: State, new: Step) -> bool:
        """Put `new` in place of `seen`, and tell whether that was still the state."""
        with self._lock:
            return self._state is seen and self._committed(new)

    def refresh(self) -> None:
        """Learn what other processes did to the session."""
        with self._lock:
            self._state = self._enter(self.home, self._state)

    def split(self, child: str, at: float) -> None:
        """End the session where it is kept, and go on in a child that has all of it."""
        with self._lock:
            parent, store = self.home, self.home.store
            store.copy(parent.name, child, child_of(parent.name, parent.about, store.sessions()))
            while not self._committed(Step(state=self._state, about=ended(parent.about, at))):
                continue
            self.home = Home(child, store)
            self._state = replace(self._enter(self.home, None), call=self._state.call)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep everybody else in this process from changing it; only for work that waits for nobody."""
        with self._lock:
            yield

    def _committed(self, new: Step) -> bool:
        try:
            self.home.keep(self._state, new)
        except StaleLedger:
            self.refresh()
            return False
        self._state = new.state
        return True
