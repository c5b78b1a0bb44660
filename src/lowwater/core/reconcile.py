"""Comparing the list of messages that a client sends with the ledger: what is new, and what the client changed or dropped."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import (
    Appended,
    Compacted,
    Entry,
    ModelChanged,
    PreambleChanged,
    Retracted,
    Rewound,
    ViewItem,
)
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.messages import (
    AnyPart,
    CallIds,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Wire,
    call_ids_for,
    repeats_call_ids,
    with_unique_call_ids,
)
from lowwater.core.view import Summary, View, is_pin_block, join_neighbours, neighbours_to_join, view_items

KEEP = "keep"
"""The mechanism that leaves a compacted view as it is after the client dropped the messages behind it."""

_SUMMARY_WORDS = re.compile(
    r"summar|compact|condens|continued from|so far|recap|hand-?over|hand-?off|histor|previous|context|zusammenfass|bisherig"
    r"|résum|resum|riassunt|摘要|总结|總結|要約|요약",
    re.IGNORECASE,
)
_LONG = 1_500
"""Characters from which on a message may be a summary, whatever its words."""
_SUMMARY_START = 2_000
"""Characters of a message that are searched for words that announce a summary."""
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
    """The numbers of the messages that the client took back (`goes_back`)."""
    kept_compacted: tuple[ViewItem, ...] | None = None
    """What stays of a compacted view after the rewind, if the client's own compaction dropped the rest."""
    restated: tuple[PreambleChanged | ModelChanged, ...] = ()
    """System prompt, tools and model of now, if the rewind would change them: it is meant for messages only."""


def reconcile(ledger: Ledger, messages: Sequence[Message]) -> Reconciled:
    """Compare `messages`, the client's whole list, with the ledger.

    A client either keeps the whole history or continues from the view it was given; both are compared by content. Calls may
    have the ids under which the model made them or those under which they were sent (`CallIds`). Where the list differs from
    the history, the ledger is rewound to before the first difference.
    """
    matched = _match_view(ledger.view, messages)
    if matched is not None:
        return Reconciled(new=tuple(messages[matched:]), known=matched)
    branch = branch_of(ledger)
    held = (numbered.message for numbered in _numbered(ledger, branch))
    known = _common_prefix(held, messages, call_ids_for(messages))
    if known == len(branch):
        return Reconciled(new=tuple(messages[known:]), known=known)
    position = position_before(ledger, branch[known])
    gone = branch[known:]
    dropped = (numbered.message for numbered in _numbered(ledger, gone))
    is_back = goes_back(messages[:known], dropped, messages[known:])
    retracted = tuple(gone) if is_back else ()
    kept_compacted: tuple[ViewItem, ...] | None = None
    if _undoes_compaction(ledger, position) and _are_last_items(ledger, gone):
        if is_back:
            return Reconciled(new=tuple(messages[known:]), known=known, retracted=retracted)
        kept_compacted = view_items(ledger.view.items[: -len(gone)]) or None
    past = ledger.view_at(position)
    if past.shown_numbers() != set(branch[: len(past.shown_numbers())]):
        # After rewinds of rewinds, the view there may have messages that the client never had: start over.
        position, past = 0, ledger.view_at(0)
    kept = len(past.shown_numbers())
    return Reconciled(
        new=tuple(messages[kept:]),
        known=kept,
        rewind_to=position,
        retracted=retracted,
        kept_compacted=kept_compacted if kept == known else None,
        restated=_changes(past, ledger.view),
    )


def goes_back(known: Sequence[Message], dropped: Iterable[Message], new: Sequence[Message]) -> bool:
    """Return whether a client that dropped messages took them back, so that they are no part of the conversation any more.

    `known` is what its list still has from the beginning, `dropped` what followed that, and `new` what follows it now. A client
    may as well have compacted its list by itself, and what a compaction drops must stay available to recall. So this is True
    only for what no compaction looks like: the beginning is unchanged, up to an answer of the model or further; what was dropped
    begins with the user's words, or is a single message; and what follows now is nothing, or words of the user that are no
    summary. A compaction replaces the beginning, or repeats some of the newest messages, or ends with a summary.
    """
    remaining = iter(dropped)
    first, second = next(remaining), next(remaining, None)
    if not new:
        return bool(known)
    if not any(message.role == "assistant" for message in known):
        return False
    if second is None and first.role == "user" and not first.results:
        # A reminder that a client keeps at the end of its list, and writes anew each time.
        return likeness(first) not in {likeness(message) for message in new}
    if any(message.role == "assistant" or message.results for message in new):
        return False
    starts_turn = first.role == "user" and not first.results
    if not starts_turn and second is not None:
        return False
    gone = {likeness(message) for message in chain((first, second), remaining) if message is not None}
    return not any(likeness(message) in gone or _may_be_summary(message) for message in new)


