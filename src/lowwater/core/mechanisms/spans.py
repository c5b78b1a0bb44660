"""Replacing a span of items by one summary: the request for it, and the view that results."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Edit, Numbers
from lowwater.core.ledger import Numbered
from lowwater.core.mechanisms.edits import (
    edit,
    framed_parts,
    has_user_content,
    is_users_own,
    newest_user,
)
from lowwater.core.mechanisms.mechanism import EditContext
from lowwater.core.mechanisms.results import share_of_tokens
from lowwater.core.messages import Message, Role, Span, Text, ToolResult, message_text
from lowwater.core.proposals import Proposal
from lowwater.core.summary.frame import frame, index_in, unframe
from lowwater.core.summary.index import MOST_TOKENS, SHARE, index_of_results
from lowwater.core.summary.pins import is_block_text
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.sanitize import with_known_handles
from lowwater.core.summary.task_list import open_tasks
from lowwater.core.view import Edited, Item, Original, Summary, is_pin_block

_AT_ONCE = 64
"""How many messages are looked at together, because they may have to be fetched from the store."""


class Around(Struct, frozen=True, kw_only=True):
    """What surrounds the replacement of a span."""

    behind: tuple[Item, ...]
    sources: tuple[Numbers, ...]
    """The messages of the span that are shown nowhere else in the view: what the replacement stands for."""
    repeats: bool
    """Whether the newest user message is repeated first behind it, because no user message would follow otherwise."""


class Repeated(Struct, frozen=True, kw_only=True):
    """Items in which the message with this number is repeated behind the summary that stood for it."""

    items: tuple[Item, ...]
    number: int


def offer_span(
    mechanism: str, items: Sequence[Item], span: Span, summary_tokens: int, *, index_tokens: int = 0
) -> Proposal | None:
    """Return a proposal to replace the items of `span` by a summary and an index of about these sizes; None if that gains nothing."""
    replaced = sum([item.tokens for item in items[span.start : span.stop]])
    pinned = sum([item.tokens for item in items[span.start : span.stop] if is_pin_block(item)])
    repeated = _repeated(items, span)
    removes = (
        replaced - pinned - summary_tokens - index_tokens - (0 if repeated is None else _own_tokens(repeated))
    )
    if removes <= 0:
        return None
    behind = sum([item.tokens for item in items[span.stop :]])
    return Proposal(
        mechanism=mechanism,
        removes=removes,
        first_changed=span.start,
        survives=behind + replaced - removes,
        span=span,
        calls=1,
    )


def request_for(
    items: Sequence[Item],
    span: Span,
    *,
    max_tokens: int,
    focus: str,
    recall: bool,
    redact: bool = True,
    instructions: str = "",
) -> SummaryRequest:
    """Return the request for a summary: the original messages of the span, and earlier summaries among them to update."""
    messages: list[Message] = []
    numbers: list[int] = []
    previous: list[str] = []
    replaced = items[span.start : span.stop]
    for item in replaced:
        if is_pin_block(item):
            continue
        if isinstance(item, Summary):
            previous.append(unframe(message_text(item.message)))
            continue
        message = _original(item)
        framed = [message.parts[at] for at in framed_parts(message)]
        previous += [
            unframe(part.text) for part in framed if isinstance(part, Text) and not is_block_text(part.text)
        ]
        if len(framed) < len(message.parts) or not framed:
            messages.append(_unframed(message))
            numbers.append(item.number)
    newest = newest_user(items)
    return SummaryRequest(
        messages=tuple(messages),
        numbers=tuple(numbers),
        max_tokens=max_tokens,
        previous="\n\n".join(previous),
        focus=focus,
        instructions=instructions,
        newest_user=None if newest is None else _unframed(_original(_not_summary(items[newest]))),
        recall=recall,
        redact=redact,
    )


def replace_span(
    items: Sequence[Item], span: Span, text: str, context: EditContext, *, depth: int = 1
) -> list[Item]:
    """Return the items with one summary in place of the span.

    If no user message would follow it, the newest one is repeated right behind it, word for word. The summary's sources are
    the messages of the span that are shown nowhere else. Handles of other messages in its text are invented or quoted, and
    are removed. For a model that can recall, an index of the tool results follows the summary.
    """
    beside = around_span(items, span, context)
    ahead, replaced = items[: span.start], items[span.start : span.stop]
    behind, sources = beside.behind, beside.sources
    role = _role(ahead, behind)
    text = with_known_handles(text, set(numbers_of_items(replaced)))

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
        before = sum([item.tokens for item in replaced])
        index = _index(replaced, [*ahead, *behind], text, before - summary.tokens, context)
        indexed = with_index(index)
        summary = indexed if indexed.tokens < before else summary
    return [*ahead, summary, *behind]


def _index(
    replaced: Sequence[Item], beside: Sequence[Item], summary: str, saved: int, context: EditContext
) -> str:
    """Return what follows a summary: the open tasks, and the index of the replaced tool results, within a share of the tokens `saved`.

    The tokens of earlier indexes among them do not count as saved, and may be used again.
    """
    count = context.tokenizer.count
    carried = sum(count(index_in(item.message.text)) for item in replaced if isinstance(item, Summary))
    carried = min(carried, max(saved, 0))
    room = min(MOST_TOKENS, carried + int(SHARE * (saved - carried)))
    return index_within(room, replaced, beside, summary, context)


def index_within(
    tokens: int, replaced: Sequence[Item], beside: Sequence[Item], summary: str, context: EditContext
) -> str:
    """Return what follows a summary of the replaced items within `tokens`: the open tasks, and the index of their tool results."""
    tasks = open_tasks(replaced, beside=beside, summary=summary)
    index = index_of_results(
        replaced,
        beside=beside,
        summary=summary,
        tokens=max(0, tokens - context.tokenizer.count(tasks)),
        tokenizer=context.tokenizer,
        redact=context.redact,
        break_even=context.break_even,
    )
    return "\n\n".join(filter(None, (tasks, index)))


def _role(ahead: Sequence[Item], behind: Sequence[Item]) -> Role:
    """Return the summary's role: the one in which users and assistants keep alternating, if there is one.

    Behind tool results in a user's message the role is the user's, so that the provider joins the summary to them: Anthropic
    requires a turn to begin with thinking, and this way the beginning of the turn stays where it was.
    """
    before = ahead[-1].message if ahead else None
    user_ahead = before is not None and (
        before.role == "tool" or (before.role == "user" and not before.results)
    )
    user_behind = bool(behind) and behind[0].message.role == "user"
    return "assistant" if user_ahead and user_behind else "user"


def around_span(items: Sequence[Item], span: Span, context: EditContext) -> Around:
    """Return what follows a span once it is replaced, and what its replacement stands for."""
    repeated = _repeated(items, span)
    behind = list(items[span.stop :])
    if repeated is not None:
        behind.insert(0, _user_part(repeated, context))
    shown = numbers_of_items([*items[: span.start], *behind])
    sources = _ranges(set(numbers_of_items(items[span.start : span.stop])).difference(shown))
    return Around(behind=tuple(behind), sources=sources, repeats=repeated is not None)


def _repeated(items: Sequence[Item], span: Span) -> Original | Edited | None:
    """Return the newest message of the user if it is not behind the span."""
    newest = newest_user(items)
    return None if newest is None or newest >= span.stop else _not_summary(items[newest])


def _user_part(item: Original | Edited, context: EditContext) -> Original | Edited:
    """Return a user's message as it came, without tool results, which stay with their calls in the summary.

    Earlier summaries that a client sent back as parts of it are left out too: the new summary covers them.
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


