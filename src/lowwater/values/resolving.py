"""From what an entry says the view is to the items of that view."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from lowwater.errors import IllegalEntry
from lowwater.values.chain import Chain
from lowwater.values.edits import apply_edits
from lowwater.values.entries import Altered, Kept, Stand, Summarized
from lowwater.values.message import Message
from lowwater.values.native_block import message_with
from lowwater.values.parts import Text
from lowwater.values.view import Edited, Item, Original, Summary, View


class Numbered(Struct, frozen=True, kw_only=True):
    """An appended message and its size; its number is its place in the ledger's messages, from 1."""

    message: Message
    tokens: int


class Restored(NamedTuple):
    """The items of a view after a rewind, and the size of all messages they stand for."""

    items: list[Item]
    whole: int


def resolve(stands: tuple[Stand, ...], messages: Chain[Numbered]) -> list[Item]:
    """Return the items that these stands are, or raise IllegalEntry."""
    _bring(stands, messages)
    items: list[Item] = []
    for stand in stands:
        match stand:
            case Kept(numbers=numbers):
                items.extend(originals(messages, numbers.first, numbers.last))
            case Altered(number=number, edits=edits, tokens=tokens):
                original = numbered_in(messages, number).message
                message = apply_edits(original, edits)
                items.append(
                    Edited(number=number, original=original, edits=edits, message=message, tokens=tokens)
                )
            case Summarized(sources=sources, tokens=tokens, depth=depth):
                if any(not 1 <= s.first <= s.last <= len(messages) for s in sources):
                    raise IllegalEntry(f"a summary names messages beyond the {len(messages)} there are")
                message = Message(role=stand.role, parts=(Text(text=stand.text),))
                if stand.block:
                    message = message_with(stand.block)
                items.append(Summary(message=message, tokens=tokens, sources=sources, depth=depth))
    return items


def originals(messages: Chain[Numbered], first: int, last: int) -> list[Item]:
    """Return the messages numbered `first` to `last` as they came, or raise IllegalEntry."""
    if first <= last and not (first >= 1 and last <= len(messages)):
        raise IllegalEntry(f"no messages {first} to {last} in a ledger of {len(messages)}")
    return [
        Original(number=number, message=each.message, tokens=each.tokens)
        for number, each in enumerate(messages[first - 1 : last], start=first)
    ]


def rewound(then: View, now: View, messages: Chain[Numbered], *, came: int) -> Restored:
    """Return what was shown `then`, when so many messages had come, and behind it what is shown `now` and came later.

    What an earlier rewind discarded stays discarded.
    """
    later = [
        item
        for first, last in _runs(sorted(number for number in now.shown_numbers() if number > came))
        for item in originals(messages, first, last)
    ]
    return Restored(items=[*then.items, *later], whole=then.whole + sum(item.tokens for item in later))


def taken_back(view: View, numbers: Iterable[int], messages: Chain[Numbered]) -> View:
    """Return the view without the messages with these numbers; what a summary stands for stays."""
    gone = set(numbers)
    kept = [item for item in view.items if isinstance(item, Summary) or item.number not in gone]
    shown = {item.number for item in view.items if not isinstance(item, Summary)}
    lost = sum(numbered_in(messages, number).tokens for number in gone & shown)
    return view.showing(kept, whole=view.whole - lost)


def numbered_in(messages: Chain[Numbered], number: int) -> Numbered:
    """Return the message with this number, or raise IllegalEntry."""
    if not 1 <= number <= len(messages):
        raise IllegalEntry(f"no message {number} in a ledger of {len(messages)}")
    return messages[number - 1]


def _bring(stands: Iterable[Stand], messages: Chain[Numbered]) -> None:
    """Look at neighbours together: where messages lie elsewhere, each look is a journey."""
    if messages.is_here:
        return
    for first, last in _runs(sorted(number for stand in stands for number in _in_person(stand))):
        _ = messages[max(0, first - 1) : last]


def _in_person(stand: Stand) -> Iterable[int]:
    match stand:
        case Kept(numbers=numbers):
            return range(numbers.first, numbers.last + 1)
        case Altered(number=number):
            return (number,)
        case Summarized():
            return ()


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of neighbours in ascending numbers."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[start], numbers[at - 1]
            start = at
