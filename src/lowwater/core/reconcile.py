"""Comparing the list of messages that a client sends with the ledger: what is new, and what the client changed or dropped."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Appended, Entry, ModelChanged, PreambleChanged, Retracted, Rewound
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.messages import AnyPart, Message, Text, Thinking, ToolCall, ToolResult, Wire
from lowwater.core.view import Summary, View, join_neighbours, neighbours_to_join

_BATCH = 256
"""Messages that are read together: in a reopened session each read may be a query."""


class Reconciled(Struct, frozen=True, kw_only=True):
    """How a client's list differs from the ledger."""

    new: tuple[Message, ...]
    """Messages to append."""
    rewind_to: int | None = None
    """The ledger position to rewind to first, if the client edited or dropped messages that the ledger has."""
    known: int = 0
    """How many of the client's messages the ledger has already."""
    retracted: tuple[int, ...] = ()
    """The numbers of messages that the client dropped and that can be matched out of the view without a rewind."""
    restated: tuple[PreambleChanged | ModelChanged, ...] = ()
    """System prompt, tools and model of now, if the rewind would change them: it is meant for messages only."""


def reconcile(ledger: Ledger, messages: Sequence[Message]) -> Reconciled:
    """Compare `messages`, the client's whole list, with the ledger.

    A client either keeps the whole history or continues from the view it was given; both are compared by content. Where
    its list differs from the history, the ledger is rewound to before the first difference.
    """
    matched = _match_view(ledger.view, messages)
    if matched is not None:
        return Reconciled(new=tuple(messages[matched:]), known=matched)
    branch = branch_of(ledger)
    known = _common_prefix((numbered.message for numbered in _numbered(ledger, branch)), messages)
    if known == len(branch):
        return Reconciled(new=tuple(messages[known:]), known=known)
    position = position_before(ledger, branch[known])
    gone = branch[known:]
    if _undoes_compaction(ledger, position) and _are_last_items(ledger, gone):
        return Reconciled(new=tuple(messages[known:]), known=known, retracted=tuple(gone))
    past = ledger.view_at(position)
    if past.shown_numbers() != set(branch[: len(past.shown_numbers())]):
        # After rewinds of rewinds, the view there may have messages that the client never had: start over.
        position, past = 0, ledger.view_at(0)
    kept = len(past.shown_numbers())
    return Reconciled(
        new=tuple(messages[kept:]), known=kept, rewind_to=position, restated=_changes(past, ledger.view)
    )


def entries_for(reconciled: Reconciled, tokens: Sequence[int], at: float) -> list[Entry]:
    """Return the entries that bring the ledger up to date with the client; `tokens` are the sizes of the new messages.

    Each message is an entry of its own, because a client may later branch off after any of them.
    """
    entries: list[Entry] = []
    if reconciled.retracted:
        entries.append(Retracted(at=at, numbers=reconciled.retracted))
    if reconciled.rewind_to is not None:
        entries.append(Rewound(at=at, to=reconciled.rewind_to, discard_later=True))
        entries += [replace(entry, at=at) for entry in reconciled.restated]
    entries += [
        Appended(at=at, messages=(message,), tokens=(size,))
        for message, size in zip(reconciled.new, tokens, strict=True)
    ]
    return entries


def branch_of(ledger: Ledger) -> list[int]:
    """Return the numbers of the messages that are still in effect, in order: those that no rewind discarded."""
    return numbers_in(ledger.view)


def numbers_in(view: View) -> list[int]:
    """Return the numbers of the messages that a view shows or summarises, in order."""
    return sorted(view.shown_numbers())


def position_before(ledger: Ledger, number: int) -> int:
    """Return the ledger position just before message `number` was appended."""
    saved, entries = ledger.saved, ledger.entries
    after = bisect_left(saved, number, key=lambda each: each.messages)
    start, count = (saved[after - 1].position, saved[after - 1].messages) if after else (0, 0)
    end = saved[after].position if after < len(saved) else len(entries)
    for position, entry in enumerate(entries[start:end], start=start):
        if isinstance(entry, Appended):
            count += len(entry.messages)
            if count >= number:
                return position
    return end


def _undoes_compaction(ledger: Ledger, position: int) -> bool:
    """Return whether a rewind to `position` would undo a compaction.

    A compaction has been paid for, and a client that only edits its last messages does not ask for it to be undone.
    """
    return any(saved.kind == "compacted" and saved.position >= position for saved in ledger.saved)


def _are_last_items(ledger: Ledger, numbers: Sequence[int]) -> bool:
    """Return whether these messages are the last items of the view, and none of them is inside a summary."""
    last = ledger.view.items[-len(numbers) :]
    return [item.number for item in last if not isinstance(item, Summary)] == list(numbers)


