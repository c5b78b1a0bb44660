"""Keeping an answer within a number of tokens: what fits of a text, and how many of several texts."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

T = TypeVar("T")

Count: TypeAlias = Callable[[str], int]

_CHARACTERS, _BYTES = 4, 4
"""Characters of a usual token; tokens of the worst character."""
_TRIES = 6
_FULL = 0.95
_MARGIN = 0.98


class Block(Struct, Generic[T], frozen=True, kw_only=True):
    """A piece of an answer that is shown whole or not at all, and what it is about."""

    text: str
    about: T


def fitting(text: str, start: int, stop: int, tokens: int, count: Count) -> int:
    """Return where to end a text that begins at `start` so that it is at most `tokens`: at `stop`, or behind a line.

    Where lines are too long for that, it ends within one. It gets further than `start` if `tokens` allows one character.
    """
    best, reach = start, min(stop, start + tokens * _CHARACTERS)
    for _ in range(_TRIES):
        if reach <= best:
            break
        used = count(text[start:reach])
        if used > tokens:
            reach = start + int((reach - start) * tokens / used * _MARGIN)
            continue
        best = reach
        if used >= _FULL * tokens:
            break
        reach = min(stop, start + int((reach - start) * tokens / max(used, 1)))
    best = max(best, min(stop, start + tokens // _BYTES))
    if best >= stop:
        return stop
    line = text.rfind("\n", start, best) + 1
    return line if line - start >= (best - start) / 2 else best


def within(tokens: int, count: Count, tell: Callable[[int], str]) -> str | None:
    """Return what `tell` makes of the largest room for which it stays within `tokens`; None if there is none."""
    room = tokens
    while room >= _BYTES:
        told = tell(room)
        over = count(told) - tokens
        if over <= 0:
            return told
        room -= over
    return None


def fill(
    blocks: Iterable[Block[T]], tokens: int, count: Count, frame: Callable[[str, int, T | None], str]
) -> str | None:
    """Return as many blocks as fit, in order, framed; None if not even one does.

    `frame` is given the text of the blocks, how many they are, and what the first one left out is about.
    """
    taken: list[Block[T]] = []
    room, left = tokens - count(frame("", 0, None)), None
    for block in blocks:
        room -= count(f"{block.text}\n")
        if room < 0:
            left = block
            break
        taken.append(block)
    while taken:
        about = None if left is None else left.about
        text = frame("\n".join(block.text for block in taken), len(taken), about)
        if count(text) <= tokens:
            return text
        left = taken.pop()
    return None
