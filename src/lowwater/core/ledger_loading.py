"""Reopening a stored ledger: views are rebuilt from its landmarks, and messages stay in the store until something reads them."""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import NamedTuple

from lowwater.core.entries import (
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    ModelChanged,
    Opened,
    PreambleChanged,
    Retracted,
    Rewound,
)
from lowwater.core.ledger import (
    Ledger,
    Numbered,
    PastView,
    Restored,
    Saved,
    original_items,
    resolve_items,
    restore_view,
)
from lowwater.core.sequences import AppendOnlyList, LazySequence
from lowwater.core.stored import Landmark, LandmarkKind, Outline
from lowwater.core.view import Item, Summary, View
from lowwater.errors import IllegalEntry


def reopen(outline: Outline, entries: LazySequence[Entry], messages: LazySequence[Numbered]) -> Ledger:
    """Return the ledger that `outline` describes; `entries` and `messages` fetch from the store what is read."""
    past = _StoredViews(outline, AppendOnlyList(before=entries), AppendOnlyList(before=messages))
    opened = entries[0] if outline.entries else None
    return Ledger(
        entries=AppendOnlyList(before=entries),
        messages=AppendOnlyList(before=messages),
        view=past.at(outline.entries).view,
        saved=AppendOnlyList(past.saved()),
        preambles=AppendOnlyList(
            each.position for each in outline.landmarks if each.kind == "preamble_changed"
        ),
        retractions=AppendOnlyList(each.position for each in outline.landmarks if each.kind == "taken_back"),
        vocabulary=opened.vocabulary if isinstance(opened, Opened) else "",
        bygone=past,
    )


class _Total(NamedTuple):
    """How many messages a ledger had at some position, and their size together."""

    messages: int
    tokens: int


