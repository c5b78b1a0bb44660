"""Replacing a span of items by one summary: what to ask for, and what stands there afterwards."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Edit, Numbers
from lowwater.core.groups import Span
from lowwater.core.ledger import Numbered
from lowwater.core.mechanisms.editing import EditContext, edit, framed_parts, is_said, newest_user, says_own
from lowwater.core.mechanisms.results import share_of_tokens
from lowwater.core.messages import Message, Role, Text, ToolResult, said_in
from lowwater.core.proposals import Proposal
from lowwater.core.summary.framing import MOST_TOKENS, SHARE, frame, index_in, index_of_results, unframe
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.safety import with_known_handles
from lowwater.core.view import Edited, Item, Original, Summary

_AT_ONCE = 64
"""Messages that are looked at together: they may have to be fetched."""
_INDEX_SHARE = 0.5
"""Of what a summary may take, at most so much is kept from its words for the index."""


def offer_span(mechanism: str, items: Sequence[Item], span: Span, summary_tokens: int) -> Proposal | None:
    """Return a proposal to replace the items of `span` by a summary of about `summary_tokens`; None if that is no gain."""
    gone = sum([item.tokens for item in items[span.start : span.stop]])
    repeated = _repeated(items, span)
    removes = gone - summary_tokens - (0 if repeated is None else _own_tokens(repeated))
    if removes <= 0:
        return None
    behind = sum([item.tokens for item in items[span.stop :]])
    return Proposal(
        mechanism=mechanism,
        removes=removes,
        first_changed=span.start,
        survives=behind + gone - removes,
        span=span,
        calls=1,
    )


def request_for(
    items: Sequence[Item], span: Span, *, max_tokens: int, focus: str, recall: bool, redact: bool = True
) -> SummaryRequest:
    """Return what to ask a summarizer: the originals of the span, and the summaries among them, which it updates.

    With recall, what their indexes take of `max_tokens` is not for its words: the summary gets such an index again.
    """
    messages: list[Message] = []
    numbers: list[int] = []
    previous: list[str] = []
    replaced = items[span.start : span.stop]
    for item in replaced:
        if isinstance(item, Summary):
            previous.append(unframe(said_in(item.message)))
            continue
        message = _original(item)
        framed = [message.parts[at] for at in framed_parts(message)]
        previous += [unframe(part.text) for part in framed if isinstance(part, Text)]
        if len(framed) < len(message.parts) or not framed:
            messages.append(_unframed(message))
            numbers.append(item.number)
    newest = newest_user(items)
    return SummaryRequest(
        messages=tuple(messages),
        numbers=tuple(numbers),
        max_tokens=max_tokens - (min(_indexed(replaced), int(_INDEX_SHARE * max_tokens)) if recall else 0),
        previous="\n\n".join(previous),
        focus=focus,
        newest_user=None if newest is None else _unframed(_original(_in_person(items[newest]))),
        recall=recall,
        redact=redact,
    )


class Around(Struct, frozen=True, kw_only=True):
    """What stands around a span once something else stands in its place."""

    behind: tuple[Item, ...]
    sources: tuple[Numbers, ...]
    """The messages of the span that stand nowhere else in the view."""
    repeats: bool
    """Whether the newest user message is the first behind it because no other would follow."""


def around(items: Sequence[Item], span: Span, context: EditContext) -> Around:
    """Return what follows a span that is replaced, and what its replacement stands for."""
    repeated = _repeated(items, span)
    behind = list(items[span.stop :])
    if repeated is not None:
        behind.insert(0, _alone(repeated, context))
    beside = numbers_in([*items[: span.start], *behind])
    sources = _ranges(set(numbers_in(items[span.start : span.stop])).difference(beside))
    return Around(behind=tuple(behind), sources=sources, repeats=repeated is not None)


class Repeated(Struct, frozen=True, kw_only=True):
    """Items with the message of this number right behind the summary that stands for it."""

    items: tuple[Item, ...]
    number: int


def repeat_newest_user(
    items: Sequence[Item], originals: Sequence[Numbered], context: EditContext
) -> Repeated | None:
    """Return the items with the newest user message right behind the summary that stands for it; None if it is there.

    What followed it may have gone since: a client that takes back its last words has an older message as its newest.
    The user's own words count, and a harness's only where there are no others. `originals` are all messages of the session,
    in order.
    """
    number = _only_summarized(items, originals)
    if number is None:
        return None
    holders = [
        at for at, item in enumerate(items) if isinstance(item, Summary) and number in numbers_in([item])
    ]
    behind = max(
        at
        for at, item in enumerate(items)
        if isinstance(item, Summary) and max(numbers_in([item]), default=0) >= number
    )
    kept = list(items)
    for holder in holders:
        summary = kept[holder]
        assert isinstance(summary, Summary)
        kept[holder] = replace(
            summary, sources=_ranges(each for each in numbers_in([summary]) if each != number)
        )
    original = originals[number - 1]
    whole = Original(number=number, message=original.message, tokens=original.tokens)
    return Repeated(items=(*kept[: behind + 1], _alone(whole, context), *kept[behind + 1 :]), number=number)


def _only_summarized(items: Sequence[Item], originals: Sequence[Numbered]) -> int | None:
    """Return the number of the newest user message if only a summary stands for it."""
    at = newest_user(items)
    shown = 0 if at is None else _in_person(items[at]).number
    is_own = at is not None and says_own(items[at].message)
    number = _newest(items, originals, above=shown if is_own else 0, says=says_own)
    if number is None and not is_own:
        number = _newest(items, originals, above=shown, says=is_said)
    return number


def _newest(
    items: Sequence[Item], originals: Sequence[Numbered], *, above: int, says: Callable[[Message], bool]
) -> int | None:
    """Return the newest message above a number of which `says` is true and that only a summary stands for."""
    spans = [
        span for item in items if isinstance(item, Summary) for span in item.sources if span.last > above
    ]
    for span in sorted(spans, key=lambda span: -span.last):
        last = span.last
        while last >= max(span.first, above + 1):
            first = max(span.first, above + 1, last - _AT_ONCE + 1)
            looked_at = originals[first - 1 : last]
            for number in range(last, first - 1, -1):
                if says(looked_at[number - first].message):
                    return number
            last = first - 1
    return None


def replace_span(
    items: Sequence[Item], span: Span, text: str, context: EditContext, *, depth: int = 1
) -> list[Item]:
    """Return the items with one summary in place of the span.

    If no user message would follow it, the newest one stands right behind it, word for word. Of the messages in the
    span, the summary's sources are those that stand nowhere else in the view. Handles of other messages in its text are
    invented or quoted and do not go out. A model that can recall finds an index of their tool results behind the summary.
    """
    beside = around(items, span, context)
    ahead, replaced = items[: span.start], items[span.start : span.stop]
    behind, sources = beside.behind, beside.sources
    role = _role(ahead, behind)
    text = with_known_handles(text, set(numbers_in(replaced)))

    def with_index(index: str) -> Summary:
        framed = frame(
            text,
            user_follows=not beside.repeats,
            recall=context.offers_recall,
            sources=sources,
            redact=context.redact,
            index=index,
        )
        message = Message(role=role, parts=(Text(text=framed),))
        return Summary(message=message, tokens=context.size(message), sources=sources, depth=depth)

    summary = with_index("")
    if context.offers_recall:
        gone = sum([item.tokens for item in replaced])
        indexed = with_index(_index(replaced, gone - summary.tokens, context))
        summary = indexed if indexed.tokens < gone else summary
    return [*ahead, summary, *behind]


def _index(replaced: Sequence[Item], saved: int, context: EditContext) -> str:
    """Return the index of the results among what is replaced, no longer than a share of the tokens that this saves.

    What earlier indexes among it took is no saving, and may be taken again.
    """
    count = context.tokenizer.count
    carried = sum(count(index_in(item.message.text)) for item in replaced if isinstance(item, Summary))
    carried = min(carried, max(saved, 0))
    room = min(MOST_TOKENS, carried + int(SHARE * (saved - carried)))
    return index_of_results(replaced, tokens=room, tokenizer=context.tokenizer, redact=context.redact)


def _indexed(replaced: Iterable[Item]) -> int:
    """Return about how many tokens the indexes of summaries take."""
    texts = [(item.tokens, item.message.text) for item in replaced if isinstance(item, Summary)]
    return sum(int(tokens * len(index_in(text)) / max(1, len(text))) for tokens, text in texts)


def _repeated(items: Sequence[Item], span: Span) -> Original | Edited | None:
    """Return the newest message of the user if it does not stand behind the span."""
    newest = newest_user(items)
    return None if newest is None or newest >= span.stop else _in_person(items[newest])


def _alone(item: Original | Edited, context: EditContext) -> Original | Edited:
    """Return a user's message as it came, without the tool results that stay with their calls in the summary.

    Nor with an earlier summary that a client handed back as a part of it: the new one has it in its place.
    """
    original = _original(item)
    results = [at for at, part in enumerate(original.parts) if isinstance(part, ToolResult)]
    left_out = [*results, *framed_parts(original)]
    if not left_out and isinstance(item, Original):
        return item
    whole = Original(number=item.number, message=original, tokens=context.size(original))
    return edit(whole, [Edit(path=(at,), by=None) for at in left_out], context.size) if left_out else whole


def _own_tokens(item: Original | Edited) -> int:
    parts = item.message.parts
    return share_of_tokens(item.tokens, parts, [part for part in parts if not isinstance(part, ToolResult)])


def _original(item: Original | Edited) -> Message:
    return item.original if isinstance(item, Edited) else item.message


def _unframed(message: Message) -> Message:
    """Return a message without the summaries that a client handed back as parts of it."""
    framed = framed_parts(message)
    if not framed:
        return message
    return message.with_parts([part for at, part in enumerate(message.parts) if at not in framed])


def _in_person(item: Item) -> Original | Edited:
    assert not isinstance(item, Summary)
    return item


def _role(ahead: Sequence[Item], behind: Sequence[Item]) -> Role:
    """Return the role in which users and assistants keep alternating, where there is one.

    Behind tool results that stand in a user's message, the user's role joins the summary to them: a provider that wants
    the turn to begin with thinking still finds its beginning.
    """
    before = ahead[-1].message if ahead else None
    user_ahead = before is not None and (
        before.role == "tool" or (before.role == "user" and not before.results)
    )
    user_behind = bool(behind) and behind[0].message.role == "user"
    return "assistant" if user_ahead and user_behind else "user"


def numbers_in(items: Iterable[Item]) -> Iterator[int]:
    """Yield the numbers of all messages that items show or stand for."""
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
