"""What filled the window at each call of a session, by kind of content."""

from collections.abc import Iterable, Sequence
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


def fillings(entries: Iterable[Entry], records: Sequence[TurnRecord]) -> list[Filling]:
    """Return what filled the prompt of each recorded turn, in order.

    A turn's answer is appended at the moment of its record; what the view holds just before it is the turn's prompt. The kinds
    are counted as messages are, and scaled so that they add up to the prompt that the provider reported.
    """
    found: list[Filling] = []
    ledger, shown = Ledger(), dict.fromkeys(FILL_KINDS, 0)
    for entry in entries:
        is_answer = isinstance(entry, Appended) and any(each.role == "assistant" for each in entry.messages)
        if is_answer:
            while len(found) < len(records) and records[len(found)].at <= entry.at:
                found.append(_scaled(shown, records[len(found)]))
        ledger = ledger.append(entry)
        if isinstance(entry, Appended):
            for message, tokens in zip(entry.messages, entry.tokens, strict=True):
                _add_message(shown, message, tokens)
        else:
            shown = _kinds_of(ledger.view)
    return [*found, *(_scaled(shown, record) for record in records[len(found) :])]


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