def repeat_newest_user(
    items: Sequence[Item], originals: Sequence[Numbered], context: EditContext
) -> Repeated | None:
    """Return the items with the newest user message behind the summary that stands for it; None if it is shown already.

    That happens when messages behind it were retracted, so that an older message is the newest. The user's own words count;
    a harness's only if there are no others. `originals` are all messages of the session, in order.
    """
    number = _only_summarized(items, originals)
    if number is None:
        return None
    holders = [
        at
        for at, item in enumerate(items)
        if isinstance(item, Summary) and number in numbers_of_items([item])
    ]
    behind = max(
        at
        for at, item in enumerate(items)
        if isinstance(item, Summary) and max(numbers_of_items([item]), default=0) >= number
    )
    kept = list(items)
    for holder in holders:
        summary = kept[holder]
        assert isinstance(summary, Summary)
        kept[holder] = replace(
            summary, sources=_ranges(each for each in numbers_of_items([summary]) if each != number)
        )
    original = originals[number - 1]
    whole = Original(number=number, message=original.message, tokens=original.tokens)
    return Repeated(
        items=(*kept[: behind + 1], _user_part(whole, context), *kept[behind + 1 :]), number=number
    )


def _only_summarized(items: Sequence[Item], originals: Sequence[Numbered]) -> int | None:
    """Return the number of the newest user message if it is only in a summary."""
    at = newest_user(items)
    shown = 0 if at is None else _not_summary(items[at]).number
    is_own = at is not None and is_users_own(items[at].message)
    number = _newest(items, originals, above=shown if is_own else 0, says=is_users_own)
    if number is None and not is_own:
        number = _newest(items, originals, above=shown, says=has_user_content)
    return number


def _newest(
    items: Sequence[Item], originals: Sequence[Numbered], *, above: int, says: Callable[[Message], bool]
) -> int | None:
    """Return the number of the newest message above a number for which `says` is true and that is only in a summary."""
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


def _original(item: Original | Edited) -> Message:
    return item.original if isinstance(item, Edited) else item.message


def _unframed(message: Message) -> Message:
    """Return a message without the summaries that a client sent back as parts of it."""
    framed = framed_parts(message)
    if not framed:
        return message
    return message.with_parts([part for at, part in enumerate(message.parts) if at not in framed])


def _not_summary(item: Item) -> Original | Edited:
    assert not isinstance(item, Summary)
    return item


def numbers_of_items(items: Iterable[Item]) -> Iterator[int]:
    """Yield the numbers of all messages that the items show or summarise."""
    for item in items:
        if isinstance(item, Summary):
            for span in item.sources:
                yield from range(span.first, span.last + 1)
        else:
            yield item.number


def _ranges(numbers: Iterable[int]) -> tuple[Numbers, ...]:
    """Return numbers as ranges without gaps."""
    ranges: list[Numbers] = []
    for number in sorted(numbers):
        if ranges and ranges[-1].last + 1 == number:
            ranges[-1] = Numbers(first=ranges[-1].first, last=number)
        else:
            ranges.append(Numbers(first=number, last=number))
    return tuple(ranges)
