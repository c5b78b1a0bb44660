"""`native`: a provider's own compaction block stands for everything before it, and is kept byte for byte.

Anthropic returns such a block in an answer (`compact_20260112`, `compaction`); it is opaque here, may be signed, and leaves
as it came. The provider shows its model nothing that stands before the newest one, so neither need the view: what it
stands for is a summary's sources like any other, and stays in the ledger.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lowwater.compact.making import Making
from lowwater.compact.spans import offer_span, replace_span
from lowwater.values.groups import Span
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Opaque
from lowwater.values.proposal import Proposal
from lowwater.values.view import Item, Summary

NAME = "native"
NOTE = "The provider compacted these messages itself: the block that follows stands for them."


class _Block(Struct):
    content: str | None = None
    encrypted_content: str | None = None
    signature: str | None = None


def propose(items: Sequence[Item], *, block_tokens: int) -> Proposal | None:
    """Offer to have the provider compact the whole conversation into a block of about `block_tokens`; one call.

    Only for a model whose provider does that; a conversation that ends with such a block has nothing to offer.
    """
    if not items or newest_block([items[-1].message]) is not None:
        return None
    return offer_span(NAME, items, Span(start=0, stop=len(items)), block_tokens)


def absorb(items: Sequence[Item], making: Making) -> list[Item] | None:
    """Return the items with one summary in place of what the newest block stands for; None if that is no gain.

    The summary is for the ledger and for people: the provider leaves out what stands before its block. The newest user
    message stands behind it as behind any other.
    """
    at = newest_block([item.message for item in items])
    if at is None or _is_absorbed(items[:at]):
        return None
    kept = replace_span(items, Span(start=0, stop=at), NOTE, making)
    return kept if _tokens(kept) < _tokens(items) else None


def _is_absorbed(before: Sequence[Item]) -> bool:
    """Return whether all that stands before a block was put there for it, or there is nothing."""
    noted = any(isinstance(item, Summary) and NOTE in item.message.text for item in before)
    users = [item for item in before if not isinstance(item, Summary)]
    return not users or (noted and len(users) == 1 and users[0].message.role == "user")


def newest_block(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message with a compaction block; one that failed stands for nothing."""
    for at in range(len(messages) - 1, -1, -1):
        if any(_read(part) is not None for part in messages[at].parts):
            return at
    return None


def sent_from(messages: Sequence[Message]) -> int:
    """Return the index of the first message to send: a signed block that came alone goes first, in place of the rest."""
    at = newest_block(messages)
    if at is None or len(messages[at].parts) > 1:
        return 0
    block = _read(messages[at].parts[0])
    return at if block is not None and block.signature else 0


def _read(part: AnyPart) -> _Block | None:
    if not isinstance(part, Opaque) or part.block != "compaction":
        return None
    try:
        block = msgspec.json.decode(part.body, type=_Block)
    except msgspec.ValidationError:
        return None
    return block if block.content or block.encrypted_content else None


def _tokens(items: Sequence[Item]) -> int:
    return sum(item.tokens for item in items)
