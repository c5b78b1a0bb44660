"""The order of what a search finds: one rule for every store.

A store says which messages have which of a question's terms (`likely` picks those worth a closer look), then where in these
they stand. `rank` orders them by BM25 with three additions: terms that stood side by side in the question count more where they
do so in the message, a message gains from terms that only the messages beside it have (an answer is often found by the words of what was asked), and
a question of several words also finds what stands beside the best match without having its words.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from math import log

from msgspec import Struct

from lowwater.core.recall.index_terms import Question

Place = tuple[int, int]
"""A message: the version of its session, by which sessions sort by age, and its number."""

CANDIDATES = 200
"""How many messages are looked at closely."""
SATURATION, LENGTH_WEIGHT = 0.9, 0.25
"""The parameters k1 and b of BM25: the results of tools are long, and hold what is looked for."""
SIDE_BY_SIDE = 2.0
"""What two terms that stand side by side, as in the question, add to the weight of the rarer one."""
NEAREST = 2
"""How many places apart terms may stand to count as side by side, in either order."""
BESIDE = 0.5
"""The share of what a term is worth beside a message that the message gains if it lacks the term."""
FEWEST_ASKED, FEWEST_FOUND = 4, 3
"""Words of a question, and terms that a message has of it, if what stands beside that message is found, too."""
MOST_PLACES = 64
"""Occurrences of a term in one message that count; more add nothing."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A message that has terms of the question: its size, and where each word of the index stands in it, in order."""

    tokens: int
    places: Mapping[str, Sequence[int]]


class SearchedText(Struct, frozen=True, kw_only=True):
    """A message as its terms in order, without an index."""

    place: Place
    tokens: int
    terms: Sequence[str]


class Corpus(Struct, frozen=True, kw_only=True):
    """What was searched: the number of messages, their sizes together, and how many have each term of the question."""

    messages: int
    tokens: int
    having: tuple[int, ...]


def weights(corpus: Corpus) -> list[float]:
    """Return how much each term of the question counts: rare ones most, those that no message has nothing."""
    number = max(corpus.messages, 1)
    return [
        log(1 + max(number - count + 0.5, 0.5) / (count + 0.5)) if count else 0.0 for count in corpus.having
    ]


def likely(having: Sequence[Collection[Place]], corpus: Corpus, limit: int = 0) -> list[Place]:
    """Return the messages that have most of the terms, by weight, the newest first among equals.

    `having` are the messages that have each term of the question; `limit` is how many are wanted in the end.
    """
    worth: dict[Place, float] = {}
    for weight, places in zip(weights(corpus), having, strict=True):
        for place in places:
            worth[place] = worth.get(place, 0.0) + weight
    return nsmallest(max(CANDIDATES, limit), worth, key=lambda place: (-worth[place], -place[0], -place[1]))


def rank(
    question: Question, candidates: Mapping[Place, Candidate], corpus: Corpus
) -> list[tuple[Place, float]]:
    """Return messages with their scores, best first, the newest first among equals.

    Neighbours of candidates may be among them that do not exist, before the first message or after the last one.
    """
    counted = weights(corpus)
    worth = {place: _worth(question, one, counted, corpus) for place, one in candidates.items()}
    asked = dict.fromkeys(worth)
    if question.length >= FEWEST_ASKED:
        sure = [place for place, own in worth.items() if sum(map(bool, own.terms)) >= FEWEST_FOUND]
        asked |= dict.fromkeys((session, number + by) for session, number in sure for by in (-1, 1))
    nothing = _Worth(terms=(0.0,) * len(question.terms))
    scores: dict[Place, float] = {}
    for session, number in asked:
        own, *beside = (worth.get((session, number + by), nothing) for by in (0, -1, 1))
        lacking = sum(
            max(others)
            for mine, *others in zip(own.terms, *(each.terms for each in beside), strict=True)
            if not mine
        )
        scores[session, number] = sum(own.terms) + own.pairs + BESIDE * lacking
    return sorted(scores.items(), key=lambda scored: (-scored[1], -scored[0][0], -scored[0][1]))


class _Worth(Struct, frozen=True, kw_only=True):
    """What a message itself says for it: by each term, and by terms that stand side by side."""

    terms: tuple[float, ...]
    pairs: float = 0.0


def _worth(question: Question, one: Candidate, counted: Sequence[float], corpus: Corpus) -> _Worth:
    length = one.tokens * corpus.messages / max(corpus.tokens, 1)
    norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length)
    places = _by_term(question, one.places)
    terms = tuple(
        weight * len(found) * (SATURATION + 1) / (len(found) + norm) if found else 0.0
        for weight, found in zip(counted, places, strict=True)
    )
    pairs = sum(
        SIDE_BY_SIDE * min(counted[first], counted[second])
        for first, second in question.pairs
        if places[first] and places[second] and _are_near(places[first], places[second])
    )
    return _Worth(terms=terms, pairs=pairs)


def rank_texts(question: Question, texts: Iterable[SearchedText], limit: int) -> list[tuple[Place, float]]:
    """Return the texts that match best with their scores, best first, where there is no index."""
    candidates: dict[Place, Candidate] = {}
    having: list[list[Place]] = [[] for _ in question.terms]
    words = frozenset(question.words)
    messages = tokens = 0
    for text in texts:
        messages += 1
        tokens += text.tokens
        places: dict[str, list[int]] = {}
        if not words.isdisjoint(text.terms):
            for at, term in enumerate(text.terms):
                if term in words:
                    places.setdefault(term, []).append(at)
        for wanted, found in zip(question.terms, having, strict=True):
            if places and occurrences(wanted.forms, places):
                found.append(text.place)
                candidates[text.place] = Candidate(tokens=text.tokens, places=places)
    corpus = Corpus(messages=messages, tokens=tokens, having=tuple(map(len, having)))
    best = {place: candidates[place] for place in likely(having, corpus, limit)}
    return rank(question, best, corpus)


def _by_term(question: Question, places: Mapping[str, Sequence[int]]) -> list[list[int]]:
    """Return where each term stands, as `occurrences` does; only words that are there are looked at."""
    there = places.keys()
    return [
        occurrences([form for form in term.forms if form[0] in there], places)
        if not there.isdisjoint(term.first_words)
        else []
        for term in question.terms
    ]


def occurrences(forms: Sequence[tuple[str, ...]], places: Mapping[str, Sequence[int]]) -> list[int]:
    """Return where one of the forms begins, in order, the first ones only if there are many."""
    found: list[int] = []
    for form in forms:
        first = places.get(form[0], ())
        if len(form) > 1:
            rest = [set(places.get(word, ())) for word in form[1:]]
            first = [at for at in first if all(at + by in there for by, there in enumerate(rest, start=1))]
        found += first
    return sorted(found)[:MOST_PLACES]


def _are_near(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Return whether some of these places are at most `NEAREST` apart."""
    for at in ours:
        index = bisect_left(theirs, at - NEAREST)
        if index < len(theirs) and theirs[index] <= at + NEAREST:
            return True
    return False
