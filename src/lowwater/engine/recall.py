"""Getting messages back: by handle, or by the words in them."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

from msgspec import Struct

from lowwater.errors import BadInput
from lowwater.values.ledger import Ledger
from lowwater.values.message import Message, texts_of

_HANDLE = re.compile(r"^\s*(?:lw:)?(\d+)\s*$")
_WORD = re.compile(r"[\w./-]*\w|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MOST_HITS = 5
_SATURATES, _BY_LENGTH = 1.2, 0.75


class Recalled(Struct, frozen=True, kw_only=True):
    """One message as it was, with its number and size."""

    number: int
    message: Message
    tokens: int

    @property
    def handle(self) -> str:
        """How a placeholder refers to it."""
        return f"lw:{self.number}"

    @property
    def text(self) -> str:
        """Everything it says, calls and results included."""
        return "\n".join(texts_of(self.message))


def recall(ledger: Ledger, wanted: str) -> list[Recalled]:
    """Return the message a handle names, or those that match the words best, best first."""
    handle = _HANDLE.match(wanted)
    if handle:
        number = int(handle[1])
        if not 1 <= number <= len(ledger.messages):
            raise BadInput(f"there is no message lw:{number}: the session has {len(ledger.messages):,}")
        return [_recalled(ledger, number)]
    return [_recalled(ledger, number) for number in _search(ledger, _words(wanted))]


def _search(ledger: Ledger, words: Sequence[str]) -> list[int]:
    """Rank by BM25: rare words count most, repetition ever less, and long messages do not win by their length."""
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

    return sorted(found, key=lambda number: (-score(number), -number))[:_MOST_HITS]


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(text)))


def _recalled(ledger: Ledger, number: int) -> Recalled:
    numbered = ledger.messages[number - 1]
    return Recalled(number=number, message=numbered.message, tokens=numbered.tokens)
