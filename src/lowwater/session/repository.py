"""What is stored of a session, and when.

Every change is worked out on a `State`, then written to the store in one transaction, and only then shown to anybody:

- `prepare` stores the new ledger entries (new messages, a changed system prompt, a compaction if there was one) and the
  turn's events: each compaction that was decided, or the reason why there was none.
- `record` stores the model's answer as an entry and the turn's record (its usage and cost). A call that only kept the cached
  prefix warm stores its record alone.
- All of these also store the rest of the state as bytes (`carried`), unless it did not change.
- Rewinds, checkpoints, switches of model and the like are entries, stored as they happen.
- A dry run is not stored by itself (`SharedState.change_unstored`): it becomes part of the state that the next change stores.

A write names the version it is based on. If another process wrote in between, the store raises StaleLedger; its changes
are then read, and the work is done again on top of them.
"""

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
from lowwater.core.turns.state_storage import moved_on, pack_state, unpack_state
from lowwater.errors import DeletedSession, NewerSchema, StaleLedger, StoreFailed
from lowwater.protocols import Store
from lowwater.session.dependencies import Dependencies
from lowwater.session.factories import calibration_for, counted_in

_log = logging.getLogger("lowwater")

MOST_HELD = 1_000
"""Entries that a process keeps in memory before it drops those that the view does not show."""

ENDED_BY_SPLIT = "compression"
"""Why a session ended (`About.ended_because`) that goes on in a child."""

_NUMBERED_TITLE = re.compile(r"^(.*?) #(\d+)$", re.DOTALL)

T = TypeVar("T")


class StateChange(Struct, frozen=True, kw_only=True):
    """The new state of a session, and what is stored with it."""

    state: State
    record: TurnRecord | None = None
    events: tuple[Event, ...] = ()
    about: About | None = None


class FoundSession(Struct, frozen=True, kw_only=True):
    """A session as it was found in a store."""

    ledger: Ledger
    carried: bytes


class LastSeen(Struct, frozen=True, kw_only=True):
    """What this process last read from or wrote to the store; version 0 means that the session is not stored."""

    version: int = 0
    entries: int = 0
    about: About = About()


