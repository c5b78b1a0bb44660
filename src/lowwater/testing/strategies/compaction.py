"""Legal compactions of a view: whole groups summarised, results shortened, everything else kept."""

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.entries import Altered, Compacted, Edit, Kept, Numbers, Stand, Summarized
from lowwater.core.groups import groups
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text, Thinking, ToolResult
from lowwater.core.view import Item, Summary
from lowwater.testing.strategies.text import spoken

_FATES = st.sampled_from(("keep", "alter", "summarize", "summarize"))


def draw_compaction(draw: st.DrawFn, ledger: Ledger, at: float) -> Compacted | None:
    """Draw a compaction that makes the view smaller, or None where nothing can be removed.

    Open calls and the newest user message stay as they are.
    """
    items = list(ledger.view.items)
    newest = max((index for index, item in enumerate(items) if _is_asked(item.message)), default=-1)
    stands: list[Stand] = []
    waiting: list[Item] = []
    for span in groups([item.message for item in items]):
        group = items[span.start : span.stop]
        is_fixed = span.start <= newest < span.stop or _is_open(group)
        fate = "keep" if is_fixed else draw(_FATES)
        if fate == "summarize":
            waiting += group
            continue
        stands += _summarized(draw, waiting)
        waiting = []
        stands += [
            _altered(draw, ledger, item) if fate == "alter" else _as_it_is(ledger, item) for item in group
        ]
    stands += _summarized(draw, waiting)
    compacted = Compacted(at=at, mechanisms=("elide", "summarize"), stands=tuple(stands))
    return compacted if ledger.append(compacted).view.tokens < ledger.view.tokens else None


def _is_asked(message: Message) -> bool:
    return message.role == "user" and not message.results


def _is_open(group: Sequence[Item]) -> bool:
    answered = {result.call_id for item in group for result in item.message.results}
    return any(call.id not in answered for item in group for call in item.message.calls)


def _summarized(draw: st.DrawFn, items: Sequence[Item]) -> list[Stand]:
    if not items:
        return []
    tokens = draw(st.integers(min_value=0, max_value=max(0, sum(item.tokens for item in items) - 1)))
    depth = 1 + max((item.depth for item in items if isinstance(item, Summary)), default=0)
    sources = _ranges([number for item in items for number in _numbers(item)])
    return [Summarized(text=draw(spoken()), role="user", sources=sources, tokens=tokens, depth=depth)]


def _numbers(item: Item) -> list[int]:
    if isinstance(item, Summary):
        return [number for span in item.sources for number in range(span.first, span.last + 1)]
    return [item.number]


def _ranges(numbers: Sequence[int]) -> tuple[Numbers, ...]:
    ranges: list[Numbers] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1].last == number - 1:
            ranges[-1] = replace(ranges[-1], last=number)
        else:
            ranges.append(Numbers(first=number, last=number))
    return tuple(ranges)


def _as_it_is(ledger: Ledger, item: Item) -> Stand:
    """Return the stand that shows the item as it is shown now."""
    if isinstance(item, Summary):
        message = item.message
        return Summarized(
            text=message.text, role=message.role, sources=item.sources, tokens=item.tokens, depth=item.depth
        )
    if item.message is ledger.message(item.number):
        return Kept(numbers=Numbers(first=item.number, last=item.number))
    original = ledger.message(item.number)
    return Altered(number=item.number, edits=_placeholders(original), tokens=item.tokens)


def _altered(draw: st.DrawFn, ledger: Ledger, item: Item) -> Stand:
    """Return the item with its outputs elided and its thinking dropped, if it has any."""
    if isinstance(item, Summary):
        return _as_it_is(ledger, item)
    edits = _placeholders(ledger.message(item.number))
    if not edits or item.tokens == 0:
        return _as_it_is(ledger, item)
    tokens = draw(st.integers(min_value=0, max_value=item.tokens - 1))
    return Altered(number=item.number, edits=edits, tokens=tokens)


def _placeholders(message: Message) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    for at, part in enumerate(message.parts):
        match part:
            case ToolResult(parts=[_, *_]):
                edits.append(Edit(path=(at, 0), by=Text(text="[elided · recall lw:1]")))
            case Thinking() if len(message.parts) > 1:
                edits.append(Edit(path=(at,), by=None))
            case _:
                pass
    return tuple(edits)
