"""The words of a message as a full-text index takes them, and those of a search."""

import re
from collections.abc import Callable
from unicodedata import normalize

from lowwater.core.messages import Message, texts_of

Conceal = Callable[[str], str]
"""Takes secrets out of a text before its words are indexed."""

MOST_WORDS = 200
"""How many different words of a search are looked for; whoever pastes a whole log means its beginning too."""

_UNSPACED = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f])"
)
_BETWEEN_WORDS = re.compile(r"[\s\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]+")
_TERM = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")


def as_it_is(text: str) -> str:
    """Return the text: nothing is concealed."""
    return text


def spaced(text: str) -> str:
    """Return the text with each Chinese, Japanese and Korean character a word, for these are written without spaces.

    A query has to be spaced likewise: the characters of a word, next to each other, find it.
    """
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", normalize("NFC", text))


def words_of(message: Message, conceal: Conceal = as_it_is) -> str:
    """Return all text of a message that may be found, ready for the index."""
    return spaced(conceal("\n".join(texts_of(message))))


def phrases_in(words: str) -> list[str]:
    """Return the different words of a search, each as the terms that have to follow each other, with a space between.

    Terms are letters and digits only: what stands between them has no meaning to an index, nor can it have one to a query.
    """
    phrases = (" ".join(_TERM.findall(spaced(word))) for word in _BETWEEN_WORDS.split(words))
    return list(dict.fromkeys(phrase for phrase in phrases if phrase))[:MOST_WORDS]


def folded_terms(text: str) -> list[str]:
    """Return the terms of a spaced text with case and accents taken away, as SQLite's index compares them."""
    plain = text if text.isascii() else normalize("NFC", _ACCENTS.sub("", normalize("NFD", text)))
    return _TERM.findall(plain.lower())
