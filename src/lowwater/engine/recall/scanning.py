"""Searching a ledger that has no index: every message is read."""

from collections import Counter
from math import log

from lowwater.engine.recall.matching import words_in
from lowwater.values.ledger import Ledger
from lowwater.values.message import texts_of

_SATURATES, _BY_LENGTH = 1.2, 0.75


def scan(ledger: Ledger, wanted: str, limit: int) -> list[int]:
    """Return the numbers of the messages that match best, best first.

    They rank by BM25: rare words count most, repetition ever less, and long messages do not win by their length.
    """
    words = words_in(wanted)
    found: dict[int, Counter[str]] = {}
    lengths: dict[int, int] = {}
    whole = 0
    for number, numbered in enumerate(ledger.messages, start=1):
        text = "\n".join(texts_of(numbered.message)).lower()
        whole += len(text)
        hits = Counter({word: text.count(word) for word in words if word in text})
        if hits:
            found[number], lengths[number] = hits, len(text)
    count = len(ledger.messages)
    seen_in = Counter(word for hits in found.values() for word in hits)

    def score(number: int) -> float:
        longer = lengths[number] * count / whole
        return sum(
            log(1 + (count - seen_in[word] + 0.5) / (seen_in[word] + 0.5))
            * times
            / (times + _SATURATES * (1 - _BY_LENGTH + _BY_LENGTH * longer))
            for word, times in found[number].items()
        )

    return sorted(found, key=lambda number: (-score(number), -number))[:limit]
