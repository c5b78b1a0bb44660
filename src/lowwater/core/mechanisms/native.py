"""`native`: a compaction block that the provider wrote replaces everything before it, and is kept byte for byte.

Anthropic returns such a block in two ways. Requested on demand (`compaction`), it comes alone and signed. It must go first in
every later request, followed by what followed the messages that it replaces. In an answer (`compact_20260112`) it comes
unrequested. Either block is opaque here and is sent as it came. The messages it replaces stay in the ledger, like the sources
of any summary.
"""

from collections.abc import Sequence

from lowwater.core.mechanisms import summarize
from lowwater.core.mechanisms.mechanism import EditContext, ProposalRequest, SummaryMechanism, Zones
from lowwater.core.mechanisms.spans import around_span, offer_span, replace_span
from lowwater.core.messages import Span, message_text, message_with, newest_block
from lowwater.core.proposals import Proposal
from lowwater.core.view import Item, Summary, is_own_block, own_block, tokens_of_items

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
    if (
        cut is None
        or newest_block([item.message for item in items[:cut] if not is_own_block(item)]) is not None
    ):
        return None
    return offer_span(NAME, items, Span(start=0, stop=cut), block_tokens)


def propose_block(request: ProposalRequest, zones: Zones) -> Proposal | None:
    """Propose the same with a block of the length that a summary is expected to have."""
    return propose(tuple(request.items), zones, block_tokens=summarize.expected(request, zones))


def put_block(items: Sequence[Item], span: Span, block: bytes, context: EditContext) -> list[Item]:
    """Return the items with the provider's block in place of the span, which begins with the first item.

    If no user message follows, the newest one is repeated right behind the block, as behind any other summary.
    """
    assert span.start == 0, "nothing may precede a signed block"
    beside, message = around_span(items, span, context), message_with(block)
    block_item = Summary(message=message, tokens=context.size(message), sources=beside.sources, depth=1)
    return [block_item, *beside.behind]


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
    return replace_span(items, Span(start=0, stop=1), message_text(own.message), context, depth=own.depth)


def absorb(items: Sequence[Item], context: EditContext) -> list[Item] | None:
    """Return the items with one summary in place of everything before the newest block; None if that gains nothing.

    The summary is for the ledger and for people: the provider ignores what precedes its block. The newest user message is
    repeated behind it as behind any other summary.
    """
    at = newest_block([item.message for item in items])
    if at is None or _is_absorbed(items[:at]):
        return None
    kept = replace_span(items, Span(start=0, stop=at), BLOCK_FOLLOWS, context)
    return kept if tokens_of_items(kept) < tokens_of_items(items) else None


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


def _is_absorbed(before: Sequence[Item]) -> bool:
    """Return whether everything before a block was absorbed already, or there is nothing before it."""
    noted = any(isinstance(item, Summary) and BLOCK_FOLLOWS in item.message.text for item in before)
    users = [item for item in before if not isinstance(item, Summary)]
    return not users or (noted and len(users) == 1 and users[0].message.role == "user")


MECHANISMS = (
    SummaryMechanism(
        name=NAME,
        propose=propose_block,
        budget=summarize.largest,
        sentence="Have the provider compact everything before the protected end itself, into a signed block that goes first",
        label="the provider's own compaction of the older messages",
        order=50,
        by_provider=True,
    ),
)
