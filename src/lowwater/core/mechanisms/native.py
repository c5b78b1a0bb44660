"""`native`: a compaction block that the provider wrote replaces everything before it, and is kept byte for byte.

Anthropic returns such a block in two ways. Requested on demand (`compaction`), it comes alone and signed. It must go first in
every later request, followed by what followed the messages that it replaces. In an answer (`compact_20260112`) it comes
unrequested. Either block is opaque here and is sent as it came. The messages it replaces stay in the ledger, like the sources
of any summary.
"""

from collections.abc import Sequence

from lowwater.core.groups import Span
from lowwater.core.mechanisms.editing import EditContext
from lowwater.core.mechanisms.spans import around, offer_span, replace_span
from lowwater.core.mechanisms.zones import Zones
from lowwater.core.messages import Message, block_in, message_with, newest_block, read_block, said_in
from lowwater.core.proposals import Proposal
from lowwater.core.view import Item, Summary

NAME = "native"
AS_TEXT = "native_as_text"
BLOCK_FOLLOWS = "The provider compacted these messages itself: the block that follows stands for them."
_INSTRUCTIONS = frozenset({"system", "developer"})


def propose(items: Sequence[Item], zones: Zones, *, block_tokens: int) -> Proposal | None:
    """Propose to have the provider compact everything before the tail into a block of about `block_tokens`, in one call.

    The protected head goes into the block too, because nothing may precede a signed block. Nothing is proposed if an
    unrequested block is among the messages. The caller checks that the model's provider can do this.
    """
    cut = _cut(items, zones)
    if cut is None or newest_block([item.message for item in items[:cut] if not _is_own(item)]) is not None:
        return None
    return offer_span(NAME, items, Span(start=0, stop=cut), block_tokens)


def put_block(items: Sequence[Item], span: Span, block: bytes, context: EditContext) -> list[Item]:
    """Return the items with the provider's block in place of the span, which begins with the first item.

    If no user message follows, the newest one is repeated right behind the block, as behind any other summary.
    """
    assert span.start == 0, "nothing may precede a signed block"
    beside, message = around(items, span, context), message_with(block)
    block_item = Summary(message=message, tokens=context.size(message), sources=beside.sources, depth=1)
    return [block_item, *beside.behind]


def own_block(items: Sequence[Item]) -> Summary | None:
    """Return the block that was requested and is the first item of a view, if there is one."""
    first = items[0] if items else None
    return first if isinstance(first, Summary) and _is_own(first) else None


def follows_directly(before: Sequence[Item], after: Sequence[Item]) -> bool:
    """Return whether the block in `after` is followed by the unchanged end of `before`.

    Then thinking behind it stays valid: the provider knows what its own block replaces.
    """
    kept = len(after) - 1
    return kept < len(before) and all(
        new is old for new, old in zip(after[1:], before[len(before) - kept :], strict=True)
    )


def as_text(items: Sequence[Item], context: EditContext) -> list[Item]:
    """Return the items with the block at their start replaced by its text, for a model that cannot read blocks."""
    own = own_block(items)
    assert own is not None
    return replace_span(items, Span(start=0, stop=1), said_in(own.message), context, depth=own.depth)


def absorb(items: Sequence[Item], context: EditContext) -> list[Item] | None:
    """Return the items with one summary in place of everything before the newest block; None if that gains nothing.

    The summary is for the ledger and for people: the provider ignores what precedes its block. The newest user message is
    repeated behind it as behind any other summary.
    """
    at = newest_block([item.message for item in items])
    if at is None or _is_absorbed(items[:at]):
        return None
    kept = replace_span(items, Span(start=0, stop=at), BLOCK_FOLLOWS, context)
    return kept if _tokens(kept) < _tokens(items) else None


def sent_from(messages: Sequence[Message]) -> int:
    """Return the index of the first message to send: a signed block that came alone goes first, without what precedes it."""
    at = newest_block(messages)
    if at is None or len(messages[at].parts) > 1:
        return 0
    block = read_block(messages[at].parts[0])
    return at if block is not None and block.signature else 0


def _cut(items: Sequence[Item], zones: Zones) -> int | None:
    """Return the last legal cut before the tail at which the role changes; None if there is none.

    Anthropic joins neighbouring messages of one role. If a block ended inside such a message, thinking behind it would no
    longer be bound to its prefix.
    """
    fitting = (
        cut
        for cut in reversed(zones.cuts)
        if 0 < cut <= zones.tail and cut < len(items) and _may_follow(items[cut - 1], items[cut])
    )
    return next(fitting, None)


def _may_follow(last: Item, first: Item) -> bool:
    roles = {last.message.role == "assistant", first.message.role == "assistant"}
    return len(roles) == 2 and first.message.role not in _INSTRUCTIONS


def _is_own(item: Item) -> bool:
    return isinstance(item, Summary) and bool(block_in(item.message))


def _is_absorbed(before: Sequence[Item]) -> bool:
    """Return whether everything before a block was absorbed already, or there is nothing before it."""
    noted = any(isinstance(item, Summary) and BLOCK_FOLLOWS in item.message.text for item in before)
    users = [item for item in before if not isinstance(item, Summary)]
    return not users or (noted and len(users) == 1 and users[0].message.role == "user")


def _tokens(items: Sequence[Item]) -> int:
    return sum(item.tokens for item in items)