class SessionRepository:
    """Reads and writes one session in its store; not safe to use from several threads at once."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.last_seen = LastSeen()

    @property
    def about(self) -> About:
        """Title, source and lineage."""
        return self.last_seen.about

    def find(self) -> FoundSession | None:
        """Return the session if the store has it; entries that its view does not show are read when they are needed."""
        outline = self.store.outline(self.name)
        if not outline.version:
            self.last_seen = LastSeen()
            return None
        found = FoundSession(ledger=self._lazy_ledger(outline), carried=outline.carried)
        self.last_seen = LastSeen(version=outline.version, entries=outline.entries, about=outline.about)
        return found

    def restore(self, carried: bytes, state: State) -> State:
        """Return `state` with the stored bytes applied, or raise NewerSchema; parts that cannot be read are logged."""
        try:
            found = unpack_state(carried, state)
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

    def save(self, before: State, new: StateChange) -> None:
        """Write what is new in one transaction, or raise StaleLedger if somebody else has written since."""
        last_seen, entries = self.last_seen, new.state.ledger.entries
        append = Append(
            entries=tuple(entries[last_seen.entries :]),
            record=new.record,
            events=new.events,
            carried=pack_state(new.state) if moved_on(before, new.state) or not last_seen.version else None,
            about=new.about or (None if last_seen.version else last_seen.about),
        )
        version = self.store.append(self.name, last_seen.version, append)
        self.last_seen = LastSeen(version=version, entries=len(entries), about=new.about or last_seen.about)

    def catch_up(self, state: State) -> State | None:
        """Return the session with what others have written, or `state` itself if nobody has.

        Returns None if the stored session does not continue what was last seen: it was deleted or replaced.
        """
        last_seen = self.last_seen
        if not last_seen.version:
            return None
        try:
            stored = self.store.read(self.name, since=last_seen.version)
        except StaleLedger:
            return None
        if stored.version == last_seen.version:
            return state
        ledger = state.ledger.extend(stored.entries)
        new = self.restore(stored.carried, replace(state, ledger=ledger, prompt_layout=None))
        # Only now, after nothing above has raised: what could not be read must not count as seen.
        count = last_seen.entries + len(stored.entries)
        self.last_seen = LastSeen(version=stored.version, entries=count, about=stored.about)
        return new

    def without_old_entries(self, state: State) -> State:
        """Return a session that was just saved without the entries that its view does not show.

        This bounds the memory of a process that has a session open for months. Dropped entries are fetched from the store
        when somebody asks for them. The state is returned unchanged while there are few entries to drop, if the store
        cannot be read, or if somebody else has written since.
        """
        ledger = state.ledger
        fetched = 0 if ledger.bygone is None else ledger.bygone.entries
        if len(ledger.entries) - fetched < MOST_HELD:
            return state
        try:
            outline = self.store.outline(self.name)
            if (outline.version, outline.entries) != (self.last_seen.version, len(ledger.entries)):
                return state
            return replace(state, ledger=self._lazy_ledger(outline), prompt_layout=None)
        except StoreFailed:
            return state

    def _lazy_ledger(self, outline: Outline) -> Ledger:
        name, store, version = self.name, self.store, outline.version
        entries: LazySequence[Entry] = LazySequence(
            outline.entries, lambda first, end: store.entries(name, first, end, version=version)
        )
        messages: LazySequence[Numbered] = LazySequence(
            outline.messages, lambda first, end: store.messages(name, first + 1, end + 1, version=version)
        )
        return reopen(outline, entries, messages)


class SharedState:
    """The state of one session, which any number of threads may read and change; it is stored before it is shown.

    A short change runs under a lock (`change`, `transact`). Long work runs without it and stores its result only if
    nothing changed meanwhile, here or in another process (`replace_if_current`).
    """

    def __init__(
        self,
        repository: SessionRepository,
        setup: Setup,
        *,
        load: Callable[[SessionRepository, State | None], State],
    ) -> None:
        self.repository = repository
        self._setup = setup
        self._load = load
        self._state = load(repository, None)
        self._unstored: State | None = None
        self._lock = threading.RLock()

    @property
    def state(self) -> State:
        """The state as it is now, with changes that are not stored."""
        return self._unstored or self._state

    @property
    def setup(self) -> Setup:
        """The setup that counts tokens with the vocabulary this session was opened with."""
        return setup_for(self.state, self._setup)

    def read(self, look: Callable[[State], T]) -> T:
        """Return `look(state)`, called again if the session was replaced in the store while entries were being fetched."""
        try:
            return look(self.state)
        except StaleLedger:
            self.refresh()
            return look(self.state)

    def change(self, step: Callable[[State], State]) -> None:
        """Apply a short step and store its result; if the step raises, nothing has changed."""
        self.transact(lambda state: StateChange(state=step(state)))

    def transact(self, step: Callable[[State], StateChange]) -> StateChange:
        """Do what `change` does for a step that has more to store than the state.

        The step is applied again if another process wrote first.
        """
        with self._lock:
            while True:
                new = self.read(step)
                if self._saved(new):
                    return new

    def replace_if_current(self, seen: State, new: StateChange) -> bool:
        """Store `new` in place of `seen`; return False, having stored nothing, if `seen` is no longer the state."""
        with self._lock:
            return (seen is self._state or seen is self._unstored) and self._saved(new)

    def change_unstored(self, step: Callable[[State], State]) -> None:
        """Apply a step in this process only; the next change that is stored builds on it."""
        with self._lock:
            self._unstored = step(self.state)

    def begin(self, state: State, about: About) -> None:
        """Start a session that is not stored yet with `state`; the first change stores it."""
        with self._lock:
            assert not self.repository.last_seen.version, "the session is stored already"
            self.repository.last_seen = LastSeen(about=about)
            self._set(state)

    def refresh(self, *, anew: bool = False) -> None:
        """Read what other processes wrote, and follow a split to the newest child.

        If the session was deleted, it starts over empty with `anew`; otherwise DeletedSession is raised.
        """
        with self._lock:
            before = self.repository.last_seen
            state = self._load(self.repository, self._state)
            if before.version and not self.repository.last_seen.version and not anew:
                self.repository.last_seen = before
                raise DeletedSession(
                    f"session {self.repository.name!r} was deleted meanwhile: "
                    "call refresh(anew=True) to begin it anew"
                )
            if state is not self._state:
                self._set(state)
            while (child := continued_by(self.repository)) is not None:
                self._move_to(child)

    def split(self, child: str, at: float) -> None:
        """End the session under its name and continue in a child that has the whole ledger."""
        with self._lock:
            while not self._has_split(child, at):
                self.refresh()
            self._move_to(child)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other thread of this process from changing the state; only for work that waits for nobody."""
        with self._lock:
            yield

    def _saved(self, new: StateChange) -> bool:
        """Store a change, or read what another process wrote first and return False."""
        try:
            self.repository.save(self._state, new)
        except StaleLedger:
            self.refresh()
            return False
        # Set it before anything else can fail: what is stored is what everybody must see.
        self._set(new.state)
        self._set(self.repository.without_old_entries(new.state))
        return True

    def _has_split(self, child: str, at: float) -> bool:
        """Create the child and end this session; if another process wrote first, delete the child and return False."""
        parent, store = self.repository, self.repository.store
        store.copy(parent.name, child, about_child(parent.name, parent.about, store.sessions()))
        try:
            parent.save(self._state, StateChange(state=self._state, about=about_ended(parent.about, at)))
        except BaseException as error:
            store.delete(child)
            if isinstance(error, StaleLedger):
                return False
            raise
        return True

    def _move_to(self, child: str) -> None:
        """Continue in a child, keeping the call that is under way."""
        repository = SessionRepository(child, self.repository.store)
        state = replace(self._load(repository, None), call=self._state.call)
        self.repository = repository
        self._set(state)

    def _set(self, state: State) -> None:
        self._state, self._unstored = state, None


