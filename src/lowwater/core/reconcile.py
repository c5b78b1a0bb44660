"""Matching the list that a client sends with the ledger: what is new, and where the client went another way."""

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


def says_the_same(held: Message, sent: Message) -> bool:
    """Return whether both say the same; equal bytes settle it at once."""
    if held is sent or _same_bytes(held.wire, sent.wire):
        return True
    if held.role != sent.role or (held.role == "user" and _differ(held.name, sent.name)):
        return False
    return _all_same(_said(held.parts), _said(sent.parts))


def _same_bytes(held: Wire | None, sent: Wire | None) -> bool:
    if held is None or sent is None or not (held.exact and sent.exact):
        return False
    return held.raw == sent.raw and held.format == sent.format


def _differ(ours: str, theirs: str) -> bool:
    return bool(ours and theirs) and ours != theirs


def _said(parts: Sequence[AnyPart]) -> list[AnyPart]:
    return [
        part
        for part in parts
        if not isinstance(part, Thinking) and not (isinstance(part, Text) and not part.text.strip())
    ]


def _all_same(ours: Sequence[AnyPart], theirs: Sequence[AnyPart]) -> bool:
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(ours: AnyPart, theirs: AnyPart) -> bool:
    match ours, theirs:
        case Text(), Text():
            return ours.text == theirs.text or ours.text.strip() == theirs.text.strip()
        case ToolResult(), ToolResult():
            return ours.call_id == theirs.call_id and _all_same(_said(ours.parts), _said(theirs.parts))
        case ToolCall(), ToolCall() if ours.arguments == theirs.arguments:
            return ours.id == theirs.id and ours.name == theirs.name
        case _:
            return ours == theirs


def likeness(message: Message) -> bytes:
    """Return sixteen bytes that are equal for messages that say the same, and for hardly any others."""
    said = [message.role, [_identity(part) for part in _said(message.parts)]]
    return blake2b(msgspec.json.encode(said), digest_size=16).digest()


def _identity(part: AnyPart) -> object:
    match part:
        case Text():
            return ("text", part.text.strip())
        case ToolResult():
            return ("tool_result", part.call_id, [_identity(inner) for inner in _said(part.parts)])
        case _:
            return part.identity()


_AT_ONCE = 256
"""Messages that are looked at together."""


class Reconciled(Struct, frozen=True, kw_only=True):
    """What a client's list means for the ledger."""

    new: tuple[Message, ...]
    """Messages to append."""
    rewind_to: int | None = None
    """The ledger position to go back to first, if the client edited or dropped messages the ledger holds."""
    known: int = 0
    """How many of the client's messages the ledger held already."""
    taken_back: tuple[int, ...] = ()
    """The numbers of messages that the client no longer has and that can leave the view as it is."""
    stays: tuple[PreambleChanged | ModelChanged, ...] = ()
    """Going back takes messages back and nothing else: what has to be said again of preamble and model."""


def reconcile(ledger: Ledger, messages: Sequence[Message]) -> Reconciled:
    """Find what is new in `messages`, which are all that the client has.

    A client keeps the whole history, or goes on from the view it was given; either is compared by content. Where it
    differs from the history, the ledger goes back to before the first difference.
    """
    shown = _showing(ledger.view, messages)
    if shown is not None:
        return Reconciled(new=tuple(messages[shown:]), known=shown)
    branch = branch_of(ledger)
    known = _alike((numbered.message for numbered in _numbered(ledger, branch)), messages)
    if known == len(branch):
        return Reconciled(new=tuple(messages[known:]), known=known)
    position = position_before(ledger, branch[known])
    gone = branch[known:]
    if _undoes_compaction(ledger, position) and _stand_at_the_end(ledger, gone):
        return Reconciled(new=tuple(messages[known:]), known=known, taken_back=tuple(gone))
    then = ledger.view_at(position)
    if then.shown_numbers() != set(branch[: len(then.shown_numbers())]):
        # Rewinds of rewinds can show more there than the client ever had: begin anew.
        position, then = 0, ledger.view_at(0)
    kept = len(then.shown_numbers())
    return Reconciled(
        new=tuple(messages[kept:]), known=kept, rewind_to=position, stays=_changed_since(then, ledger.view)
    )