def _may_be_summary(message: Message) -> bool:
    """Return whether a message may stand for others: it is long, or says so at its beginning, as clients' summaries do."""
    text = message.text
    return len(text) >= _LONG or bool(_SUMMARY_WORDS.search(text[:_SUMMARY_START]))


def continues_compacted(reconciled: Reconciled) -> bool:
    """Return whether the new messages look like what a client's own compaction leaves: a summary, or messages of an agent's work."""
    return not reconciled.retracted and any(
        message.role == "assistant" or message.results or _may_be_summary(message)
        for message in reconciled.new
    )


def entries_for(reconciled: Reconciled, tokens: Sequence[int], at: float) -> list[Entry]:
    """Return the entries that bring the ledger up to date with the client; `tokens` are the sizes of the new messages.

    Each message is an entry of its own, because a client may later branch off after any of them.
    """
    entries: list[Entry] = []
    if reconciled.rewind_to is not None:
        entries.append(Rewound(at=at, to=reconciled.rewind_to, discard_later=True))
        entries += [replace(entry, at=at) for entry in reconciled.restated]
    if reconciled.kept_compacted is not None:
        entries.append(Compacted(at=at, mechanisms=(KEEP,), items=reconciled.kept_compacted))
    if reconciled.retracted:
        entries.append(Retracted(at=at, numbers=reconciled.retracted))
    entries += [
        Appended(at=at, messages=(message,), tokens=(size,))
        for message, size in zip(reconciled.new, tokens, strict=True)
    ]
    return entries


def branch_of(ledger: Ledger) -> list[int]:
    """Return the numbers of the messages that are still in effect, in order: those that no rewind discarded."""
    return numbers_in_view(ledger.view)


def numbers_in_view(view: View) -> list[int]:
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
    renamed: Sequence[Message] | None = None
    joins = set(neighbours_to_join(held, view.items))
    at = matched = 0
    while at < len(held):
        stop = next(end for end in range(at + 1, len(held) + 1) if end not in joins)
        sent = messages[matched] if matched < len(messages) else None
        found = None if sent is None else _match_one(held, at, stop, sent)
        if found is None and sent is not None:
            # A client has its newest answer with the ids it came with, and what was sent before with those that were sent.
            if renamed is None:
                renamed = with_unique_call_ids(held) if repeats_call_ids(held) else ()
            found = _match_one(renamed, at, stop, sent) if renamed else None
        if found is None and is_pin_block(view.items[at]):
            # Appended to the request behind the messages that the client has: it need not know.
            at += 1
            continue
        if found is None:
            return None
        at, matched = found, matched + 1
    return matched


def _match_one(held: Sequence[Message], at: int, stop: int, sent: Message) -> int | None:
    """Return where the longest run of joined messages ends that begins at `at` and is what the client sent."""
    return next((end for end in range(stop, at, -1) if says_the_same(_joined(held[at:end]), sent)), None)


def _joined(messages: Sequence[Message]) -> Message:
    return messages[0] if len(messages) == 1 else join_neighbours(messages, range(1, len(messages)))[0]


def _common_prefix(held: Iterable[Message], sent: Iterable[Message], ids: CallIds) -> int:
    """Return how many messages the two lists have in common from the start; `ids` gives calls the ids they were sent with."""
    count = 0
    for ours, theirs in zip(held, sent, strict=False):
        as_sent = ids.with_unique_ids(ours)
        if not says_the_same(ours, theirs) and (as_sent is ours or not says_the_same(as_sent, theirs)):
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
