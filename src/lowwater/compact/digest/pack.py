"""Choosing what fits: marks up to a share of the budget, then the names most worth their tokens."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact.digest.names import Name
from lowwater.compact.digest.outline import Mark
from lowwater.ports import Tokenizer

_DEARER = 0.9
"""How strongly a name's tokens count against its worth."""

_SHORTEST = 10
"""Tokens below which part of a mark says nothing."""

_WORD = re.compile(r"\w+")


class Priced(Struct, frozen=True, kw_only=True):
    """A name with its place in the text's order, its tokens, and its worth for them."""

    name: Name
    order: int
    tokens: int
    value: float


def choose_marks(marks: Sequence[Mark], tokens: int, tokenizer: Tokenizer) -> list[Mark]:
    """Return the marks of the lowest levels that fit into `tokens`, in order; the last one may be cut."""
    chosen: dict[int, Mark] = {}
    for index in sorted(range(len(marks)), key=lambda index: marks[index].level):
        mark = marks[index]
        cost = price(mark, tokenizer)
        if cost > tokens:
            if tokens >= _SHORTEST:
                kept = mark.label[: len(mark.label) * (tokens - 2) // cost].rsplit(" ", 1)[0]
                chosen[index] = replace(mark, label=f"{kept} …")
            break
        chosen[index] = mark
        tokens -= cost
    return [chosen[index] for index in sorted(chosen)]


def price(mark: Mark, tokenizer: Tokenizer) -> int:
    """Return the tokens of a mark on a line of its own."""
    return 1 + tokenizer.count(mark.label)


def choose_names(names: Sequence[Name], tokens: int, tokenizer: Tokenizer) -> list[Priced]:
    """Return the names with the greatest worth per token that fit into `tokens`, in order.

    A name that stands inside another chosen one is not written twice.
    """
    chosen: list[Priced] = []
    said: set[str] = set()
    offers = _priced(names, tokens, tokenizer)
    for _ in range(2):
        new = []
        for offer in offers:
            if offer.tokens <= tokens and offer.name.text not in said:
                new.append(offer)
                said.add(offer.name.text)
                tokens -= offer.tokens
        within = {part for offer in new for part in _inside(offer.name.shown) if part != offer.name.text}
        chosen += new
        tokens += sum(offer.tokens for offer in chosen if offer.name.text in within)
        chosen = [offer for offer in chosen if offer.name.text not in within]
        said |= within
    return sorted(chosen, key=lambda offer: offer.order)


def _priced(names: Sequence[Name], tokens: int, tokenizer: Tokenizer) -> list[Priced]:
    """Return the names, most worth for their tokens first; of very many, only those that a glance says are good."""
    order = list(range(len(names)))
    most = 2 * max(tokens, 0) + 50
    if len(order) > most:
        order.sort(key=lambda index: -names[index].worth / len(names[index].shown) ** _DEARER)
        order = order[:most]
    offers: list[Priced] = []
    for index in order:
        name = names[index]
        cost = max(1, tokenizer.count(" " + name.shown))
        offers.append(Priced(name=name, order=index, tokens=cost, value=name.worth / cost**_DEARER))
    return sorted(offers, key=lambda offer: (-offer.value, offer.order))


def _inside(name: str) -> Iterator[str]:
    """Yield the words of a name, and what begins or ends it: of `a.b.c`, `a`, `b`, `c`, `a.b` and `b.c`."""
    words = [] if name.isidentifier() else [*_WORD.finditer(name)]
    if len(words) > 1:
        for word in words:
            yield word[0]
            yield name[word.start() :]
            yield name[: word.end()]
