"""A session's place in a store: what is kept there, and what others put there meanwhile."""

import logging

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Entry
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.ledger_loading import reopen
from lowwater.core.sequences import Distant
from lowwater.core.stored import About, Append, Outline
from lowwater.core.turns.state import State
from lowwater.core.turns.state_storage import moved_on, pack, unpack
from lowwater.errors import NewerSchema, StaleLedger, StoreFailed
from lowwater.protocols import Store

_log = logging.getLogger("lowwater")

MOST_HELD = 1_000
"""Entries of a ledger that a process holds in memory at least, whatever the view shows, before it lets go of older ones."""


class Step(Struct, frozen=True, kw_only=True):
    """A session after something happened to it, and what is kept besides."""

    state: State
    record: TurnRecord | None = None
    events: tuple[Event, ...] = ()
    about: About | None = None


class Found(Struct, frozen=True, kw_only=True):
    """A session as it was found in a store."""

    ledger: Ledger
    carried: bytes


class Known(Struct, frozen=True, kw_only=True):
    """How far a session's place in its store is known; version 0 is a session that is not there."""

    version: int = 0
    entries: int = 0
    about: About = About()


class Home:
    """Where one session lives; not safe to use from several threads at once."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.known = Known()

    @property
    def about(self) -> About:
        """Title, source and lineage."""
        return self.known.about

    def find(self) -> Found | None:
        """Return the session if the store has it, without reading what its view does not show."""
        outline = self.store.outline(self.name)
        if not outline.version:
            self.known = Known()
            return None
        found = Found(ledger=self._reopened(outline), carried=outline.carried)
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
        entries: Distant[Entry] = Distant(
            outline.entries, lambda first, end: store.entries(name, first, end, version=version)
        )
        messages: Distant[Numbered] = Distant(
            outline.messages, lambda first, end: store.messages(name, first + 1, end + 1, version=version)
        )
        return reopen(outline, entries, messages)

    def keep(self, seen: State, new: Step) -> None:
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
