"""The ledger: everything that happened in a session, append-only, with the current view kept up to date."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, Protocol, cast

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


SavedKind = Literal["compacted", "rewound", "checkpointed"]


class Saved(Struct, frozen=True, kw_only=True):
    """A compaction, rewind or checkpoint, made when the ledger had `position` entries and `messages` messages."""

    position: int
    messages: int
    kind: SavedKind
    at: float
    view: View | None = None
    """The view before that entry; None if it has to be rebuilt from the store."""
    after: View | None = None
    """The view after that entry; None if it has to be rebuilt from the store."""
    name: str = ""


class PastView(Struct, frozen=True, kw_only=True):
    """The view at an earlier position of a ledger, and how many messages the ledger had then."""

    view: View
    message_count: int


class PastViews(Protocol):
    """Rebuilds earlier views of the part of a ledger that is still in the store."""

    @property
    def entries(self) -> int:
        """How many entries that part has."""
        ...

    def at(self, position: int) -> PastView:
        """Return the view from when the ledger had `position` entries."""
        ...


class Ledger(Struct, frozen=True, kw_only=True):
    """A session's ledger, an immutable value: `append` returns the next one and leaves this one as it is.

    Appending costs the same however long the history is: entries, messages and the view share their storage with
    the ledger they came from. A ledger that was reopened leaves its older part in the store (`core/ledger_loading.py`).
    """

    entries: AppendOnlyList[Entry] = AppendOnlyList()
    messages: AppendOnlyList[Numbered] = AppendOnlyList()
    view: View = View()
    saved: AppendOnlyList[Saved] = AppendOnlyList()
    """Each compaction, rewind and named checkpoint, oldest first."""
    preambles: AppendOnlyList[int] = AppendOnlyList()
    """The positions of the entries that changed the system prompt or the tools, in order."""
    retractions: AppendOnlyList[int] = AppendOnlyList()
    """The positions of the entries in which the client took messages back, in order."""
    vocabulary: str = ""
    bygone: PastViews | None = None
    """The earlier views of a reopened ledger; None if all of it is in memory."""

    def append(self, entry: Entry) -> "Ledger":
        """Return the ledger with `entry` added at its end, or raise IllegalEntry."""
        if isinstance(entry, Appended):
            return self._append_messages((entry,))
        entries = self.entries.append(entry)
        match entry:
            case Opened():
                view = self._advance(self.view, entry, len(self.messages))
                return replace(self, entries=entries, view=view, vocabulary=entry.vocabulary)
            case PreambleChanged():
                view = self._advance(self.view, entry, len(self.messages))
                preambles = self.preambles.append(len(self.entries))
                return replace(self, entries=entries, view=view, preambles=preambles)
            case ModelChanged():
                view = self._advance(self.view, entry, len(self.messages))
                return replace(self, entries=entries, view=view)
            case Retracted():
                view = self._advance(self.view, entry, len(self.messages))
                retractions = self.retractions.append(len(self.entries))
                return replace(self, entries=entries, view=view, retractions=retractions)
            case Compacted():
                view = self.view.showing(
                    resolve_items(entry.items, self.messages), original_tokens=self.view.original_tokens
                )
                saved = self._save(entry.at, "compacted", view)
                return replace(self, entries=entries, view=view, saved=saved)
            case Rewound():
                view = self._rewind(entry)
                saved = self._save(entry.at, "rewound", view)
                return replace(self, entries=entries, view=view, saved=saved)
            case Checkpointed():
                saved = self._save(entry.at, "checkpointed", self.view, entry.name)
                return replace(self, entries=entries, saved=saved)

    def extend(self, entries: Iterable[Entry]) -> "Ledger":
        """Return the ledger with all `entries` added at its end."""
        ledger = self
        for is_messages, run in groupby(entries, key=lambda entry: isinstance(entry, Appended)):
            if is_messages:
                ledger = ledger._append_messages(cast("tuple[Appended, ...]", tuple(run)))
            else:
                for entry in run:
                    ledger = ledger.append(entry)
        return ledger

    def _append_messages(self, run: Sequence[Appended]) -> "Ledger":
        """Return the ledger with entries of nothing but messages added, all of them in one step."""
        numbered = [each for entry in run for each in _numbered(entry)]
        grown = replace(self, entries=self.entries.extend(run), messages=self.messages.extend(numbered))
        return replace(grown, view=_showing_new(self.view, grown.messages, len(self.messages) + 1))

    def message(self, number: int) -> Message:
        """Return the original message with this number."""
        return _numbered_message(self.messages, number).message

    def history(self) -> list[Message]:
        """Return all messages ever appended, in order, as they came."""
        return [numbered.message for numbered in self.messages]

    def retracted(self) -> frozenset[int]:
        """Return the numbers of the messages that the client took back, without those that are in the view again."""
        numbers: set[int] = set()
        for position in self.retractions:
            entry = self.entries[position]
            assert isinstance(entry, Retracted)
            numbers.update(entry.numbers)
        return frozenset(numbers - self.view.shown_numbers()) if numbers else frozenset()

    def view_at(self, position: int) -> View:
        """Return the view as it was when the ledger had `position` entries."""
        return self._past_view(position).view

    def view_before(self, saved: Saved) -> View:
        """Return the view as it was before a compaction, a rewind or a checkpoint of this ledger."""
        if saved.view is not None:
            return saved.view
        assert self.bygone is not None
        return self.bygone.at(saved.position).view

    def _advance(self, view: View, entry: Entry, message_count: int) -> View:
        """Return `view` after `entry`, before which there were `message_count` messages.

        Entries that replace the view as a whole are handled in `append`.
        """
        match entry:
            case Opened() | ModelChanged():
                return replace(view, model=entry.model)
            case Appended():
                last = message_count + len(entry.messages)
                return _showing_new(view, self.messages, message_count + 1, last)
            case PreambleChanged():
                return replace(view, system=entry.system, tools=entry.tools, preamble_tokens=entry.tokens)
            case Retracted():
                return _without_messages(view, entry.numbers, self.messages)
            case Compacted() | Rewound() | Checkpointed():
                return view

    def _rewind(self, entry: Rewound) -> View:
        past = self._past_view(entry.to)
        if entry.discard_later:
            return past.view
        restored = restore_view(past.view, self.view, self.messages, message_count=past.message_count)
        return self.view.showing(restored.items, original_tokens=restored.original_tokens)

    def _past_view(self, position: int) -> PastView:
        """Return the view at `position`: start from the nearest saved view before it and replay the entries since."""
        if not 0 <= position <= len(self.entries):
            raise IllegalEntry(f"no position {position} in a ledger of {len(self.entries)} entries")
        if position == len(self.entries):
            return PastView(view=self.view, message_count=len(self.messages))
        index = bisect_left(self.saved, position, key=lambda saved: saved.position)
        nearest = self.saved[index - 1] if index else None
        start, past = 0, PastView(view=View(), message_count=0)
        if nearest is not None and nearest.after is not None:
            start = nearest.position + 1
            past = PastView(view=nearest.after, message_count=nearest.messages)
        elif self.bygone is not None:
            start = min(position, self.bygone.entries)
            past = self.bygone.at(start)
        view, message_count = past.view, past.message_count
        for entry in self.entries[start:position]:
            view = self._advance(view, entry, message_count)
            message_count += len(entry.messages) if isinstance(entry, Appended) else 0
        return PastView(view=view, message_count=message_count)

    def _save(self, at: float, kind: SavedKind, after: View, name: str = "") -> AppendOnlyList[Saved]:
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


def _showing_new(view: View, messages: AppendOnlyList[Numbered], first: int, last: int | None = None) -> View:
    """Return a view with the messages from number `first` on at its end."""
    new = original_items(messages, first, len(messages) if last is None else last)
    size = sum(item.tokens for item in new)
    return replace(
        view,
        items=view.items.extend(new),
        tokens=view.tokens + size,
        original_tokens=view.original_tokens + size,
    )


def _numbered(entry: Appended) -> list[Numbered]:
    if len(entry.messages) != len(entry.tokens):
        raise IllegalEntry(f"{len(entry.messages)} messages came with {len(entry.tokens)} sizes")
    return [
        Numbered(message=message, tokens=tokens)
        for message, tokens in zip(entry.messages, entry.tokens, strict=True)
    ]


def _numbered_message(messages: AppendOnlyList[Numbered], number: int) -> Numbered:
    """Return the message with this number, or raise IllegalEntry."""
    if not 1 <= number <= len(messages):
        raise IllegalEntry(f"no message {number} in a ledger of {len(messages)}")
    return messages[number - 1]


def original_items(messages: AppendOnlyList[Numbered], first: int, last: int) -> list[Item]:
    """Return the messages numbered `first` to `last` as unedited items, or raise IllegalEntry."""
    if first <= last and not (first >= 1 and last <= len(messages)):
        raise IllegalEntry(f"no messages {first} to {last} in a ledger of {len(messages)}")
    return [
        Original(number=number, message=each.message, tokens=each.tokens)
        for number, each in enumerate(messages[first - 1 : last], start=first)
    ]


def resolve_items(view_items: tuple[ViewItem, ...], messages: AppendOnlyList[Numbered]) -> list[Item]:
    """Return the items that a compaction's entry describes, with their messages, or raise IllegalEntry."""
    _prefetch(view_items, messages)
    items: list[Item] = []
    for view_item in view_items:
        match view_item:
            case KeptRange(numbers=numbers):
                items.extend(original_items(messages, numbers.first, numbers.last))
            case AlteredMessage(number=number, edits=edits, tokens=tokens):
                original = _numbered_message(messages, number).message
                message = apply_edits(original, edits)
                items.append(
                    Edited(number=number, original=original, edits=edits, message=message, tokens=tokens)
                )
            case SummarizedSpan(sources=sources, tokens=tokens, depth=depth):
                if any(not 1 <= s.first <= s.last <= len(messages) for s in sources):
                    raise IllegalEntry(f"a summary names messages beyond the {len(messages)} there are")
                message = Message(role=view_item.role, parts=(Text(text=view_item.text),))
                if view_item.block:
                    message = message_with(view_item.block)
                items.append(Summary(message=message, tokens=tokens, sources=sources, depth=depth))
    return items


