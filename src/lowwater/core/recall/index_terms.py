"""The terms of texts and questions: what an index holds of a message, and in which forms a question's words are looked up.

An index holds words as they are written, without case and accents, and besides them the parts of names in camel case. Endings
are dealt with in the question: each of its words is looked up in all the forms that share its stem. So an index needs no
stemmer, and every store finds the same.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_letters, digits
from unicodedata import normalize

from msgspec import Struct

# Texts

_UNSPACED = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f])"
)
_TERM = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_HUMP = re.compile(r"[a-z][A-Z][A-Za-z0-9]*")
"""A small letter that meets a capital, and the rest of the name."""
_LETTERS = ascii_letters + digits
_CASES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST_NAME = 100
"""Characters of a name in camel case; longer runs of letters are encoded data, which has no words."""


def spaced(text: str) -> str:
    """Return the text with spaces around each Chinese, Japanese and Korean character, so that each is indexed as a word.

    These are written without spaces. A question has to be treated likewise: it finds a word as a phrase of its characters.
    """
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", normalize("NFC", text))


def folded_terms(text: str) -> list[str]:
    """Return the terms of a spaced text without case and accents, as SQLite's index compares them."""
    plain = text if text.isascii() else normalize("NFC", _ACCENTS.sub("", normalize("NFD", text)))
    return _TERM.findall(plain.lower())


def with_parts(text: str) -> str:
    """Return the text, followed by the parts of each name in camel case that it has: `getUserName` is `get User Name`, too."""
    names = dict.fromkeys(_humped(text))
    return "\n".join([text, *map(_parts_of, names)]) if names else text


@lru_cache(maxsize=8_192)
def _parts_of(name: str) -> str:
    return _CASES.sub(" ", name)


def _humped(text: str) -> Iterator[str]:
    """Yield the names in camel case, in order; the whole text is only searched for where a small letter meets a capital."""
    for hump in _HUMP.finditer(text):
        start, end = hump.span()
        # The beginning of the name is stripped off by a loop in C, not letter by letter.
        before = text[max(0, start - _LONGEST_NAME) : start]
        start -= len(before) - len(before.rstrip(_LETTERS))
        if end - start <= _LONGEST_NAME:
            yield text[start:end]


# Stems

_VOWELS = frozenset("aeiouy")
_ENDINGS: tuple[tuple[str, int], ...] = (
    *(
        ("ations", 4),
        ("ation", 4),
        ("ments", 4),
        ("ating", 4),
        ("ment", 4),
        ("ated", 4),
        ("ates", 4),
        ("ings", 3),
    ),
    *(
        ("ions", 4),
        ("ate", 4),
        ("ing", 3),
        ("ion", 4),
        ("ers", 4),
        ("ies", 3),
        ("ied", 3),
        ("er", 4),
        ("ed", 3),
    ),
    *(("es", 3), ("ly", 4), ("s", 3), ("y", 3), ("e", 3)),
)
"""Endings, and how many letters at least have to be left before them; the first that fits is taken off."""
_DOUBLING = frozenset(("ings", "ing", "ers", "er", "ed"))
"""Endings before which a consonant is doubled: `run`, `running`."""
_NEVER_SINGLE = frozenset("aeiouyslfz")
_SHORTEST = 3


def stem(term: str) -> str:
    """Return what a word has in common with its other forms; a stem is always the beginning of its word."""
    if len(term) <= _SHORTEST or not (term.isascii() and term.isalpha()):
        return term
    for ending, least in _ENDINGS:
        if term.endswith(ending) and _may_end(term[: -len(ending)], ending, least):
            left = term[: -len(ending)]
            is_doubled = ending in _DOUBLING and left[-1] == left[-2] and left[-1] not in _NEVER_SINGLE
            return left[:-1] if is_doubled and len(left) > _SHORTEST else left
    return term


def _may_end(left: str, ending: str, least: int) -> bool:
    if len(left) < least or _VOWELS.isdisjoint(left):
        return False
    if ending == "s":
        return left[-1] not in "sui"
    return ending != "y" or left[-1] not in _VOWELS