def branch_of(ledger: Ledger) -> list[int]:
    """Return the numbers of the messages that are in effect, in order: all but those a rewind discarded."""
    return numbers_in(ledger.view)


def numbers_in(view: View) -> list[int]:
    """Return the numbers of the messages that a view shows or stands for, in order."""
    numbers: list[int] = []
    for item in view.items:
        if isinstance(item, Summary):
            for span in item.sources:
                numbers.extend(range(span.first, span.last + 1))
        else:
            numbers.append(item.number)
    return sorted(set(numbers))


def entries_for(reconciled: Reconciled, tokens: Sequence[int], at: float) -> list[Entry]:
    """Return the entries that bring the ledger up to the client's list; `tokens` are the sizes of the new messages.

    Each message is an entry of its own: a client may later go another way from any of them.
    """
    entries: list[Entry] = []
    if reconciled.taken_back:
        entries.append(Retracted(at=at, numbers=reconciled.taken_back))
    if reconciled.rewind_to is not None:
        entries.append(Rewound(at=at, to=reconciled.rewind_to, discard_later=True))
        entries += [replace(entry, at=at) for entry in reconciled.stays]
    entries += [
        Appended(at=at, messages=(message,), tokens=(size,))
        for message, size in zip(reconciled.new, tokens, strict=True)
    ]
    return entries


def position_before(ledger: Ledger, number: int) -> int:
    """Return the ledger position at which the message `number` had not come yet."""
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
    """Return whether a compaction was made since: it was paid for, and a client that edits its last words wants no other view."""
    return any(saved.kind == "compacted" and saved.position >= position for saved in ledger.saved)


def _stand_at_the_end(ledger: Ledger, numbers: Sequence[int]) -> bool:
    """Return whether these messages are the last items of the view, each in person."""
    last = ledger.view.items[-len(numbers) :]
    return [item.number for item in last if not isinstance(item, Summary)] == list(numbers)


def _changed_since(then: View, now: View) -> tuple[PreambleChanged | ModelChanged, ...]:
    changes: list[PreambleChanged | ModelChanged] = []
    if (then.system, then.tools) != (now.system, now.tools):
        changes.append(
            PreambleChanged(at=0.0, system=now.system, tools=now.tools, tokens=now.preamble_tokens)
        )
    if then.model != now.model:
        changes.append(ModelChanged(at=0.0, model=now.model))
    return tuple(changes)


def _showing(view: View, messages: Sequence[Message]) -> int | None:
    """Return how many messages of a list show the whole view, if its first ones do; None if not.

    The client was given neighbours as one message where they were folded, and may have been given them apart before.
    """
    held = view.messages
    folds = set(neighbours_to_join(held, view.items))
    at = taken = 0
    while at < len(held):
        stop = next(end for end in range(at + 1, len(held) + 1) if end not in folds)
        sent = messages[taken] if taken < len(messages) else None
        found = sent and next(
            (end for end in range(stop, at, -1) if says_the_same(_one(held[at:end]), sent)), None
        )
        if not found:
            return None
        at, taken = found, taken + 1
    return taken


def _one(messages: Sequence[Message]) -> Message:
    return messages[0] if len(messages) == 1 else join_neighbours(messages, range(1, len(messages)))[0]


def _alike(held: Iterable[Message], sent: Iterable[Message]) -> int:
    """Return how many messages the two lists have in common from the start."""
    count = 0
    for ours, theirs in zip(held, sent, strict=False):
        if not says_the_same(ours, theirs):
            break
        count += 1
    return count


def _numbered(ledger: Ledger, numbers: Sequence[int]) -> Iterable[Numbered]:
    """Yield the messages with these numbers, which ascend, looking at many together where they lie elsewhere."""
    for start in range(0, len(numbers), _AT_ONCE):
        wanted = numbers[start : start + _AT_ONCE]
        looked_at = ledger.messages[wanted[0] - 1 : wanted[-1]]
        yield from (looked_at[number - wanted[0]] for number in wanted)
