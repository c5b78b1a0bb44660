"""Everything that happened in a session, append-only, with its view kept up to date."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lowwater.errors import IllegalEntry
from lowwater.values.chain import Chain
from lowwater.values.entries import (
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    ModelChanged,
    Opened,
    PreambleChanged,
    Rewound,
    TakenBack,
)
from lowwater.values.message import Message
from lowwater.values.resolving import Numbered, numbered_in, originals, resolve, rewound, taken_back
from lowwater.values.view import View

__all__ = ["Bygone", "Ledger", "Numbered", "Saved", "SavedKind"]

SavedKind = Literal["compacted", "rewound", "checkpointed"]


class Saved(Struct, frozen=True, kw_only=True):
    """Where the view was changed as a whole or named: the ledger had `position` entries and `messages` messages then."""

    position: int
    messages: int
    kind: SavedKind
    at: float
    view: View | None = None
    """The view before that entry; None if it has to be read from elsewhere."""
    after: View | None = None
    """The view after it, likewise."""
    name: str = ""


class Then(Struct, frozen=True, kw_only=True):
    """The view at some moment of a ledger, and how many messages had come by then."""

    view: View
    came: int


class Bygone(Protocol):
    """Works out what the view was in the part of a ledger that lies elsewhere."""

    @property
    def entries(self) -> int:
        """How many entries that part has."""
        ...

    def at(self, position: int) -> Then:
        """Return how it was when the ledger had `position` entries."""
        ...


class Ledger(Struct, frozen=True, kw_only=True):
    """A session's ledger: a value; `append` returns the next one and leaves this one as it is.

    Appending costs the same however long the history is: entries, messages and the view share their storage with
    the ledger they came from. One that was opened again has its older part elsewhere (`values/reopening.py`).
    """

    entries: Chain[Entry] = Chain()
    messages: Chain[Numbered] = Chain()
    view: View = View()
    saved: Chain[Saved] = Chain()
    """Each compaction, rewind and named checkpoint, oldest first."""
    preambles: Chain[int] = Chain()
    """Where system prompt or tools changed: positions of entries, in order."""
    vocabulary: str = ""
    bygone: Bygone | None = None

    def append(self, entry: Entry) -> "Ledger":
        """Return the ledger with `entry` behind it, or raise IllegalEntry."""
        entries = self.entries.append(entry)
        match entry:
            case Opened():
                view = self._followed(self.view, entry, len(self.messages))
                return replace(self, entries=entries, view=view, vocabulary=entry.vocabulary)
            case Appended():
                grown = replace(self, messages=self.messages.extend(_numbered(entry)))
                view = grown._followed(self.view, entry, len(self.messages))
                return replace(grown, entries=entries, view=view)
            case PreambleChanged():
                view = self._followed(self.view, entry, len(self.messages))
                preambles = self.preambles.append(len(self.entries))
                return replace(self, entries=entries, view=view, preambles=preambles)
            case ModelChanged() | TakenBack():
                return replace(
                    self, entries=entries, view=self._followed(self.view, entry, len(self.messages))
                )
            case Compacted():
                view = self.view.showing(resolve(entry.stands, self.messages), whole=self.view.whole)
                return replace(
                    self, entries=entries, view=view, saved=self._saved(entry.at, "compacted", view)
                )
            case Rewound():
                view = self._rewound(entry)
                return replace(self, entries=entries, view=view, saved=self._saved(entry.at, "rewound", view))
            case Checkpointed():
                saved = self._saved(entry.at, "checkpointed", self.view, entry.name)
                return replace(self, entries=entries, saved=saved)

    def extend(self, entries: Iterable[Entry]) -> "Ledger":
        """Return the ledger with all `entries` behind it."""
        ledger = self
        for entry in entries:
            ledger = ledger.append(entry)
        return ledger

    def message(self, number: int) -> Message:
        """Return the original message with this number."""
        return numbered_in(self.messages, number).message

    def history(self) -> list[Message]:
        """All messages ever appended, in order, as they came."""
        return [numbered.message for numbered in self.messages]

    def view_at(self, position: int) -> View:
        """Return the view as it was when the ledger had `position` entries."""
        return self._at(position).view

    def view_before(self, saved: Saved) -> View:
        """Return the view as it was before a compaction, a rewind or a checkpoint of this ledger."""
        if saved.view is not None:
            return saved.view
        assert self.bygone is not None
        return self.bygone.at(saved.position).view

    def _rewound(self, entry: Rewound) -> View:
        then = self._at(entry.to)
        if entry.discard_later:
            return then.view
        restored = rewound(then.view, self.view, self.messages, came=then.came)
        return self.view.showing(restored.items, whole=restored.whole)

    def _at(self, position: int) -> Then:
        """Return how it was when the ledger had `position` entries: start where the view was last saved, and follow."""
        if not 0 <= position <= len(self.entries):
            raise IllegalEntry(f"no position {position} in a ledger of {len(self.entries)} entries")
        if position == len(self.entries):
            return Then(view=self.view, came=len(self.messages))
        bygone = self.bygone.entries if self.bygone is not None else 0
        index = bisect_left(self.saved, position, key=lambda saved: saved.position)
        nearest = self.saved[index - 1] if index else None
        start, then = 0, Then(view=View(), came=0)
        if nearest is not None and nearest.after is not None:
            start, then = nearest.position + 1, Then(view=nearest.after, came=nearest.messages)
        elif self.bygone is not None:
            start = min(position, bygone)
            then = self.bygone.at(start)
        view, came = then.view, then.came
        for entry in self.entries[start:position]:
            view = self._followed(view, entry, came)
            came += len(entry.messages) if isinstance(entry, Appended) else 0
        return Then(view=view, came=came)

    def _followed(self, view: View, entry: Entry, came: int) -> View:
        """Return the view after an entry that does not change it as a whole; `came` messages had come before it."""
        match entry:
            case Opened() | ModelChanged():
                return replace(view, model=entry.model)
            case Appended():
                new = originals(self.messages, came + 1, came + len(entry.messages))
                size = sum(entry.tokens)
                return replace(
                    view, items=view.items.extend(new), tokens=view.tokens + size, whole=view.whole + size
                )
            case PreambleChanged():
                return replace(view, system=entry.system, tools=entry.tools, preamble_tokens=entry.tokens)
            case TakenBack():
                return taken_back(view, entry.numbers, self.messages)
            case Compacted() | Rewound() | Checkpointed():
                return view

    def _saved(self, at: float, kind: SavedKind, after: View, name: str = "") -> Chain[Saved]:
        now = Saved(
            position=len(self.entries),
            messages=len(self.messages),
            kind=kind,
            at=at,
            view=self.view,
            after=after,
            name=name,
        )
        return self.saved.append(now)


def _numbered(entry: Appended) -> list[Numbered]:
    if len(entry.messages) != len(entry.tokens):
        raise IllegalEntry(f"{len(entry.messages)} messages came with {len(entry.tokens)} sizes")
    return [
        Numbered(message=message, tokens=tokens)
        for message, tokens in zip(entry.messages, entry.tokens, strict=True)
    ]
