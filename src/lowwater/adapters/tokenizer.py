"""Exact token counts from the vocabularies inside the package `splintr`."""

import re
from functools import cache
from typing import Protocol, cast

from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.errors import NoVocabulary
from lowwater.protocols import Tokenizer

_VOCABULARIES = {
    "o200k": "o200k_base",
    "cl100k": "cl100k_base",
    "qwen3": "qwen3",
    "llama3": "llama3",
    "deepseek": "deepseek_v3",
    "glm": "glm4",
    "kimi": "kimi_k2",
    "mistral": "mistral_v3",
}
"""From our names, which are stored with every count, to the package's."""

PIECE = 1 << 20
"""Longer texts are counted in pieces of about this many characters: a list of all their tokens would not fit."""

# Where a text can be cut without changing its tokens: a word starts after a line break, or after one space.
_SEAM = re.compile(r"(?<=\n)(?=[A-Za-z])|(?<=[A-Za-z0-9])(?= [A-Za-z])")


class _Encoder(Protocol):
    def encode_ordinary(self, text: str, /) -> list[int]: ...


class SplintrTokenizer:
    """A Tokenizer with the exact counts of one vocabulary; safe to share between threads."""

    def __init__(self, vocabulary: str = "o200k") -> None:
        """Load `vocabulary`, or raise NoVocabulary if the package is not installed or does not have it."""
        self._vocabulary = vocabulary
        self._encoder = _load(vocabulary)

    @property
    def vocabulary(self) -> str:
        """The vocabulary's name, stored with every count."""
        return self._vocabulary

    def count(self, text: str, /) -> int:
        """Return the number of tokens; special tokens count as plain text, and a lone surrogate as one unknown character."""
        if len(text) <= PIECE:
            return self._count_piece(text)
        total = start = 0
        while start < len(text):
            end = _seam(text, start + PIECE)
            total += self._count_piece(text[start:end])
            start = end
        return total

    def _count_piece(self, text: str) -> int:
        try:
            return len(self._encoder.encode_ordinary(text))
        except UnicodeEncodeError:
            return len(self._encoder.encode_ordinary(_without_lone_surrogates(text)))


@cache
def tokenizer_for(vocabulary: str) -> Tokenizer:
    """Return the tokenizer of `vocabulary`, or the estimate where the package is missing or does not know it."""
    try:
        return SplintrTokenizer(vocabulary)
    except NoVocabulary:
        return CharacterTokenizer()


@cache
def _load(vocabulary: str) -> _Encoder:
    name = _VOCABULARIES.get(vocabulary)
    if name is None:
        raise NoVocabulary(f"no vocabulary {vocabulary!r}: use one of {', '.join(_VOCABULARIES)}")
    try:
        from splintr import Tokenizer as Vocabulary  # noqa: PLC0415  # megabytes of tables, wanted by few commands
    except ImportError:
        raise NoVocabulary("the package splintr-rs is not installed: pip install splintr-rs") from None
    try:
        return cast(_Encoder, Vocabulary.from_pretrained(name))
    except ValueError as error:
        raise NoVocabulary(f"splintr does not know the vocabulary {name!r}: {error}") from None


def _seam(text: str, wanted: int) -> int:
    """Return a place at or after `wanted` where cutting changes no count, or `wanted` if there is none near."""
    if wanted >= len(text):
        return len(text)
    found = _SEAM.search(text, wanted, wanted + PIECE)
    return found.start() if found else wanted


def _without_lone_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
