"""Replacing a span of items by one summary: what to ask for, and what stands there afterwards."""

from collections.abc import Iterable, Sequence

from lowwater.compact.making import Making, edit
from lowwater.compact.summary import frame, unframe
from lowwater.values.entries import Edit, Numbers
from lowwater.values.groups import Span
from lowwater.values.message import Message, Role
from lowwater.values.parts import Text, ToolResult
from lowwater.values.proposal import Proposal
from lowwater.values.summaries import SummaryRequest
from lowwater.values.view import Edited, Item, Original, Summary


def offer_span(mechanism: str, items: Sequence[Item], span: Span, summary_tokens: int) -> Proposal | None:
    """Return a proposal to replace the items of `span` by a summary of about `summary_tokens`; None if that is no gain."""
    gone = sum(item.tokens for item in items[span.start : span.stop])
    repeated = newest_user(items)
    kept = repeated.tokens if repeated is not None and not _user_follows(items, span) else 0
    removes = gone - min(summary_tokens, gone) - kept
    if removes <= 0:
        return None
    behind = sum(item.tokens for item in items[span.stop :])
    return Proposal(
        mechanism=mechanism,
        removes=removes,
        first_changed=span.start,
        survives=behind + gone - removes,
        span=span,
        calls=1,
    )


def request_for(
    items: Sequence[Item], span: Span, *, max_tokens: int, focus: str, recall: bool
) -> SummaryRequest:
    """Return what to ask a summarizer: the originals of the span, and the summary among them that is to be updated."""
    originals: list[tuple[int, Message]] = []
    previous: list[str] = []
    for item in items[span.start : span.stop]:
        match item:
            case Original(message=message) if (
                unframe(message.text) != message.text
            ):  # written by a compaction elsewhere
                previous.append(unframe(message.text))
            case Original():
                originals.append((item.number, item.message))
            case Edited():
                originals.append((item.number, item.original))
            case Summary():
                previous.append(unframe(item.message.text))
    newest = newest_user(items)
    return SummaryRequest(
        messages=tuple(message for _, message in originals),
        numbers=tuple(number for number, _ in originals),
        max_tokens=max_tokens,
        previous="\n\n".join(previous),
        focus=focus,
        newest_user=None if newest is None else _whole(newest),
        recall=recall,
    )


def replace_span(
    items: Sequence[Item], span: Span, text: str, making: Making, *, depth: int = 1
) -> list[Item]:
    """Return the items with one summary in place of the span.

    If no user message would follow it, the newest one stands right behind it, word for word.
    """
    follows = _user_follows(items, span)
    newest = None if follows else newest_user(items)
    repeated = [] if newest is None else [_alone(newest, making)]
    numbers = set(_numbers(items[span.start : span.stop])) - {item.number for item in repeated}
    sources = _ranges(numbers)
    framed = frame(text, user_follows=follows, recall=making.offers_recall, sources=sources)
    behind = (*repeated, *items[span.stop :])
    role = _role(items[span.start - 1] if span.start else None, behind[0] if behind else None)
    message = Message(role=role, parts=(Text(text=framed),))
    summary = Summary(message=message, tokens=making.size(message), sources=sources, depth=depth)
    return [*items[: span.start], summary, *behind]


def newest_user(items: Sequence[Item]) -> Original | Edited | None:
    """Return the newest item in which the user says something."""
    return next(
        (
            item
            for item in reversed(items)
            if not isinstance(item, Summary) and item.message.role == "user" and item.message.text.strip()
        ),
        None,
    )


def _user_follows(items: Sequence[Item], span: Span) -> bool:
    return newest_user(items[span.stop :]) is not None


def _alone(item: Original | Edited, making: Making) -> Original | Edited:
    """Return a user's message without the tool results it came with, which stay with their calls in the summary."""
    whole = _whole(item)
    edits = [Edit(path=(at,), by=None) for at, part in enumerate(whole.parts) if isinstance(part, ToolResult)]
    if not edits:
        return (
            item
            if isinstance(item, Original)
            else Original(number=item.number, message=whole, tokens=making.size(whole))
        )
    alone = edit(Original(number=item.number, message=whole, tokens=item.tokens), edits, making.size)
    assert isinstance(alone, Edited)
    return alone


def _whole(item: Original | Edited) -> Message:
    return item.original if isinstance(item, Edited) else item.message


def _role(before: Item | None, after: Item | None) -> Role:
    """Return the role that keeps users and assistants alternating where that can be; a conversation starts with a user."""
    first = before is None or before.message.role in {"system", "developer"}
    if first or before is None or before.message.role != "user":
        return "user"
    return "user" if after is None or after.message.role == "assistant" else "assistant"


def _numbers(items: Iterable[Item]) -> Iterable[int]:
    for item in items:
        if isinstance(item, Summary):
            for span in item.sources:
                yield from range(span.first, span.last + 1)
        else:
            yield item.number


def _ranges(numbers: Iterable[int]) -> tuple[Numbers, ...]:
    ranges: list[Numbers] = []
    for number in sorted(numbers):
        if ranges and ranges[-1].last + 1 == number:
            ranges[-1] = Numbers(first=ranges[-1].first, last=number)
        else:
            ranges.append(Numbers(first=number, last=number))
    return tuple(ranges)
