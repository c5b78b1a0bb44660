"""The next request as the provider's cache will see it."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Literal

from lowwater.values.layout import Block, Layout, Lifetime, chained
from lowwater.values.view import Item, View

PREAMBLE = -1
"""The index that stands for tools and system prompt among the marks."""


def lay_out(view: View, *, start: str, prompt: int, scale: float, marks: Mapping[int, Lifetime]) -> Layout:
    """Return a view of `prompt` tokens in blocks, one for the preamble and one for each part of a message.

    `start` is what else the cache depends on. What the count cannot see is taken to stand in the preamble. `marks` says
    which messages carry a mark on their last part.
    """
    digests = [blake2b(view.tools + b"\0" + view.system, digest_size=16).digest()]
    for item in view.items:
        digest = item.message.digest
        digests.extend(digest if last else digest + bytes((at % 256,)) for at, last in _parts(item))
    keys = iter(chained(digests, start=start.encode()))
    first = max(0, prompt - round(scale * view.tokens))
    blocks = [Block(key=next(keys), tokens=first, mark=marks.get(PREAMBLE, ""))]
    counted, ends = 0, 0
    for index, item in enumerate(view.items):
        pieces = max(1, len(item.message.parts))
        mark = marks.get(index, "")
        turn = _ends(view.items, index)
        for at, last in _parts(item):
            upto = min(prompt - first, round(scale * (counted + item.tokens * (at + 1) / pieces)))
            block = Block(key=next(keys), tokens=upto - ends)
            blocks.append(Block(key=block.key, tokens=block.tokens, mark=mark, ends=turn) if last else block)
            ends = upto
        counted += item.tokens
    return Layout(blocks=tuple(blocks))


def _parts(item: Item) -> Iterator[tuple[int, bool]]:
    """Yield the index of each part of an item, and whether it is the last; an empty message is one block all the same."""
    pieces = max(1, len(item.message.parts))
    for at in range(pieces):
        yield at, at == pieces - 1


def _ends(items: Sequence[Item], index: int) -> Literal["", "input", "output"]:
    if items[index].message.role == "assistant":
        return "output"
    is_last = index + 1 == len(items) or items[index + 1].message.role == "assistant"
    return "input" if is_last else ""
