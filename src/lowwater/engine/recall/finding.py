"""Getting messages back: by handle, or by the words in them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from lowwater.engine.recall.handles import names_messages, read_handle
from lowwater.engine.recall.matching import excerpt
from lowwater.engine.recall.neighbourhood import around, calls_answered, group_of, told
from lowwater.engine.recall.scanning import scan
from lowwater.engine.recall.schemas import is_recall
from lowwater.values.entries import Numbers
from lowwater.values.ledger import Ledger
from lowwater.values.parts import Text
from lowwater.values.recalled import Recalled
from lowwater.values.stored import Hit

Search: TypeAlias = Callable[[str, int], Sequence[Hit]]
"""Finds at most so many messages of the session by words, best first."""

MOST_HITS = 5
_SPARE = 3
"""How many more are asked for than wanted, for some of them may be recall's own."""


def recall(
    ledger: Ledger, wanted: str, *, search: Search | None = None, limit: int = MOST_HITS, near: int = 1
) -> list[Recalled]:
    """Return the messages a handle names, in order, or those that match the words best, best first.

    A single message comes with its group and `near` messages before and after that. Without a `search` all
    messages are read. What recall itself was asked and answered earlier is not found by words: it only repeats.
    """
    if names_messages(wanted):
        numbers = read_handle(wanted, of=len(ledger.messages))
        return list(_named(ledger, numbers, near=near))
    return list(find(ledger, wanted, search=search, limit=limit, near=near))


def find(
    ledger: Ledger, words: str, *, search: Search | None, limit: int, near: int = 1
) -> Iterator[Recalled]:
    """Yield the messages that match the words best, best first."""
    for number in islice(_others(ledger, _found(ledger, words, search, _SPARE * limit)), limit):
        yield _recalled(ledger, number, excerpt_of=words, near=near)


def _found(ledger: Ledger, words: str, search: Search | None, limit: int) -> Iterable[int]:
    if search is None:
        return scan(ledger, words, limit)
    # An index may know of messages that another process appended since.
    return [hit.number for hit in search(words, limit) if hit.number <= len(ledger.messages)]


def _others(ledger: Ledger, numbers: Iterable[int]) -> Iterator[int]:
    """Yield the messages that are not calls of recall or its answers."""
    for number in numbers:
        message = ledger.messages[number - 1].message
        calls = message.calls
        if message.results and not any(isinstance(part, Text) for part in message.parts):
            calls = tuple(calls_answered(ledger.messages, number))
        if not calls or not all(is_recall(call.name) for call in calls):
            yield number


def _named(ledger: Ledger, numbers: Sequence[Numbers], *, near: int) -> Iterator[Recalled]:
    if len(numbers) == 1 and numbers[0].first == numbers[0].last:
        yield _recalled(ledger, numbers[0].first, near=near)
        return
    for span in numbers:
        for one in told(ledger.messages, span):
            alone = Numbers(first=one.number, last=one.number)
            yield Recalled(
                number=one.number,
                message=one.message,
                tokens=one.tokens,
                group=alone,
                excerpt=excerpt(one.text),
            )


def _recalled(ledger: Ledger, number: int, *, excerpt_of: str = "", near: int) -> Recalled:
    group = group_of(ledger.messages, number)
    all_near = told(ledger.messages, around(ledger.messages, group, near))
    (one,) = (one for one in all_near if one.number == number)
    return Recalled(
        number=number,
        message=one.message,
        tokens=one.tokens,
        excerpt=excerpt(one.text, excerpt_of),
        group=group,
        near=tuple(other for other in all_near if other.number != number),
    )
