"""How well texts match a search, by BM25, for a store that has no index."""

from collections import Counter
from collections.abc import Sequence
from math import log

_SATURATES, _BY_LENGTH = 1.2, 0.75


def rank(phrases: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> dict[int, float]:
    """Return the score of each text that has one of the phrases, by its index; texts and phrases are terms in order.

    Rare phrases count most, repetition ever less, and a long text does not win by its length.
    """
    found = {index: hits for index, text in enumerate(texts) if (hits := _occurrences(phrases, text))}
    in_texts = Counter(phrase for hits in found.values() for phrase in hits)
    usual = sum(map(len, texts)) / len(texts) if texts else 0.0
    weights = {
        phrase: log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for phrase, count in in_texts.items()
    }
    return {
        index: sum(
            weights[phrase] * _saturated(times, len(texts[index]) / usual) for phrase, times in hits.items()
        )
        for index, hits in found.items()
    }


def _saturated(times: int, length: float) -> float:
    return times * (_SATURATES + 1) / (times + _SATURATES * (1 - _BY_LENGTH + _BY_LENGTH * length))


def _occurrences(phrases: Sequence[Sequence[str]], text: Sequence[str]) -> dict[int, int]:
    """Return how often each phrase is in the text, by the phrase's index; one that is not in it is left out."""
    there = set(text)
    counts = {
        index: _count(phrase, text)
        for index, phrase in enumerate(phrases)
        if phrase and there.issuperset(phrase)
    }
    return {index: count for index, count in counts.items() if count}


def _count(phrase: Sequence[str], text: Sequence[str]) -> int:
    first, length = phrase[0], len(phrase)
    if length == 1:
        return text.count(first)
    wanted = list(phrase)
    return sum(term == first and list(text[at : at + length]) == wanted for at, term in enumerate(text))
