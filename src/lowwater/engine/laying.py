"""The next request as the provider's cache will see it; a view that only grew is laid out from where the last one ended."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.values.layout import KEY_BYTES, Block, Layout, Lifetime
from lowwater.values.message import Message
from lowwater.values.view import Item, View

PREAMBLE = -1
"""The index that stands for tools and system prompt among the marks."""
_SAME_SCALE = 0.005
"""A scale that differs by less than this share does not change the sizes of blocks that were laid out already."""


class Laid(Struct, frozen=True, kw_only=True):
    """A view that was laid out: one block for the preamble, and one for each part of a message."""

    view: View
    layout: Layout
    start: bytes
    prompt: int
    scale: float
    lasts: tuple[int, ...] = ()
    """The block that each item ends with."""
    inside: int = 0
    """Tokens of all blocks but the first."""

    def starts(self) -> list[int]:
        """Return the token position at which each item starts, and where the last one ends."""
        ends = self.layout.ends
        return [ends[0], *(ends[last] for last in self.lasts)]


def lay_out(
    view: View,
    *,
    start: bytes,
    prompt: int,
    scale: float,
    marks: Mapping[int, Lifetime],
    before: Laid | None = None,
) -> Laid:
    """Return a view of `prompt` tokens in blocks.

    `start` is what else the cache depends on. What the count cannot see is taken to stand in the preamble. `marks` says
    which messages carry a mark on their last part. `before` is what was laid out last.
    """
    if before is None or not _goes_on(before, view, start, scale):
        before = _begun(view, start, scale)
    items, blocks, lasts = view.items, list(before.layout.blocks), list(before.lasts)
    known, inside = len(lasts), before.inside
    for at in before.layout.marked:
        blocks[at] = replace(blocks[at], mark="")
    if known:
        blocks[lasts[-1]] = replace(blocks[lasts[-1]], ends=_ends(items, known - 1))
    for index in range(known, len(items)):
        inside += _add(blocks, items[index], before.scale)
        lasts.append(len(blocks) - 1)
        blocks[-1] = replace(blocks[-1], ends=_ends(items, index))
    blocks[0] = replace(blocks[0], tokens=max(0, prompt - inside))
    for index, mark in marks.items():
        at = 0 if index == PREAMBLE else lasts[index]
        blocks[at] = replace(blocks[at], mark=mark)
    return Laid(
        view=view,
        layout=Layout(blocks=tuple(blocks)),
        start=start,
        prompt=prompt,
        scale=before.scale,
        lasts=tuple(lasts),
        inside=inside,
    )


def key_behind(layout: Layout, message: Message) -> bytes:
    """Return the key of the prefix that ends with an answer to what was laid out."""
    key = layout.blocks[-1].key
    for piece in range(max(1, len(message.parts))):
        key = _key(key, message, piece)
    return key


def _begun(view: View, start: bytes, scale: float) -> Laid:
    """Return a view's preamble laid out, without any message."""
    key = blake2b(start + b"\0" + view.tools + b"\0" + view.system, digest_size=KEY_BYTES).digest()
    preamble = Layout(blocks=(Block(key=key, tokens=0),))
    return Laid(view=view, layout=preamble, start=start, prompt=0, scale=scale)


def _goes_on(before: Laid, view: View, start: bytes, scale: float) -> bool:
    """Return whether a view is one that was laid out before, with items behind it."""
    old = before.view
    same = (old.system, old.tools, before.start) == (view.system, view.tools, start)
    return same and view.items.extends(old.items) and abs(scale - before.scale) <= _SAME_SCALE * scale


def _add(blocks: list[Block], item: Item, scale: float) -> int:
    """Append the blocks of an item and return their tokens."""
    tokens, key = round(scale * item.tokens), blocks[-1].key
    pieces = max(1, len(item.message.parts))
    spent = 0
    for piece in range(pieces):
        upto = tokens * (piece + 1) // pieces
        key = _key(key, item.message, piece)
        blocks.append(Block(key=key, tokens=upto - spent))
        spent = upto
    return tokens


def _key(before: bytes, message: Message, piece: int) -> bytes:
    return blake2b(before + message.digest + piece.to_bytes(4, "big"), digest_size=KEY_BYTES).digest()


def _ends(items: Sequence[Item], index: int) -> Literal["", "input", "output"]:
    if items[index].message.role == "assistant":
        return "output"
    is_last = index + 1 == len(items) or items[index + 1].message.role == "assistant"
    return "input" if is_last else ""
