"""`native`: a provider's own compaction block stands for everything before it, and is kept byte for byte.

Anthropic gives such a block in two ways. Asked for on demand (`compaction`), it comes alone and signed, goes first in every
later request, and what follows it must be what followed the messages it stands for. In an answer (`compact_20260112`) it
comes unasked. Either is opaque here and leaves as it came; what it stands for is a summary's sources like any other, and
stays in the ledger.
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
    """Offer to have the provider compact everything before the tail into a block of about `block_tokens`; one call.

    The protected start goes into the block too, for nothing may stand before it. Only for a model whose provider does
    that, and not where a block that came unasked stands among the messages.
    """
    cut = _cut(items, zones)
    if cut is None or newest_block([item.message for item in items[:cut] if not _is_own(item)]) is not None:
        return None
    return offer_span(NAME, items, Span(start=0, stop=cut), block_tokens)


def put_block(items: Sequence[Item], span: Span, block: bytes, context: EditContext) -> list[Item]:
    """Return the items with the provider's block in place of the span, which begins with the first item.

    Where no user message follows, the newest one stands right behind the block, as behind any other summary.
    """
    assert span.start == 0, "nothing may stand before a signed block"
    beside, message = around(items, span, context), message_with(block)
    stands = Summary(message=message, tokens=context.size(message), sources=beside.sources, depth=1)
    return [stands, *beside.behind]


def own_block(items: Sequence[Item]) -> Summary | None:
    """Return the block that was asked for and stands first in a view, if there is one."""
    first = items[0] if items else None
    return first if isinstance(first, Summary) and _is_own(first) else None


def follows_directly(before: Sequence[Item], after: Sequence[Item]) -> bool:
    """Return whether behind the block in `after` stands just what stood at the end of `before`, untouched.

    Then thinking in it is as good as before: its provider knows what its own block stands for.
    """
    kept = len(after) - 1
    return kept < len(before) and all(
        new is old for new, old in zip(after[1:], before[len(before) - kept :], strict=True)
    )


def as_text(items: Sequence[Item], context: EditContext) -> list[Item]:
    """Return the items with what the block at their start says as plain text in its place: for a model that reads no block."""
    own = own_block(items)
    assert own is not None
    return replace_span(items, Span(start=0, stop=1), said_in(own.message), context, depth=own.depth)


def absorb(items: Sequence[Item], context: EditContext) -> list[Item] | None:
    """Return the items with one summary in place of what the newest block stands for; None if that is no gain.

    The summary is for the ledger and for people: the provider leaves out what stands before its block. The newest user
    message stands behind it as behind any other.
    """
    at = newest_block([item.message for item in items])
    if at is None or _is_absorbed(items[:at]):
        return None
    kept = replace_span(items, Span(start=0, stop=at), BLOCK_FOLLOWS, context)
    return kept if _tokens(kept) < _tokens(items) else None


def sent_from(messages: Sequence[Message]) -> int:
    """Return the index of the first message to send: a signed block that came alone goes first, in place of the rest."""
    at = newest_block(messages)
    if at is None or len(messages[at].parts) > 1:
        return 0
    block = read_block(messages[at].parts[0])
    return at if block is not None and block.signature else 0


def _cut(items: Sequence[Item], zones: Zones) -> int | None:
    """Return the last legal cut before the tail behind which another role speaks; None if there is none.

    Anthropic joins neighbours of one role into one message, and thinking behind a block that ends inside of one would not
    be where it was thought.
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
    """Return whether all that stands before a block was put there for it, or there is nothing."""
    noted = any(isinstance(item, Summary) and BLOCK_FOLLOWS in item.message.text for item in before)
    users = [item for item in before if not isinstance(item, Summary)]
    return not users or (noted and len(users) == 1 and users[0].message.role == "user")


def _tokens(items: Sequence[Item]) -> int:
    return sum(item.tokens for item in items)
