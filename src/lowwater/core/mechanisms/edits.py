"""What the mechanisms share: their context, how a proposal is built, how an item is edited, where the user spoke last."""

from collections.abc import Callable, Iterable, Sequence

from lowwater.core.entries import Edit, apply_edits, merge_edits
from lowwater.core.messages import AnyPart, Message, Text, ToolResult
from lowwater.core.proposals import Proposal, Target
from lowwater.core.summary.activity import own_words
from lowwater.core.summary.frame import is_framed
from lowwater.core.summary.pins import is_block_text
from lowwater.core.view import Edited, Item, Summary


def offer_edits(
    mechanism: str, items: Sequence[Item], targets: Sequence[Target], *, left: int = 0
) -> Proposal | None:
    """Return a proposal to replace `targets`, of which `left` tokens remain in total; None if that gains nothing."""
    removes = sum(target.tokens for target in targets) - left
    if removes <= 0:
        return None
    first = min(target.item for target in targets)
    behind = sum([item.tokens for item in items[first:]])
    return Proposal(
        mechanism=mechanism,
        removes=removes,
        first_changed=first,
        survives=max(0, behind - removes),
        targets=tuple(targets),
    )


def edit(item: Item, edits: Iterable[Edit], size: Callable[[Message], int]) -> Edited:
    """Return the item with these edits in addition to those it has."""
    assert not isinstance(item, Summary), "a summary is replaced whole, never edited"
    original = item.original if isinstance(item, Edited) else item.message
    merged = merge_edits(item.edits if isinstance(item, Edited) else (), edits)
    message = apply_edits(original, merged)
    return Edited(number=item.number, original=original, edits=merged, message=message, tokens=size(message))


def edit_if_smaller(item: Item, edits: Iterable[Edit], size: Callable[[Message], int]) -> Item:
    """Return the item with these edits if that takes fewer tokens, else the item itself."""
    edited = edit(item, edits, size)
    return edited if edited.tokens < item.tokens else item


def newest_user(items: Sequence[Item]) -> int | None:
    """Return the index of the newest message in which the user says something, in words or images.

    What an agent's harness writes in the user's role does not count, unless there is nothing else.
    """
    own = (
        at
        for at in range(len(items) - 1, -1, -1)
        if not isinstance(items[at], Summary) and is_users_own(items[at].message)
    )
    return next(own, turn_start(items))


def turn_start(items: Sequence[Item]) -> int | None:
    """Return the index of the newest message in the user's role that is more than tool results: for a provider, a turn begins there."""
    return next((at for at in range(len(items) - 1, -1, -1) if _is_said(items[at])), None)


def is_users_own(message: Message) -> bool:
    """Return whether the user says something in a message, and not only the harness in the user's role."""
    return has_user_content(message) and _is_own(message)


def has_user_content(message: Message) -> bool:
    """Return whether a message says something in the user's role, in words or images."""
    return message.role == "user" and any(_says_something(part) for part in message.parts)


def framed_parts(message: Message) -> tuple[int, ...]:
    """Return which parts of a message are summaries or blocks of pins that a compaction wrote, in this session or another.

    A client that continues from a compacted list sends them back as messages, or as parts of a user's message.
    """
    return tuple(at for at, part in enumerate(message.parts) if _is_framed(part))


def _is_said(item: Item) -> bool:
    return not isinstance(item, Summary) and has_user_content(item.message)


def _says_something(part: AnyPart) -> bool:
    """Return whether a part is the user's: not a tool result, not one of our summaries, and not blank."""
    if isinstance(part, Text):
        return bool(part.text.strip()) and not _is_framed(part)
    return not isinstance(part, ToolResult)


def _is_own(message: Message) -> bool:
    """Return whether any part is the user's own: images and files are, texts may be the harness's."""
    said = [part for part in message.parts if not _is_framed(part)]
    spoken = message if len(said) == len(message.parts) else message.with_parts(tuple(said))
    return bool(own_words(spoken)) or not all(isinstance(part, Text | ToolResult) for part in message.parts)


def _is_framed(part: AnyPart) -> bool:
    return isinstance(part, Text) and (is_framed(part.text) or is_block_text(part.text))