@lru_cache(maxsize=4_096)
def forms_of(term: str) -> tuple[str, ...]:
    """Return the word and all words that have its stem and one of the endings, the word itself first."""
    if len(term) < _SHORTEST or not (term.isascii() and term.isalpha()):
        return (term,)
    root = stem(term)
    doubled = root + root[-1]
    made = [
        root,
        *(root + ending for ending, _ in _ENDINGS),
        *(doubled + ending for ending in sorted(_DOUBLING)),
    ]
    return tuple(dict.fromkeys([term, *(form for form in made if stem(form) == root)]))


# Questions

MOST_WORDS = 200
"""How many different words a search uses; of a pasted log, the beginning is enough."""
_BETWEEN_WORDS = re.compile(r"[\s\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]+")
UNASKED = frozenset(
    "a about after again ago all also am an and any are as at be because been before being but by can could did do does "
    "doing done down during each earlier either else ever exactly few find for found from get gets getting give go goes "
    "going gone got had has have having here him how if in into is it its just know let like ll look looked made make "
    "makes many may maybe me mentioned might more most much must need no nor not now of off ok okay on once one only or "
    "other out over own please put re really remember said same saw say see seen shall should so some something somewhere "
    "such t talked tell than thank thanks that the their them then there these they thing things this those though through "
    "to told too under until up upon us use used uses using ve very want wanted was well went were what when where whether "
    "which while who whom whose why will with within without won would yes yet you your yours".split()
)
"""Words of questions that say nothing about what is looked for. Whose it is does: `my` and `our` are not among them."""


class Term(Struct, frozen=True, kw_only=True):
    """One thing that a question looks for: a word in all its forms, or characters that have to follow each other."""

    forms: tuple[tuple[str, ...], ...]
    """Each a sequence of terms of the index."""
    first_words: frozenset[str]
    """What the forms begin with."""


class Question(Struct, frozen=True, kw_only=True):
    """What a search looks for: different terms, and which of them stood side by side."""

    terms: tuple[Term, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    length: int = 0
    """How many words it has, without those that only make it a question; parts of a name are not counted apart."""

    @property
    def words(self) -> tuple[str, ...]:
        """All terms of the index that occur in it, each once."""
        return tuple(dict.fromkeys(word for term in self.terms for form in term.forms for word in form))


def read_question(words: str) -> Question:
    """Return what a text looks for; words that only make it a question count only if there are no others."""
    given = [word for word in _BETWEEN_WORDS.split(words) if word]
    asked = [word for word in given if not _is_unasked(word)] or given
    wanted = [phrase for word in asked for phrase in _phrases(folded_terms(spaced(with_parts(word))))]
    places: dict[tuple[str, ...], int] = {}
    terms: list[Term] = []
    order: list[int] = []
    for phrase in wanted:
        key = (stem(phrase[0]),) if len(phrase) == 1 else phrase
        if key not in places:
            if len(terms) == MOST_WORDS:
                break
            places[key] = len(terms)
            terms.append(_term(phrase))
        order.append(places[key])
    beside = pairwise(order)
    return Question(
        terms=tuple(terms),
        pairs=tuple(dict.fromkeys(pair for pair in beside if pair[0] != pair[1])),
        length=len(dict.fromkeys(asked)),
    )


def stems_in(words: str) -> list[str]:
    """Return what the words of a question begin with in all their forms, each once."""
    terms = (term.forms[0][0] for term in read_question(words).terms if len(term.forms[0]) == 1)
    return list(dict.fromkeys(stem(term) for term in terms))


def _is_unasked(word: str) -> bool:
    """Return whether a word only makes a text a question; as a part of a name it does not."""
    terms = folded_terms(word)
    return len(terms) == 1 and terms[0] in UNASKED


def _term(phrase: tuple[str, ...]) -> Term:
    forms = (phrase,) if len(phrase) > 1 else tuple((form,) for form in forms_of(phrase[0]))
    return Term(forms=forms, first_words=frozenset(form[0] for form in forms))


def _phrases(terms: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield runs of single characters that are written without spaces as one phrase each, other terms alone."""
    run: list[str] = []
    for term in terms:
        if _UNSPACED.fullmatch(term):
            run.append(term)
            continue
        if run:
            yield tuple(run)
            run = []
        yield (term,)
    if run:
        yield tuple(run)
