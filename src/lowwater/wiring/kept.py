"""A session's state in the hands of several threads, tasks and processes: no change is ever lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec.structs import replace

from lowwater.core.stored import About
from lowwater.core.turns.state import State
from lowwater.errors import DeletedSession, StaleLedger
from lowwater.wiring.home import Home, Known, Step
from lowwater.wiring.lineage import child_of, continued_by, ended

T = TypeVar("T")


class Kept:
    """One value that many may read and change, and that is stored before anybody sees it changed.

    Long work swaps its result in only if nothing came in between, here or from another process.
    """

    def __init__(self, home: Home, *, enter: Callable[[Home, State | None], State]) -> None:
        self.home = home
        self._enter = enter
        self._state = enter(home, None)
        self._thought: State | None = None
        self._lock = threading.RLock()

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self._thought or self._state

    def change(self, step: Callable[[State], State]) -> None:
        """Take a short step; if it raises, nothing has changed."""
        self.take(lambda state: Step(state=step(state)))

    def take(self, step: Callable[[State], Step]) -> Step:
        """Take a short step that has more to keep than the state; it is taken again if another process was faster."""
        with self._lock:
            while True:
                new = self.read(step)
                if self._committed(new):
                    return new

    def read(self, look: Callable[[State], T]) -> T:
        """Return what `look` makes of the state; it looks again if what it looked at was replaced in the store."""
        try:
            return look(self.state)
        except StaleLedger:
            self.refresh()
            return look(self.state)

    def think(self, step: Callable[[State], State]) -> None:
        """Take a step that only this process needs to know of, and that comes in nobody's way."""
        with self._lock:
            self._thought = step(self.state)

    def swap(self, seen: State, new: Step) -> bool:
        """Put `new` in place of `seen`, and tell whether that was still the state."""
        with self._lock:
            return (seen is self._state or seen is self._thought) and self._committed(new)

    def refresh(self, *, anew: bool = False) -> None:
        """Learn what other processes did to the session; one that is gone is begun `anew`, or DeletedSession is raised."""
        with self._lock:
            known = self.home.known
            state = self._enter(self.home, self._state)
            if known.version and not self.home.known.version and not anew:
                self.home.known = known
                raise DeletedSession(
                    f"session {self.home.name!r} was deleted meanwhile: call refresh(anew=True) to begin it anew"
                )
            if state is not self._state:
                self._set(state)
            while (child := continued_by(self.home)) is not None:
                self._move(child)

    def begin(self, state: State, about: About) -> None:
        """Begin with a state that is not stored yet; it is with the first change."""
        with self._lock:
            assert not self.home.known.version, "it was begun before"
            self.home.known = Known(about=about)
            self._set(state)

    def split(self, child: str, at: float) -> None:
        """End the session where it is kept, and go on in a child that has all of it."""
        with self._lock:
            while not self._has_split(child, at):
                self.refresh()
            self._move(child)

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
        # First: whatever becomes of the rest, what is kept is what everybody sees.
        self._set(new.state)
        self._set(self.home.lightened(new.state))
        return True

    def _has_split(self, child: str, at: float) -> bool:
        """Make a child and end the session; if another process was faster, there is no child."""
        parent, store = self.home, self.home.store
        store.copy(parent.name, child, child_of(parent.name, parent.about, store.sessions()))
        try:
            parent.keep(self._state, Step(state=self._state, about=ended(parent.about, at)))
        except BaseException as error:
            store.delete(child)
            if isinstance(error, StaleLedger):
                return False
            raise
        return True

    def _move(self, child: str) -> None:
        """Go on in a child, with the call that is under way."""
        home = Home(child, self.home.store)
        state = replace(self._enter(home, None), call=self._state.call)
        self.home = home
        self._set(state)

    def _set(self, state: State) -> None:
        self._state, self._thought = state, None
