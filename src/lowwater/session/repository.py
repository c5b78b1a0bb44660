"""What is stored of a session and when; its state in the hands of several threads, tasks and processes."""

import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.entries import Entry, Opened
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.ledger_loading import reopen
from lowwater.core.sequences import LazySequence
from lowwater.core.stored import About, Append, Listed, Outline
from lowwater.core.turns.state import Route, Setup, State
from lowwater.core.turns.state_storage import moved_on, pack, unpack
from lowwater.errors import DeletedSession, NewerSchema, StaleLedger, StoreFailed
from lowwater.protocols import Store
from lowwater.session.dependencies import Dependencies
from lowwater.session.factories import calibration_for, counted_in

_log = logging.getLogger("lowwater")

MOST_HELD = 1_000
"""Entries of a ledger that a process holds in memory at least, whatever the view shows, before it lets go of older ones."""


class Change(Struct, frozen=True, kw_only=True):
    """A session after something happened to it, and what is kept besides."""

    state: State
    record: TurnRecord | None = None
    events: tuple[Event, ...] = ()
    about: About | None = None


class FoundSession(Struct, frozen=True, kw_only=True):
    """A session as it was found in a store."""

    ledger: Ledger
    carried: bytes


class Known(Struct, frozen=True, kw_only=True):
    """How far a session's place in its store is known; version 0 is a session that is not there."""

    version: int = 0
    entries: int = 0
    about: About = About()


class SessionRepository:
    """Where one session lives; not safe to use from several threads at once."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.known = Known()

    @property
    def about(self) -> About:
        """Title, source and lineage."""
        return self.known.about

    def find(self) -> FoundSession | None:
        """Return the session if the store has it, without reading what its view does not show."""
        outline = self.store.outline(self.name)
        if not outline.version:
            self.known = Known()
            return None
        found = FoundSession(ledger=self._reopened(outline), carried=outline.carried)
        self.known = Known(version=outline.version, entries=outline.entries, about=outline.about)
        return found

    def resumed(self, carried: bytes, state: State) -> State:
        """Return `state` with what the session carried, or raise NewerSchema; what cannot be read of it is logged."""
        try:
            found = unpack(carried, state)
        except NewerSchema as error:
            raise NewerSchema(f"session {self.name!r}: {error}") from None
        for what in found.unread:
            _log.warning(
                "session %r: its state is stored with %s, which this Lowwater cannot read; it goes on without that: "
                "use the Lowwater that stored it, or a newer one, to keep it",
                self.name,
                what,
            )
        return found.state

    def lightened(self, state: State) -> State:
        """Return a session that was just kept without what its store has and its view does not show.

        A process may have one session open for months. Until many entries have come it stays as it is, for what is let go of has
        to be fetched should somebody look at it; so it does where the store cannot be asked or somebody else has written since.
        """
        ledger = state.ledger
        fetched = 0 if ledger.bygone is None else ledger.bygone.entries
        if len(ledger.entries) - fetched < MOST_HELD:
            return state
        try:
            outline = self.store.outline(self.name)
            if (outline.version, outline.entries) != (self.known.version, len(ledger.entries)):
                return state
            return replace(state, ledger=self._reopened(outline), laid=None)
        except StoreFailed:
            return state

    def _reopened(self, outline: Outline) -> Ledger:
        name, store, version = self.name, self.store, outline.version
        entries: LazySequence[Entry] = LazySequence(
            outline.entries, lambda first, end: store.entries(name, first, end, version=version)
        )
        messages: LazySequence[Numbered] = LazySequence(
            outline.messages, lambda first, end: store.messages(name, first + 1, end + 1, version=version)
        )
        return reopen(outline, entries, messages)

    def keep(self, seen: State, new: Change) -> None:
        """Write what is new, or raise StaleLedger if somebody else has written since."""
        known, entries = self.known, new.state.ledger.entries
        append = Append(
            entries=tuple(entries[known.entries :]),
            record=new.record,
            events=new.events,
            carried=pack(new.state) if moved_on(seen, new.state) or not known.version else None,
            about=new.about or (None if known.version else known.about),
        )
        version = self.store.append(self.name, known.version, append)
        self.known = Known(version=version, entries=len(entries), about=new.about or known.about)

    def catch_up(self, state: State) -> State | None:
        """Return the session with what others wrote, the same if nobody did; None if what it was is gone."""
        known = self.known
        if not known.version:
            return None
        try:
            stored = self.store.read(self.name, since=known.version)
        except StaleLedger:
            return None
        if stored.version == known.version:
            return state
        ledger = state.ledger.extend(stored.entries)
        new = self.resumed(stored.carried, replace(state, ledger=ledger, laid=None))
        # Only now: what could not be read must not count as known.
        count = known.entries + len(stored.entries)
        self.known = Known(version=stored.version, entries=count, about=stored.about)
        return new


ENDED_BY_SPLIT = "compression"
_NUMBERED = re.compile(r"^(.*?) #(\d+)$", re.DOTALL)


def new_name(at: float) -> str:
    """Return a name for a session that begins now: `YYYYMMDD_HHMMSS_hex6`, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"


