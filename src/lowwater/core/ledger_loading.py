"""A stored ledger opened again: its view is rebuilt from landmarks, and the messages behind it stay in the store until they are wanted."""

from bisect import bisect_left
from collections.abc import Iterable
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
from lowwater.core.ledger import Ledger, Numbered, Restored, Saved, Then, originals, resolve, rewound
from lowwater.core.sequences import AppendOnlyList, LazySequence
from lowwater.core.stored import Landmark, LandmarkKind, Outline
from lowwater.core.view import Item, Summary, View
from lowwater.errors import IllegalEntry


def reopen(outline: Outline, entries: LazySequence[Entry], messages: LazySequence[Numbered]) -> Ledger:
    """Return the ledger that an outline is of; `entries` and `messages` are all it has, elsewhere."""
    bygone = Past(outline, AppendOnlyList(before=entries), AppendOnlyList(before=messages))
    opened = entries[0] if outline.entries else None
    return Ledger(
        entries=AppendOnlyList(before=entries),
        messages=AppendOnlyList(before=messages),
        view=bygone.at(outline.entries).view,
        saved=AppendOnlyList(bygone.saved()),
        preambles=AppendOnlyList(
            each.position for each in outline.landmarks if each.kind == "preamble_changed"
        ),
        vocabulary=opened.vocabulary if isinstance(opened, Opened) else "",
        bygone=bygone,
    )


class _Came(NamedTuple):
    messages: int
    tokens: int


class Past:
    """The views of a ledger that lies elsewhere, each worked out once."""

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

    def at(self, position: int) -> Then:
        """Return how it was when the ledger had `position` entries.

        What a rewind went back to is worked out first, oldest first: there may be thousands, one behind the other.
        """
        for earlier in self._needed(position):
            self._view(earlier)
        return Then(view=self._view(position), came=self._came(position).messages)

    def _needed(self, position: int) -> list[int]:
        """Return the moments whose views this one is made of, oldest first."""
        needed: set[int] = set()
        waiting = [position]
        while waiting:
            place = waiting.pop()
            turn = self._turn(place)
            for rewind in (turn, self._kept_later(place)):
                entry = self._entries[rewind.position] if rewind is not None else None
                if rewind is None or not isinstance(entry, Rewound):
                    continue
                wanted = {entry.to} if entry.discard_later else {entry.to, rewind.position}
                waiting.extend(wanted - needed - set(self._views))
                needed |= wanted
        return sorted(needed - set(self._views))

    def _view(self, position: int) -> View:
        if position not in self._views:
            self._views[position] = self._worked_out(position)
        return self._views[position]

    def _worked_out(self, position: int) -> View:
        preamble = self._preamble_at(position)
        view = View(
            model=self._model_at(position),
            system=preamble.system if preamble else b"",
            tools=preamble.tools if preamble else b"",
            preamble_tokens=preamble.tokens if preamble else 0,
        )
        return view.showing(self._items_at(position), whole=self._whole_at(position))

    def _items_at(self, position: int) -> list[Item]:
        """Start where the view was last changed as a whole, add what came since, and leave out what was taken back."""
        turn = self._turn(position)
        since = 0 if turn is None else turn.messages
        items = [] if turn is None else self._items_after(turn)
        items = [*items, *originals(self._messages, since + 1, self._came(position).messages)]
        gone = self._taken_back(0 if turn is None else turn.position, position)
        return [item for item in items if isinstance(item, Summary) or item.number not in gone]

    def _items_after(self, turn: Landmark) -> Iterable[Item]:
        match entry := self._entries[turn.position]:
            case Compacted():
                return resolve(entry.stands, self._messages)
            case Rewound(discard_later=True):
                return self._view(entry.to).items
            case Rewound():
                return self._rewound(turn, entry).items
            case _:
                raise IllegalEntry(f"entry {turn.position} is not what the outline says")

    def _whole_at(self, position: int) -> int:
        """Messages add to it and those taken back leave it, compactions do not change it, and a rewind starts elsewhere."""
        whole = 0
        while True:
            turn = self._last(position, "rewound")
            start = 0 if turn is None else turn.position
            gone = self._taken_back(start, position)
            whole += self._came(position).tokens - sum(self._messages[n - 1].tokens for n in gone)
            if turn is None:
                return whole
            whole -= turn.tokens
            entry = self._entries[turn.position]
            assert isinstance(entry, Rewound)
            if not entry.discard_later:
                return whole + self._rewound(turn, entry).whole
            position = entry.to

    def _kept_later(self, position: int) -> Landmark | None:
        """Return the rewind whose views the size at a position depends on, if there is one."""
        while (turn := self._last(position, "rewound")) is not None:
            entry = self._entries[turn.position]
            assert isinstance(entry, Rewound)
            if not entry.discard_later:
                return turn
            position = entry.to
        return None

    def _taken_back(self, start: int, position: int) -> set[int]:
        """Return the numbers that were taken back between two moments."""
        gone: set[int] = set()
        for landmark in self._landmarks[self._first_from(start) : self._first_from(position)]:
            if landmark.kind == "taken_back":
                entry = self._entries[landmark.position]
                assert isinstance(entry, Retracted)
                gone.update(entry.numbers)
        return gone

    def _rewound(self, turn: Landmark, entry: Rewound) -> Restored:
        then, now = self._view(entry.to), self._view(turn.position)
        return rewound(then, now, self._messages, came=self._came(entry.to).messages)

    def _preamble_at(self, position: int) -> PreambleChanged | None:
        while (turn := self._last(position, "preamble_changed", "rewound")) is not None:
            match entry := self._entries[turn.position]:
                case PreambleChanged():
                    return entry
                case Rewound(discard_later=True):
                    position = entry.to
                case _:
                    position = turn.position
        return None

    def _model_at(self, position: int) -> str:
        while (turn := self._last(position, "opened", "model_changed", "rewound")) is not None:
            match entry := self._entries[turn.position]:
                case Opened() | ModelChanged():
                    return entry.model
                case Rewound(discard_later=True):
                    position = entry.to
                case _:
                    position = turn.position
        return ""

    def _turn(self, position: int) -> Landmark | None:
        return self._last(position, "compacted", "rewound")

    def _last(self, position: int, *kinds: LandmarkKind) -> Landmark | None:
        """Return the last landmark of these kinds before a position."""
        for index in range(self._first_from(position) - 1, -1, -1):
            if self._landmarks[index].kind in kinds:
                return self._landmarks[index]
        return None

    def _came(self, position: int) -> _Came:
        """Return what had come when the ledger had `position` entries."""
        if position == self._outline.entries:
            return _Came(self._outline.messages, self._outline.tokens)
        index = self._first_from(position)
        if index < len(self._landmarks) and self._landmarks[index].position == position:
            return _Came(self._landmarks[index].messages, self._landmarks[index].tokens)
        nearest = self._landmarks[index - 1] if index else None
        start = (0, 0, 0) if nearest is None else (nearest.position, nearest.messages, nearest.tokens)
        between = [each for each in self._entries[start[0] : position] if isinstance(each, Appended)]
        return _Came(
            start[1] + sum(len(each.messages) for each in between),
            start[2] + sum(sum(each.tokens) for each in between),
        )

    def _first_from(self, position: int) -> int:
        return bisect_left(self._landmarks, position, key=lambda landmark: landmark.position)
