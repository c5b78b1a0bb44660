"""Everything that happened in a session, append-only, with its view kept up to date."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    KeptRange,
    ModelChanged,
    Opened,
    PreambleChanged,
    Retracted,
    Rewound,
    SummarizedSpan,
    ViewItem,
    apply_edits,
)
from lowwater.core.messages import Message, Text, message_with
from lowwater.core.sequences import AppendOnlyList
from lowwater.core.view import Edited, Item, Original, Summary, View
from lowwater.errors import IllegalEntry


class Numbered(Struct, frozen=True, kw_only=True):
    """An appended message and its size; its number is its place in the ledger's messages, from 1."""

    message: Message
    tokens: int


class Restored(NamedTuple):
    """The items of a view after a rewind, and the size of all messages they stand for."""

    items: list[Item]
    whole: int


def resolve(stands: tuple[ViewItem, ...], messages: AppendOnlyList[Numbered]) -> list[Item]:
    """Return the items that these stands are, or raise IllegalEntry."""
    _bring(stands, messages)
    items: list[Item] = []
    for stand in stands:
        match stand:
            case KeptRange(numbers=numbers):
                items.extend(originals(messages, numbers.first, numbers.last))
            case AlteredMessage(number=number, edits=edits, tokens=tokens):
                original = numbered_in(messages, number).message
                message = apply_edits(original, edits)
                items.append(
                    Edited(number=number, original=original, edits=edits, message=message, tokens=tokens)
                )
            case SummarizedSpan(sources=sources, tokens=tokens, depth=depth):
                if any(not 1 <= s.first <= s.last <= len(messages) for s in sources):
                    raise IllegalEntry(f"a summary names messages beyond the {len(messages)} there are")
                message = Message(role=stand.role, parts=(Text(text=stand.text),))
                if stand.block:
                    message = message_with(stand.block)
                items.append(Summary(message=message, tokens=tokens, sources=sources, depth=depth))
    return items


def originals(messages: AppendOnlyList[Numbered], first: int, last: int) -> list[Item]:
    """Return the messages numbered `first` to `last` as they came, or raise IllegalEntry."""
    if first <= last and not (first >= 1 and last <= len(messages)):
        raise IllegalEntry(f"no messages {first} to {last} in a ledger of {len(messages)}")
    return [
        Original(number=number, message=each.message, tokens=each.tokens)
        for number, each in enumerate(messages[first - 1 : last], start=first)
    ]


def rewound(then: View, now: View, messages: AppendOnlyList[Numbered], *, came: int) -> Restored:
    """Return what was shown `then`, when so many messages had come, and behind it what is shown `now` and came later.

    What an earlier rewind discarded stays discarded.
    """
    later = [
        item
        for first, last in _runs(sorted(number for number in now.shown_numbers() if number > came))
        for item in originals(messages, first, last)
    ]
    return Restored(items=[*then.items, *later], whole=then.whole + sum(item.tokens for item in later))


def taken_back(view: View, numbers: Iterable[int], messages: AppendOnlyList[Numbered]) -> View:
    """Return the view without the messages with these numbers; what a summary stands for stays."""
    gone = set(numbers)
    kept = [item for item in view.items if isinstance(item, Summary) or item.number not in gone]
    shown = {item.number for item in view.items if not isinstance(item, Summary)}
    lost = sum(numbered_in(messages, number).tokens for number in gone & shown)
    return view.showing(kept, whole=view.whole - lost)


def numbered_in(messages: AppendOnlyList[Numbered], number: int) -> Numbered:
    """Return the message with this number, or raise IllegalEntry."""
    if not 1 <= number <= len(messages):
        raise IllegalEntry(f"no message {number} in a ledger of {len(messages)}")
    return messages[number - 1]


def _bring(stands: Iterable[ViewItem], messages: AppendOnlyList[Numbered]) -> None:
    """Look at neighbours together: where messages lie elsewhere, each look is a journey."""
    if messages.is_here:
        return
    for first, last in _runs(sorted(number for stand in stands for number in _in_person(stand))):
        _ = messages[max(0, first - 1) : last]


def _in_person(stand: ViewItem) -> Iterable[int]:
    match stand:
        case KeptRange(numbers=numbers):
            return range(numbers.first, numbers.last + 1)
        case AlteredMessage(number=number):
            return (number,)
        case SummarizedSpan():
            return ()


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of neighbours in ascending numbers."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[start], numbers[at - 1]
            start = at


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
    the ledger they came from. One that was opened again has its older part elsewhere (`core/ledger_loading.py`).
    """

    entries: AppendOnlyList[Entry] = AppendOnlyList()
    messages: AppendOnlyList[Numbered] = AppendOnlyList()
    view: View = View()
    saved: AppendOnlyList[Saved] = AppendOnlyList()
    """Each compaction, rewind and named checkpoint, oldest first."""
    preambles: AppendOnlyList[int] = AppendOnlyList()
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
            case ModelChanged() | Retracted():
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
            case Retracted():
                return taken_back(view, entry.numbers, self.messages)
            case Compacted() | Rewound() | Checkpointed():
                return view

    def _saved(self, at: float, kind: SavedKind, after: View, name: str = "") -> AppendOnlyList[Saved]:
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
