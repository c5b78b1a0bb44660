"""What filled the window at each call of a session, by kind of content."""

from collections.abc import Callable, Sequence
from typing import Literal, get_args

from msgspec import Struct

from lowwater.core.entries import Appended, Entry
from lowwater.core.events import TurnRecord
from lowwater.core.ledger import Ledger
from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.core.view import Edited, Item, Original, Summary, View

FillKind = Literal["start", "user", "model", "calls", "results", "shortened", "summaries"]
FILL_KINDS: tuple[FillKind, ...] = get_args(FillKind)
"""System prompt and tools; what the user said; what the model said and thought; its tool calls; their results; messages of which a
compaction shows a part only; summaries and the block of pins."""
_PICTURE = 5_000
"""The weight of an image or a document in characters: about four times its tokens."""


class Filling(Struct, frozen=True, kw_only=True):
    """The size of a prompt by kind, in the model's tokens."""

    start: int = 0
    user: int = 0
    model: int = 0
    calls: int = 0
    results: int = 0
    shortened: int = 0
    summaries: int = 0


class FillingCounter:
    """Counts what filled the prompt of each recorded turn, and can go on when the session has.

    A turn's answer is appended at the moment of its record; what the view holds just before it is the turn's prompt. The kinds
    are counted as messages are, and scaled so that they add up to the prompt that the provider reported.
    """

    def __init__(self) -> None:
        self.entries = 0
        """How many entries were counted."""
        self._found: list[Filling] = []
        self._shown = dict.fromkeys(FILL_KINDS, 0)

    def count(
        self, entries: Sequence[Entry], records: Sequence[TurnRecord], view_at: Callable[[int], View]
    ) -> list[Filling]:
        """Return what filled the prompt of each turn in `records`, which are all of them, while `entries` are the new ones.

        `view_at` returns the view from when the session had so many entries. It is asked in ascending order.
        """
        found = self._found
        for entry in entries:
            self.entries += 1
            if not isinstance(entry, Appended):
                self._shown = _kinds_of(view_at(self.entries))
                continue
            if any(message.role == "assistant" for message in entry.messages):
                while len(found) < len(records) and records[len(found)].at <= entry.at:
                    found.append(_scaled(self._shown, records[len(found)]))
            for message, tokens in zip(entry.messages, entry.tokens, strict=True):
                _add_message(self._shown, message, tokens)
        return [*found, *(_scaled(self._shown, record) for record in records[len(found) :])]


class ReplayedViews:
    """The views of a session whose entries are all at hand, asked for in ascending order."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._ledger = Ledger()

    def at(self, position: int) -> View:
        """Return the view from when the session had `position` entries."""
        self._ledger = self._ledger.extend(self._entries[len(self._ledger.entries) : position])
        return self._ledger.view


def _kinds_of(view: View) -> dict[FillKind, int]:
    shown = dict.fromkeys(FILL_KINDS, 0)
    shown["start"] = view.preamble_tokens
    for item in view.items:
        _add_item(shown, item)
    return shown


def _add_item(shown: dict[FillKind, int], item: Item) -> None:
    match item:
        case Summary():
            shown["summaries"] += item.tokens
        case Edited():
            shown["shortened"] += item.tokens
        case Original():
            _add_message(shown, item.message, item.tokens)


def _add_message(shown: dict[FillKind, int], message: Message, tokens: int) -> None:
    """Add a message, split between its kinds by the characters of its parts."""
    weights: dict[FillKind, int] = {}
    for part in message.parts:
        kind = _kind(message, part)
        weights[kind] = weights.get(kind, 0) + _weight(part)
    left, whole = tokens, sum(weights.values())
    for kind, weight in weights.items():
        size = tokens * weight // whole if whole else 0
        shown[kind] += size
        left -= size
    shown[next(iter(weights), "user")] += left


def _kind(message: Message, part: AnyPart) -> FillKind:
    if isinstance(part, ToolResult) or message.role == "tool":
        return "results"
    if isinstance(part, ToolCall):
        return "calls"
    if message.role in {"system", "developer"}:
        return "start"
    return "model" if message.role == "assistant" else "user"


def _weight(part: AnyPart) -> int:
    match part:
        case Text(text=text):
            return len(text)
        case Thinking():
            return len(part.text) + len(part.signature)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case ToolResult():
            return sum(map(_weight, part.parts))
        case Opaque():
            return len(part.body)
        case Image() | Document():
            return _PICTURE


def _scaled(shown: dict[FillKind, int], record: TurnRecord) -> Filling:
    counted = sum(shown.values())
    usage = record.usage or record.expected
    if usage is None or not usage.prompt or not counted:
        return Filling(**shown)
    scaled = {kind: size * usage.prompt // counted for kind, size in shown.items()}
    scaled["start"] += usage.prompt - sum(scaled.values())
    return Filling(**scaled)
