"""The passages of messages that have certain words, as a model is shown them."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lowwater.engine.recall.cutting import Block, Count, fill, fitting, within
from lowwater.engine.recall.expanding import read_messages
from lowwater.engine.recall.handles import clipped, handle_of
from lowwater.engine.recall.matching import passages
from lowwater.engine.recall.ranges import counted, first_of, without
from lowwater.engine.recall.showing import caption, place_of
from lowwater.errors import BadInput
from lowwater.values.entries import Numbers
from lowwater.values.ledger import Ledger

_SEARCHED = 1_000
"""Messages that are read in search of words at once."""


class _Place(Struct, frozen=True, kw_only=True):
    number: int
    start: int
    """The character of its text, from 0."""
    length: int


def show_around(
    ledger: Ledger, numbers: Sequence[Numbers], words: str, tokens: int, count: Count
) -> str | None:
    """Return the passages that have the words, or most of them, within `tokens`; None if there is no room for one.

    Raise BadInput if no message has any of the words. What is left out, and what was not searched, is named.
    """
    searched = first_of(numbers, _SEARCHED)
    unread = tuple(without(numbers, searched))
    blocks = list(_until(_passages(ledger, searched, words), tokens, count))
    if not blocks:
        further = f"go on with {handle_of(unread)}" if unread else "try fewer or other words"
        raise BadInput(f"{clipped(words)} does not stand in {handle_of(searched)}: {further}")

    def frame(text: str, _: int, left: _Place | None) -> str:
        return f"{text}{_note(numbers, unread, left)}"

    filled = fill(blocks, tokens, count, frame)
    if filled is not None:
        return filled
    first = blocks[0]

    def cut(room: int) -> str:
        end = fitting(first.text, 0, len(first.text), room, count)
        return f"{first.text[:end]}{_note(numbers, unread, first.about)}"

    return within(tokens, count, cut)


def _passages(ledger: Ledger, numbers: Sequence[Numbers], words: str) -> Iterator[Block[_Place]]:
    for told in read_messages(ledger, numbers):
        text = told.text
        for part in passages(text, words):
            said = f"[{caption(ledger.messages, told)}{place_of(text, part)}]"
            place = _Place(number=told.number, start=part.start, length=len(text))
            yield Block(text=f"{said}\n{text[part.start : part.stop]}", about=place)


def _until(blocks: Iterator[Block[_Place]], tokens: int, count: Count) -> Iterator[Block[_Place]]:
    """Yield blocks until there are more than fit, and no further."""
    for block in blocks:
        yield block
        tokens -= count(block.text)
        if tokens < 0:
            return


def _note(numbers: Sequence[Numbers], unread: Sequence[Numbers], left: _Place | None) -> str:
    if left is not None and counted(numbers) == 1:
        return f"\n[more follows: go on with characters [{left.start + 1}, {left.length}]]"
    if left is not None:
        rest = tuple(without(numbers, (Numbers(first=1, last=left.number - 1),)))
        if left.number > numbers[0].first:
            return f"\n[more follows: ask around the same words in {handle_of(rest)}]"
        # The same question about the same messages would only be answered as before.
        further = handle_of(tuple(without(numbers, (Numbers(first=1, last=left.number),))))
        return (
            f"\n[more follows: go on with lw:{left.number} and characters [{left.start + 1}, {left.length}], "
            f"then ask around the same words in {further}]"
        )
    return f"\n[not searched yet: {handle_of(unread)}]" if unread else ""
