"""Where a reference stands in texts: as whole words, in the order the texts came."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"\w")


def find(text: str, within: str, start: int = 0) -> int:
    """Return where `text` occurs as whole words in `within` from `start` on, or -1."""
    first, last = _LETTER.match(text[0]), _LETTER.match(text[-1])
    at = within.find(text, start)
    while at >= 0:
        after = at + len(text)
        is_cut = (first and at > 0 and _LETTER.match(within[at - 1])) or (
            last and after < len(within) and _LETTER.match(within[after])
        )
        if not is_cut:
            return at
        at = within.find(text, at + 1)
    return -1


class Occurrences:
    """Which of many texts have a reference; only those that have its longest word are read."""

    def __init__(self, texts: Sequence[str], wanted: Iterable[str]) -> None:
        """Note for the longest word of each wanted reference which texts have it; every text is read once."""
        self._texts = texts
        self._having: dict[str, list[int]] = defaultdict(list)
        keys = {_longest_word(text) for text in wanted}
        for index, text in enumerate(texts):
            for word in keys.intersection(_WORD.findall(text)):
                self._having[word].append(index)

    def of(self, text: str) -> Iterator[int]:
        """Yield the indexes of the texts that have a wanted reference, in order."""
        word = _longest_word(text)
        # Words of a reference are whole words wherever the reference is; one without words may be anywhere.
        candidates = self._having[word] if word else range(len(self._texts))
        for index in candidates:
            if find(text, self._texts[index]) >= 0:
                yield index


def _longest_word(text: str) -> str:
    return max(_WORD.findall(text), key=len, default="")
