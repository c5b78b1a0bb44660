"""Everything that happened in a session, append-only, with its view kept up to date."""

from bisect import bisect_left, bisect_right
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
)
from lowwater.values.message import Message
from lowwater.values.resolving import Numbered, numbered_in, resolve, rewound
from lowwater.values.view import Item, Original, View

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
    name: str = ""


class Bygone(Protocol):
    """Works out what the view was in the part of a ledger that lies elsewhere."""

    def view_at(self, position: int) -> View:
        """Return the view as it was when the ledger had `position` entries."""
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
                view = replace(self.view, model=entry.model)
                return replace(self, entries=entries, view=view, vocabulary=entry.vocabulary)
            case Appended():
                messages, view = self._appended(entry)
                return replace(self, entries=entries, messages=messages, view=view)
            case PreambleChanged():
                view = replace(
                    self.view, system=entry.system, tools=entry.tools, preamble_tokens=entry.tokens
                )
                preambles = self.preambles.append(len(self.entries))
                return replace(self, entries=entries, view=view, preambles=preambles)
            case ModelChanged():
                return replace(self, entries=entries, view=replace(self.view, model=entry.model))
            case Compacted():
                view = self._with_items(resolve(entry.stands, self.messages))
                return replace(self, entries=entries, view=view, saved=self._saved(entry.at, "compacted"))
            case Rewound():
                view = self._rewound(entry)
                return replace(self, entries=entries, view=view, saved=self._saved(entry.at, "rewound"))
            case Checkpointed():
                saved = self._saved(entry.at, "checkpointed", entry.name)
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
        return self.bygone.view_at(saved.position)

    def _appended(self, entry: Appended) -> tuple[Chain[Numbered], View]:
        if len(entry.messages) != len(entry.tokens):
            raise IllegalEntry(f"{len(entry.messages)} messages came with {len(entry.tokens)} sizes")
        number = len(self.messages)
        numbered = [
            Numbered(message=message, tokens=tokens)
            for message, tokens in zip(entry.messages, entry.tokens, strict=True)
        ]
        items: list[Item] = [
            Original(number=number + at, message=new.message, tokens=new.tokens)
            for at, new in enumerate(numbered, start=1)
        ]
        size = sum(entry.tokens)
        view = replace(
            self.view,
            items=self.view.items.extend(items),
            tokens=self.view.tokens + size,
            whole=self.view.whole + size,
        )
        return self.messages.extend(numbered), view

    def _rewound(self, entry: Rewound) -> View:
        then = self._at(entry.to)
        if entry.discard_later:
            return then.view
        return self._with_items(*rewound(then.view, self.view, self.messages, came=len(then.messages)))

    def _at(self, position: int) -> "Ledger":
        """Return the ledger as it was when it had `position` entries."""
        if not 0 <= position <= len(self.entries):
            raise IllegalEntry(f"no position {position} in a ledger of {len(self.entries)} entries")
        if position == len(self.entries):
            return self
        index = bisect_right(self.saved, position, key=lambda saved: saved.position)
        if index == 0:
            return Ledger().extend(self.entries[:position])
        nearest = self.saved[index - 1]
        before = replace(
            self,
            entries=self.entries.first(nearest.position),
            messages=self.messages.first(nearest.messages),
            view=self.view_before(nearest),
            saved=self.saved.first(index - 1),
            preambles=self.preambles.first(bisect_left(self.preambles, nearest.position)),
        )
        return before.extend(self.entries[nearest.position : position])

    def _saved(self, at: float, kind: SavedKind, name: str = "") -> Chain[Saved]:
        now = Saved(
            position=len(self.entries),
            messages=len(self.messages),
            kind=kind,
            at=at,
            view=self.view,
            name=name,
        )
        return self.saved.append(now)

    def _with_items(self, items: list[Item], whole: int | None = None) -> View:
        return self.view.showing(items, whole=self.view.whole if whole is None else whole)