class _StoredViews:
    """The views of a ledger that is in the store (`PastViews`), each rebuilt at most once."""

    def __init__(
        self, outline: Outline, entries: AppendOnlyList[Entry], messages: AppendOnlyList[Numbered]
    ) -> None:
        self._outline = outline
        self._landmarks = outline.landmarks
        self._entries = entries
        self._messages = messages
        self._views: dict[int, View] = {}

    def saved(self) -> Iterable[Saved]:
        """Yield each compaction, rewind and named checkpoint, oldest first."""
        for landmark in self._landmarks:
            match landmark.kind:
                case "compacted" | "rewound" | "checkpointed" as kind:
                    entry = self._entries[landmark.position] if kind == "checkpointed" else None
                    yield Saved(
                        position=landmark.position,
                        messages=landmark.messages,
                        kind=kind,
                        at=landmark.at,
                        name=entry.name if isinstance(entry, Checkpointed) else "",
                    )
                case _:
                    continue

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return self._outline.entries

    def at(self, position: int) -> PastView:
        """Return the view from when the ledger had `position` entries.

        The views that rewinds went back to are rebuilt first, oldest first: a chain of thousands must not recurse.
        """
        for earlier in self._needed(position):
            self._view(earlier)
        return PastView(view=self._view(position), message_count=self._total(position).messages)

    def _needed(self, position: int) -> list[int]:
        """Return the positions whose views the view at `position` is made of, oldest first."""
        needed: set[int] = set()
        waiting = [position]
        while waiting:
            place = waiting.pop()
            for rewind in (self._last_rewrite(place), self._rewind_keeping_later(place)):
                entry = self._entries[rewind.position] if rewind is not None else None
                if rewind is None or not isinstance(entry, Rewound):
                    continue
                wanted = {entry.to} if entry.discard_later else {entry.to, rewind.position}
                waiting.extend(wanted - needed - set(self._views))
                needed |= wanted
        return sorted(needed - set(self._views))

    def _view(self, position: int) -> View:
        if position not in self._views:
            self._views[position] = self._rebuild(position)
        return self._views[position]

    def _rebuild(self, position: int) -> View:
        preamble = self._preamble_at(position)
        view = View(
            model=self._model_at(position),
            system=preamble.system if preamble else b"",
            tools=preamble.tools if preamble else b"",
            preamble_tokens=preamble.tokens if preamble else 0,
        )
        return view.showing(self._items_at(position), original_tokens=self._original_tokens_at(position))

    def _items_at(self, position: int) -> list[Item]:
        """Start where the view was last replaced, add the messages since, and leave out those that were retracted."""
        landmark = self._last_rewrite(position)
        since = 0 if landmark is None else landmark.messages
        items = [] if landmark is None else self._items_after(landmark)
        items = [*items, *original_items(self._messages, since + 1, self._total(position).messages)]
        gone = self._retracted(0 if landmark is None else landmark.position, position)
        return [item for item in items if isinstance(item, Summary) or item.number not in gone]

    def _items_after(self, landmark: Landmark) -> Iterable[Item]:
        match entry := self._entries[landmark.position]:
            case Compacted():
                return resolve_items(entry.items, self._messages)
            case Rewound(discard_later=True):
                return self._view(entry.to).items
            case Rewound():
                return self._restored(landmark, entry).items
            case _:
                raise IllegalEntry(f"entry {landmark.position} is not what the outline says")

    def _original_tokens_at(self, position: int) -> int:
        """Return the size of all messages a view stands for.

        Appended messages add to it, retracted ones are subtracted, and a compaction changes nothing. A rewind continues from
        the size at the position it went back to.
        """
        total = 0
        while True:
            landmark = self._last(position, "rewound")
            start = 0 if landmark is None else landmark.position
            gone = self._retracted(start, position).difference(self._left_by(landmark))
            total += self._total(position).tokens - sum(self._messages[n - 1].tokens for n in gone)
            if landmark is None:
                return total
            total -= landmark.tokens
            entry = self._entries[landmark.position]
            assert isinstance(entry, Rewound)
            if not entry.discard_later:
                return total + self._restored(landmark, entry).original_tokens
            position = entry.to

    def _rewind_keeping_later(self, position: int) -> Landmark | None:
        """Return the rewind that kept later messages and that the size at `position` depends on, if there is one."""
        while (landmark := self._last(position, "rewound")) is not None:
            entry = self._entries[landmark.position]
            assert isinstance(entry, Rewound)
            if not entry.discard_later:
                return landmark
            position = entry.to
        return None

    def _retracted(self, start: int, position: int) -> set[int]:
        """Return the numbers of the messages that were retracted between two positions."""
        gone: set[int] = set()
        for landmark in self._landmarks[self._first_from(start) : self._first_from(position)]:
            if landmark.kind == "taken_back":
                entry = self._entries[landmark.position]
                assert isinstance(entry, Retracted)
                gone.update(entry.numbers)
        return gone

    def _left_by(self, landmark: Landmark | None) -> Collection[int]:
        """Return the numbers of the messages that a rewind itself removed from the view."""
        entry = None if landmark is None else self._entries[landmark.position]
        if landmark is None or not isinstance(entry, Rewound) or not entry.discard_later:
            return ()
        return range(self._total(entry.to).messages + 1, landmark.messages + 1)

    def _restored(self, landmark: Landmark, entry: Rewound) -> Restored:
        past, now = self._view(entry.to), self._view(landmark.position)
        return restore_view(past, now, self._messages, message_count=self._total(entry.to).messages)

    def _preamble_at(self, position: int) -> PreambleChanged | None:
        while (landmark := self._last(position, "preamble_changed", "rewound")) is not None:
            match entry := self._entries[landmark.position]:
                case PreambleChanged():
                    return entry
                case Rewound(discard_later=True):
                    position = entry.to
                case _:
                    position = landmark.position
        return None

    def _model_at(self, position: int) -> str:
        while (landmark := self._last(position, "opened", "model_changed", "rewound")) is not None:
            match entry := self._entries[landmark.position]:
                case Opened() | ModelChanged():
                    return entry.model
                case Rewound(discard_later=True):
                    position = entry.to
                case _:
                    position = landmark.position
        return ""

    def _last_rewrite(self, position: int) -> Landmark | None:
        """Return the last compaction or rewind before a position: either replaces the view as a whole."""
        return self._last(position, "compacted", "rewound")

    def _last(self, position: int, *kinds: LandmarkKind) -> Landmark | None:
        """Return the last landmark of these kinds before a position."""
        for index in range(self._first_from(position) - 1, -1, -1):
            if self._landmarks[index].kind in kinds:
                return self._landmarks[index]
        return None

    def _total(self, position: int) -> _Total:
        """Return how many messages there were when the ledger had `position` entries, and their size."""
        if position == self._outline.entries:
            return _Total(self._outline.messages, self._outline.tokens)
        index = self._first_from(position)
        if index < len(self._landmarks) and self._landmarks[index].position == position:
            return _Total(self._landmarks[index].messages, self._landmarks[index].tokens)
        nearest = self._landmarks[index - 1] if index else None
        start = (0, 0, 0) if nearest is None else (nearest.position, nearest.messages, nearest.tokens)
        between = [each for each in self._entries[start[0] : position] if isinstance(each, Appended)]
        return _Total(
            start[1] + sum(len(each.messages) for each in between),
            start[2] + sum(sum(each.tokens) for each in between),
        )

    def _first_from(self, position: int) -> int:
        return bisect_left(self._landmarks, position, key=lambda landmark: landmark.position)
