"""The words of a message as the full-text index takes them."""

import re

from lowwater.values.message import Message, texts_of

_UNSPACED = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f])"
)


def spaced(text: str) -> str:
    """Return the text with each Chinese, Japanese and Korean character a word, for these are written without spaces.

    A query has to be spaced likewise: the characters of a word, next to each other, find it.
    """
    return _UNSPACED.sub(r" \1 ", text)


def words_of(message: Message) -> str:
    """Return all text of a message, ready for the index."""
    return spaced("\n".join(texts_of(message)))
