"""Getting messages back: by handle, or by the words in them."""

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from lowwater.engine.recall.handles import names_messages, read_handle
from lowwater.engine.recall.matching import excerpt
from lowwater.engine.recall.neighbourhood import around, calls_answered, group_of, told
from lowwater.engine.recall.scanning import scan
from lowwater.engine.recall.schemas import is_recall
from lowwater.errors import BadInput
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
_WIDENS = 4
"""How many times more the next time, if that was not enough."""


def recall(
    ledger: Ledger, wanted: str, *, search: Search | None = None, limit: int = MOST_HITS, near: int = 1
) -> list[Recalled]:
    """Return the messages a handle names, in order, or those that match the words best, best first.

    A single message comes with its group and `near` messages before and after that. Without a `search` all
    messages are read. What recall itself was asked and answered earlier is not found by words: it only repeats. A
    `limit` below 1 is BadInput.
    """
    if limit < 1:
        raise BadInput(f"limit is {limit}: ask for at least 1 message")
    if names_messages(wanted):
        numbers = read_handle(wanted, of=len(ledger.messages))
        return list(_named(ledger, numbers, near=near))
    return list(find(ledger, wanted, search=search, limit=limit, near=near))


def find(
    ledger: Ledger,
    words: str,
    *,
    search: Search | None,
    limit: int,
    near: int = 1,
    last: Container[int] = (),
) -> Iterator[Recalled]:
    """Yield the messages that match the words best, best first; those with a number in `last` behind all others."""
    first: list[int] = []
    behind: list[int] = []
    for number in _found(ledger, words, search, limit):
        if number in last:
            behind.append(number)
        elif not _is_own(ledger, number):
            first.append(number)
            if len(first) == limit:
                break
    rest = (number for number in behind if not _is_own(ledger, number))
    for number in islice(chain(first, rest), limit):
        yield _recalled(ledger, number, excerpt_of=words, near=near)


def widening(search: Callable[[int], Sequence[Hit]], limit: int) -> Iterator[Hit]:
    """Yield what a search finds, best first, each once; it is asked for ever more until there is no more.

    The reader stops once it has `limit` that are of use: what is of none, such as recall's own, hides nothing.
    """
    seen: set[tuple[str, int]] = set()
    most = _SPARE * limit
    while True:
        hits = search(most)
        before = len(seen)
        for hit in hits:
            if (hit.session, hit.number) not in seen:
                seen.add((hit.session, hit.number))
                yield hit
        if len(seen) == before or len(hits) < most:
            return
        most *= _WIDENS


def _is_own(ledger: Ledger, number: int) -> bool:
    """Return whether a message is a call of recall or its answer."""
    message = ledger.messages[number - 1].message
    calls = message.calls
    if message.results and not any(isinstance(part, Text) for part in message.parts):
        calls = tuple(calls_answered(ledger.messages, number))
    return bool(calls) and all(is_recall(call.name) for call in calls)


def _found(ledger: Ledger, words: str, search: Search | None, limit: int) -> Iterator[int]:
    """Yield the numbers of the messages that match, best first, as far as they are asked for."""
    count = len(ledger.messages)
    if search is None:
        yield from scan(ledger, words, count)
        return
    for hit in widening(lambda most: search(words, most), limit):
        # An index may know of messages that another process appended since.
        if hit.number <= count:
            yield hit.number


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
