"""Which of Hermes' rows a compaction left, and which are conversation.

A compaction writes what is shown from then on: copies of the first messages, a summary, copies of the last ones; into a
new session, or behind the old rows of the same one. Here all of that is marked `compact_summary`: without it the
history is whole, and from the first of it on it is the prompt.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.messages import Message
from lowwater.replay.importing.hermes_rows import Row

_BEGINNINGS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"


class Left(Struct, frozen=True, kw_only=True):
    """The rows from `start` to before `end` were left by one compaction."""

    start: int
    end: int


def left_by_compactions(rows: Sequence[Row], starts: Sequence[int]) -> list[Left]:
    """Return what each compaction left, in order; `starts` are the first rows of sessions that continue another."""
    found: list[Left] = []
    earlier = _Earlier()
    shown = at = 0
    while at < len(rows):
        start = at if at in starts else _start_before(rows, shown, at)
        if start is None:
            earlier.take(rows[at].message, at)
            at += 1
            continue
        earlier.forget_from(start)
        left = Left(start=start, end=_end_of(rows, start, at, earlier))
        found.append(left)
        shown = start
        for position in range(left.start, left.end):
            earlier.take(rows[position].message, position)
        at = max(left.end, at)
        if left.end == left.start:  # a new session that begins with new messages
            earlier.take(rows[at].message, at)
            at += 1
    return found


def is_summary(message: Message) -> bool:
    """Tell whether a message is, or ends with, what Hermes wrote for messages that it took out."""
    text = message.text.lstrip()
    if _MERGED in text:
        return True
    return text.startswith(_BEGINNINGS)


def _start_before(rows: Sequence[Row], shown: int, at: int) -> int | None:
    """Return where the copies before a summary begin; None if the row at hand is no summary."""
    if at == 0 or not is_summary(rows[at].message):
        return None
    for copies in range((at - shown) // 2, 0, -1):
        pairs = zip(rows[shown : shown + copies], rows[at - copies : at], strict=True)
        if all(_is_copy(new.message, old.message) for old, new in pairs):
            return at - copies
    return at


def _end_of(rows: Sequence[Row], start: int, at: int, earlier: "_Earlier") -> int:
    """Return the end of the copies and the summary: copies stand in the order of what they copy."""
    end, last = start, -1
    while end < len(rows):
        message = rows[end].message
        if not is_summary(message):
            copied = earlier.position(message, after=last)
            if copied is None and end >= at:
                break
            last = last if copied is None else copied
        end += 1
    return end


class _Earlier:
    """The messages so far, found again by content or by the tool calls that they make or answer."""

    def __init__(self) -> None:
        self._positions: defaultdict[object, list[int]] = defaultdict(list)
        self._keys: list[tuple[int, list[object]]] = []

    def take(self, message: Message, position: int) -> None:
        keys = _keys(message)
        self._keys.append((position, keys))
        for key in keys:
            self._positions[key].append(position)

    def position(self, message: Message, *, after: int) -> int | None:
        """Return the first place behind `after` where this message stood, whole or with its outputs shortened."""
        for key in _keys(message):
            places = self._positions.get(key, [])
            index = bisect_right(places, after)
            if index < len(places):
                return places[index]
        return None

    def forget_from(self, position: int) -> None:
        while self._keys and self._keys[-1][0] >= position:
            for key in self._keys.pop()[1]:
                self._positions[key].pop()


def _is_copy(message: Message, of: Message) -> bool:
    return not set(_keys(of)).isdisjoint(_keys(message))


def _keys(message: Message) -> list[object]:
    calls = [("call", call.id) for call in message.calls]
    results = [("result", result.call_id) for result in message.results]
    return [message.digest, *calls, *results]