def _prefetch(view_items: Iterable[ViewItem], messages: AppendOnlyList[Numbered]) -> None:
    """Fetch the messages these items show, adjacent ones together: each fetch from a store is a query."""
    if messages.is_here:
        return
    for first, last in _runs(sorted(number for item in view_items for number in _shown_messages(item))):
        _ = messages[max(0, first - 1) : last]


def _shown_messages(view_item: ViewItem) -> Iterable[int]:
    """Return the numbers of the messages an item shows, edited or not; a summary shows none of its sources."""
    match view_item:
        case KeptRange(numbers=numbers):
            return range(numbers.first, numbers.last + 1)
        case AlteredMessage(number=number):
            return (number,)
        case SummarizedSpan():
            return ()


def next_compaction_number(ledger: Ledger) -> int:
    """Return the number of the next compaction; the checkpoint before it has the same number."""
    return 1 + sum(saved.kind == "compacted" for saved in ledger.saved)


class Restored(NamedTuple):
    """The items of a view after a rewind, and the size of all messages they stand for."""

    items: list[Item]
    original_tokens: int


def restore_view(
    past: View, now: View, messages: AppendOnlyList[Numbered], *, message_count: int
) -> Restored:
    """Return the items of `past`, followed by the messages of `now` that are newer than the first `message_count`.

    What an earlier rewind discarded stays discarded.
    """
    later = [
        item
        for first, last in _runs(sorted(number for number in now.shown_numbers() if number > message_count))
        for item in original_items(messages, first, last)
    ]
    return Restored(
        items=[*past.items, *later], original_tokens=past.original_tokens + sum(item.tokens for item in later)
    )


def _without_messages(view: View, numbers: Iterable[int], messages: AppendOnlyList[Numbered]) -> View:
    """Return the view without the messages with these numbers; those inside a summary stay in it."""
    gone = set(numbers)
    kept = [item for item in view.items if isinstance(item, Summary) or item.number not in gone]
    shown = {item.number for item in view.items if not isinstance(item, Summary)}
    lost = sum(_numbered_message(messages, number).tokens for number in gone & shown)
    return view.showing(kept, original_tokens=view.original_tokens - lost)


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each run of consecutive numbers; `numbers` are ascending."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[start], numbers[at - 1]
            start = at
