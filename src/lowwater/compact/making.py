"""What the mechanisms need beside the view: sizes, settings, and what the request offers; and how an item is edited."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from lowwater.ports import Tokenizer
from lowwater.values.edits import apply_edits, merge_edits
from lowwater.values.entries import Edit
from lowwater.values.message import Message
from lowwater.values.preset import Preset
from lowwater.values.view import Edited, Item, Summary


class Making(Struct, frozen=True, kw_only=True):
    """How placeholders and summaries are made and measured."""

    size: Callable[[Message], int]
    """Counts a message, framing included."""
    tokenizer: Tokenizer
    preset: Preset = Preset()
    digest_ratio: float = 0.15
    offers_recall: bool = False
    """The request offers the model a recall tool."""
    redact: bool = True
    """Summaries hold no secrets."""


def edit(item: Item, edits: Iterable[Edit], size: Callable[[Message], int]) -> Edited:
    """Return the item with these edits on top of those it had."""
    assert not isinstance(item, Summary), "a summary is replaced whole, never edited"
    original = item.original if isinstance(item, Edited) else item.message
    merged = merge_edits(item.edits if isinstance(item, Edited) else (), edits)
    message = apply_edits(original, merged)
    return Edited(number=item.number, original=original, edits=merged, message=message, tokens=size(message))


def edit_if_smaller(item: Item, edits: Iterable[Edit], size: Callable[[Message], int]) -> Item:
    """Return the item with these edits if that takes fewer tokens, else the item itself."""
    edited = edit(item, edits, size)
    return edited if edited.tokens < item.tokens else item