def child_of(parent: str, about: About, known: Iterable[Listed]) -> About:
    """Return what is told of a child: its parent, and the next numbered title of the lineage."""
    parents = {each.name: each.about.parent for each in known}
    titles = {each.name: each.about.title for each in known}
    root = _root(parent, parents)
    base = titles.get(root) or root
    family = [name for name in parents if _root(name, parents) == root]
    highest = max([_number(titles[name], base) for name in family], default=1)
    return replace(about, title=f"{base} #{highest + 1}", parent=parent, ended_at=None, ended_because="")


def continued_by(home: SessionRepository) -> str | None:
    """Return the session that goes on with one that was split; None if it was not."""
    if home.about.ended_because != ENDED_BY_SPLIT:
        return None
    children = [each for each in home.store.sessions() if each.about.parent == home.name]
    return max(children, key=lambda each: each.version).name if children else None


def ended(about: About, at: float) -> About:
    """Return what is told of a session that a child continues."""
    return replace(about, ended_at=at, ended_because=ENDED_BY_SPLIT)


def _root(name: str, parents: dict[str, str]) -> str:
    seen = {name}
    while (parent := parents.get(name, "")) and parent not in seen:
        name = parent
        seen.add(name)
    return name


def _number(title: str, base: str) -> int:
    numbered = _NUMBERED.match(title)
    return int(numbered[2]) if numbered and numbered[1] == base else 1


def opened(route: Route, setup: Setup, outside: Dependencies) -> State:
    """Return a session that was just opened on a model."""
    model = outside.registry.find(route.model)
    entry = Opened(at=outside.clock.now(), model=model.name, vocabulary=setup.tokenizer.vocabulary)
    return State(
        ledger=Ledger().append(entry),
        route=route,
        model=model,
        calibration=calibration_for(route.model),
        binds_thinking=model.binds_thinking,
    )


def entered(
    home: SessionRepository, seen: State | None, route: Route, setup: Setup, outside: Dependencies
) -> State:
    """Return the session as its home has it now, or a new one; `seen` is what was known of it before."""
    state = None if seen is None else home.catch_up(seen)
    if state is None:
        state = opened(route, setup, outside)
        found = home.find()
        if found is not None:
            state = home.resumed(found.carried, replace(state, ledger=found.ledger))
    model = outside.registry.find(state.route.model)
    return state if model is state.model else replace(state, model=model)


def setup_for(state: State, setup: Setup) -> Setup:
    """Return the setup for a session, which is counted in the vocabulary that its ledger was opened with, for good."""
    vocabulary = state.ledger.vocabulary
    if vocabulary == setup.tokenizer.vocabulary:
        return setup
    return counted_in(setup, tokenizer_for(vocabulary), state.route.model)


T = TypeVar("T")


class SharedState:
    """One value that many may read and change, and that is stored before anybody sees it changed.

    Long work swaps its result in only if nothing came in between, here or from another process.
    """

    def __init__(
        self, home: SessionRepository, *, enter: Callable[[SessionRepository, State | None], State]
    ) -> None:
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
        self.take(lambda state: Change(state=step(state)))

    def take(self, step: Callable[[State], Change]) -> Change:
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

    def swap(self, seen: State, new: Change) -> bool:
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

    def _committed(self, new: Change) -> bool:
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
            parent.keep(self._state, Change(state=self._state, about=ended(parent.about, at)))
        except BaseException as error:
            store.delete(child)
            if isinstance(error, StaleLedger):
                return False
            raise
        return True

    def _move(self, child: str) -> None:
        """Go on in a child, with the call that is under way."""
        home = SessionRepository(child, self.home.store)
        state = replace(self._enter(home, None), call=self._state.call)
        self.home = home
        self._set(state)

    def _set(self, state: State) -> None:
        self._state, self._thought = state, None