def _changes(past: View, now: View) -> tuple[PreambleChanged | ModelChanged, ...]:
    changes: list[PreambleChanged | ModelChanged] = []
    if (past.system, past.tools) != (now.system, now.tools):
        changes.append(
            PreambleChanged(at=0.0, system=now.system, tools=now.tools, tokens=now.preamble_tokens)
        )
    if past.model != now.model:
        changes.append(ModelChanged(at=0.0, model=now.model))
    return tuple(changes)


def _match_view(view: View, messages: Sequence[Message]) -> int | None:
    """Return how many messages at the start of a client's list are the whole view, or None if they are not.

    Where neighbouring user messages were joined, the client may have them as one message, or separately from before.
    """
    held = view.messages
    joins = set(neighbours_to_join(held, view.items))
    at = matched = 0
    while at < len(held):
        stop = next(end for end in range(at + 1, len(held) + 1) if end not in joins)
        sent = messages[matched] if matched < len(messages) else None
        found = sent and next(
            (end for end in range(stop, at, -1) if says_the_same(_joined(held[at:end]), sent)), None
        )
        if not found:
            return None
        at, matched = found, matched + 1
    return matched


def _joined(messages: Sequence[Message]) -> Message:
    return messages[0] if len(messages) == 1 else join_neighbours(messages, range(1, len(messages)))[0]


def _common_prefix(held: Iterable[Message], sent: Iterable[Message]) -> int:
    """Return how many messages the two lists have in common from the start."""
    count = 0
    for ours, theirs in zip(held, sent, strict=False):
        if not says_the_same(ours, theirs):
            break
        count += 1
    return count


def _numbered(ledger: Ledger, numbers: Sequence[int]) -> Iterable[Numbered]:
    """Yield the messages with these ascending numbers, read in batches."""
    for start in range(0, len(numbers), _BATCH):
        wanted = numbers[start : start + _BATCH]
        batch = ledger.messages[wanted[0] - 1 : wanted[-1]]
        yield from (batch[number - wanted[0]] for number in wanted)


def says_the_same(held: Message, sent: Message) -> bool:
    """Return whether two messages have the same content, as far as clients preserve it.

    Many clients drop thinking and empty texts, strip white space, or change names when they send a message again.
    """
    if held is sent or _same_bytes(held.wire, sent.wire):
        return True
    if held.role != sent.role or (held.role == "user" and _both_set_and_differ(held.name, sent.name)):
        return False
    return _all_parts_match(_preserved_parts(held.parts), _preserved_parts(sent.parts))


def _same_bytes(held: Wire | None, sent: Wire | None) -> bool:
    if held is None or sent is None or not (held.exact and sent.exact):
        return False
    return held.raw == sent.raw and held.format == sent.format


def _both_set_and_differ(ours: str, theirs: str) -> bool:
    return bool(ours and theirs) and ours != theirs


def _preserved_parts(parts: Sequence[AnyPart]) -> list[AnyPart]:
    """Return the parts that every client sends back: neither thinking nor empty texts."""
    return [
        part
        for part in parts
        if not isinstance(part, Thinking) and not (isinstance(part, Text) and not part.text.strip())
    ]


def _all_parts_match(ours: Sequence[AnyPart], theirs: Sequence[AnyPart]) -> bool:
    return len(ours) == len(theirs) and all(map(_parts_match, ours, theirs))


def _parts_match(ours: AnyPart, theirs: AnyPart) -> bool:
    match ours, theirs:
        case Text(), Text():
            return ours.text == theirs.text or ours.text.strip() == theirs.text.strip()
        case ToolResult(), ToolResult():
            return ours.call_id == theirs.call_id and _all_parts_match(
                _preserved_parts(ours.parts), _preserved_parts(theirs.parts)
            )
        case ToolCall(), ToolCall() if ours.arguments == theirs.arguments:
            return ours.id == theirs.id and ours.name == theirs.name
        case _:
            return ours == theirs


def likeness(message: Message) -> bytes:
    """Return a digest of 16 bytes that is the same for messages with the same content (`says_the_same`)."""
    content = [message.role, [_identity(part) for part in _preserved_parts(message.parts)]]
    return blake2b(msgspec.json.encode(content), digest_size=16).digest()


def _identity(part: AnyPart) -> object:
    match part:
        case Text():
            return ("text", part.text.strip())
        case ToolResult():
            return ("tool_result", part.call_id, [_identity(inner) for inner in _preserved_parts(part.parts)])
        case _:
            return part.identity()