def load_state(
    repository: SessionRepository, seen: State | None, route: Route, setup: Setup, dependencies: Dependencies
) -> State:
    """Return the session as the store has it now, or a new one; `seen` is the state this process had before."""
    state = None if seen is None else repository.catch_up(seen)
    if state is None:
        state = new_state(route, setup, dependencies)
        found = repository.find()
        if found is not None:
            state = repository.restore(found.carried, replace(state, ledger=found.ledger))
    model = dependencies.registry.find(state.route.model)
    return state if model is state.model else replace(state, model=model)


def new_state(route: Route, setup: Setup, dependencies: Dependencies) -> State:
    """Return the state of a session that was just opened on a model."""
    model = dependencies.registry.find(route.model)
    entry = Opened(at=dependencies.clock.now(), model=model.name, vocabulary=setup.tokenizer.vocabulary)
    state = State(
        ledger=Ledger().append(entry),
        route=route,
        model=model,
        calibration=calibration_for(route.model),
        binds_thinking=model.binds_thinking,
    )
    return dependencies.experience.begun(state)


def setup_for(state: State, setup: Setup) -> Setup:
    """Return the setup that counts tokens with the vocabulary the session's ledger was opened with, which never changes."""
    vocabulary = state.ledger.vocabulary
    if vocabulary == setup.tokenizer.vocabulary:
        return setup
    return counted_in(setup, tokenizer_for(vocabulary), state.route.model)


def new_name(at: float) -> str:
    """Return a name for a session that begins at `at`: `YYYYMMDD_HHMMSS_hex6`, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"


def continued_by(repository: SessionRepository) -> str | None:
    """Return the name of the session that continues one that was split; None if it was not split."""
    if repository.about.ended_because != ENDED_BY_SPLIT:
        return None
    children = [each for each in repository.store.sessions() if each.about.parent == repository.name]
    return max(children, key=lambda each: each.version).name if children else None


def about_child(parent: str, about: About, known: Iterable[Listed]) -> About:
    """Return the description of a child: its parent, and the next numbered title of the lineage."""
    parents = {each.name: each.about.parent for each in known}
    titles = {each.name: each.about.title for each in known}
    root = _root(parent, parents)
    base = titles.get(root) or root
    lineage = [name for name in parents if _root(name, parents) == root]
    highest = max([_title_number(titles[name], base) for name in lineage], default=1)
    return replace(about, title=f"{base} #{highest + 1}", parent=parent, ended_at=None, ended_because="")


def about_ended(about: About, at: float) -> About:
    """Return the description of a session that a child continues from `at` on."""
    return replace(about, ended_at=at, ended_because=ENDED_BY_SPLIT)


def _root(name: str, parents: dict[str, str]) -> str:
    seen = {name}
    while (parent := parents.get(name, "")) and parent not in seen:
        name = parent
        seen.add(name)
    return name


def _title_number(title: str, base: str) -> int:
    numbered = _NUMBERED_TITLE.match(title)
    return int(numbered[2]) if numbered and numbered[1] == base else 1
