"""Everything that happened in a session, append-only, with its view kept up to date."""

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lowwater.errors import IllegalEntry
from lowwater.values.chain import Chain
from lowwater.values.edits import apply_edits
from lowwater.values.entries import (
    Altered,
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    Kept,
    ModelChanged,
    Opened,
    PreambleChanged,
    Rewound,
    Stand,
    Summarized,
)
from lowwater.values.message import Message
from lowwater.values.parts import Text
from lowwater.values.view import Edited, Item, Original, Summary, View


class Numbered(Struct, frozen=True, kw_only=True):
    """An appended message and its size; its number is its place in the ledger's messages, from 1."""

    message: Message
    tokens: int


class Saved(Struct, frozen=True, kw_only=True):
    """The view as it was when the ledger had `position` entries and `messages` messages."""

    position: int
    messages: int
    view: View
    name: str = ""


class Ledger(Struct, frozen=True, kw_only=True):
    """A session's ledger: a value; `append` returns the next one and leaves this one as it is.

    Appending costs the same however long the history is: entries, messages and the view share their storage with
    the ledger they came from.
    """

    entries: Chain[Entry] = Chain()
    messages: Chain[Numbered] = Chain()
    view: View = View()
    saved: Chain[Saved] = Chain()
    """The view before each compaction and rewind and at each named checkpoint, oldest first."""
    vocabulary: str = ""

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
                return replace(self, entries=entries, view=view)
            case ModelChanged():
                return replace(self, entries=entries, view=replace(self.view, model=entry.model))
            case Compacted():
                view = self._with_items(self._resolve(entry.stands))
                return replace(self, entries=entries, view=view, saved=self.saved.append(self._save()))
            case Rewound():
                view = self._rewound(entry)
                return replace(self, entries=entries, view=view, saved=self.saved.append(self._save()))
            case Checkpointed():
                saved = self.saved.append(self._save(entry.name))
                return replace(self, entries=entries, saved=saved)

    def extend(self, entries: Iterable[Entry]) -> "Ledger":
        """Return the ledger with all `entries` behind it."""
        ledger = self
        for entry in entries:
            ledger = ledger.append(entry)
        return ledger

    def message(self, number: int) -> Message:
        """Return the original message with this number."""
        return self._numbered(number).message

    def history(self) -> list[Message]:
        """All messages ever appended, in order, as they came."""
        return [numbered.message for numbered in self.messages]

    def view_at(self, position: int) -> View:
        """Return the view as it was when the ledger had `position` entries."""
        return self._saved_at(position).view

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
        view = replace(
            self.view, items=self.view.items.extend(items), tokens=self.view.tokens + sum(entry.tokens)
        )
        return self.messages.extend(numbered), view

    def _resolve(self, stands: Iterable[Stand]) -> list[Item]:
        items: list[Item] = []
        for stand in stands:
            match stand:
                case Kept(numbers=numbers):
                    items.extend(self._original(n) for n in range(numbers.first, numbers.last + 1))
                case Altered(number=number, edits=edits, tokens=tokens):
                    original = self.message(number)
                    message = apply_edits(original, edits)
                    edited = Edited(
                        number=number, original=original, edits=edits, message=message, tokens=tokens
                    )
                    items.append(edited)
                case Summarized(sources=sources, tokens=tokens, depth=depth):
                    if any(not 1 <= s.first <= s.last <= len(self.messages) for s in sources):
                        raise IllegalEntry(
                            f"a summary names messages beyond the {len(self.messages)} there are"
                        )
                    message = Message(role=stand.role, parts=(Text(text=stand.text),))
                    items.append(Summary(message=message, tokens=tokens, sources=sources, depth=depth))
        return items

    def _rewound(self, entry: Rewound) -> View:
        then = self._saved_at(entry.to)
        if entry.discard_later:
            return then.view
        # Later means: shown now, and not there then. What an earlier rewind discarded stays discarded.
        later = sorted(number for number in self.view.shown_numbers() if number > then.messages)
        return self._with_items([*then.view.items, *(self._original(number) for number in later)])

    def _saved_at(self, position: int) -> Saved:
        if not 0 <= position <= len(self.entries):
            raise IllegalEntry(f"no position {position} in a ledger of {len(self.entries)} entries")
        if position == len(self.entries):
            return self._save()
        index = bisect_right(self.saved, position, key=lambda saved: saved.position)
        if index == 0:
            return Ledger().extend(self.entries[:position])._save()
        nearest = self.saved[index - 1]
        before = Ledger(
            entries=Chain(self.entries[: nearest.position]),
            messages=Chain(self.messages[: nearest.messages]),
            view=nearest.view,
            saved=Chain(self.saved[: index - 1]),
            vocabulary=self.vocabulary,
        )
        return before.extend(self.entries[nearest.position : position])._save()

    def _save(self, name: str = "") -> Saved:
        return Saved(position=len(self.entries), messages=len(self.messages), view=self.view, name=name)

    def _with_items(self, items: list[Item]) -> View:
        return replace(self.view, items=Chain(items), tokens=sum(item.tokens for item in items))

    def _original(self, number: int) -> Original:
        numbered = self._numbered(number)
        return Original(number=number, message=numbered.message, tokens=numbered.tokens)

    def _numbered(self, number: int) -> Numbered:
        if not 1 <= number <= len(self.messages):
            raise IllegalEntry(f"no message {number} in a ledger of {len(self.messages)}")
        return self.messages[number - 1]
