"""A session's place in a store: what is kept there, and what others put there meanwhile."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.engine.carried import moved_on, pack, unpack
from lowwater.engine.state import State
from lowwater.errors import StaleLedger
from lowwater.ports import Store
from lowwater.values.distant import Distant
from lowwater.values.entries import Entry
from lowwater.values.events import Event
from lowwater.values.ledger import Ledger, Numbered
from lowwater.values.reopening import reopen
from lowwater.values.stored import About, Append
from lowwater.values.turn_record import TurnRecord


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


class Home:
    """Where one session lives; not safe to use from several threads at once."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.about = About()
        self._version = 0
        self._entries = 0

    def find(self) -> Found | None:
        """Return the session if the store has it, without reading what its view does not show."""
        name, store = self.name, self.store
        outline = store.outline(name)
        version = outline.version
        self._version, self._entries, self.about = version, outline.entries, outline.about
        if not version:
            return None
        entries: Distant[Entry] = Distant(
            outline.entries, lambda first, end: store.entries(name, first, end, version=version)
        )
        messages: Distant[Numbered] = Distant(
            outline.messages, lambda first, end: store.messages(name, first + 1, end + 1, version=version)
        )
        return Found(ledger=reopen(outline, entries, messages), carried=outline.carried)

    def keep(self, seen: State, new: Step) -> None:
        """Write what is new, or raise StaleLedger if somebody else has written since."""
        entries = new.state.ledger.entries
        append = Append(
            entries=tuple(entries[self._entries :]),
            record=new.record,
            events=new.events,
            carried=pack(new.state) if moved_on(seen, new.state) or not self._version else None,
            about=new.about or (self.about if not self._version else None),
        )
        self._version = self.store.append(self.name, self._version, append)
        self._entries = len(entries)
        self.about = new.about or self.about

    def catch_up(self, state: State) -> State | None:
        """Return the session with what others wrote; None if what it was is gone."""
        if not self._version:
            return None
        try:
            stored = self.store.read(self.name, since=self._version)
        except StaleLedger:
            return None
        kept = state.ledger
        self._version, self.about = stored.version, stored.about
        self._entries += len(stored.entries)
        return unpack(
            stored.carried, replace(state, ledger=kept.extend(stored.entries), laid=None, rest=None)
        )
