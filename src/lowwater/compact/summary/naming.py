"""What texts name: the paths, identifiers and values in them."""

import re
from collections.abc import Iterator

from lowwater.compact.summary.phrases import flat
from lowwater.values.references import NAME, kind_of, quotes
from lowwater.values.summaries import CriticalKind

Named = tuple[CriticalKind, str]

_MONSTER = 300
"""Characters from which on a word is encoded data: no name, and slow to search."""
_MONSTERS = re.compile(rf"\S{{{_MONSTER},}}")
_PROSE_SLASH = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)")
_LONGEST_QUOTE = 60
_AROUND = ".,;:!?()[]{}<>|*\"'`"
"""What may stand around a word without being part of a name."""


class Naming:
    """Reads texts one after the other. No name has a blank in it, so a word that was met before need not be read again."""

    def __init__(self) -> None:
        self._met: dict[str, tuple[Named, ...]] = {}

    def named_in(self, text: str) -> list[Named]:
        """Return the paths, identifiers and values that a text names, repeated ones too: names, then quotes."""
        met, words = self._met, text.split()
        named: list[Named] = []
        for word in words:
            names = met.get(word)
            if names is None:
                names = met[word] = _names(word)
            if names:
                named += names
        if '"' in text or "`" in text or "'" in text:
            whole = _MONSTERS.sub(" ", text) if max(map(len, words)) >= _MONSTER else text
            named += [("value", flat(quote)) for quote in quotes(whole) if len(quote) <= _LONGEST_QUOTE]
        return named


def named_in(text: str) -> Iterator[Named]:
    """Yield the paths, identifiers and values that a text names, repeated ones too."""
    yield from Naming().named_in(text)


def _names(word: str) -> tuple[Named, ...]:
    """Return the names in one word."""
    if len(word) >= _MONSTER or _is_plain(word.strip(_AROUND)):
        return ()
    named: list[Named] = []
    for name in NAME.findall(word):
        match kind_of(name):
            case "path" if "." in name or not _PROSE_SLASH.fullmatch(name):
                named.append(("path", name))
            case "identifier" if len(name) > 3:
                named.append(("identifier", name))
            case "number":
                named.append(("value", name))
            case _:
                pass
    return tuple(named)


def _is_plain(word: str) -> bool:
    """Tell quickly whether a word is made of letters only and no capitals but the first: no name is."""
    return not word or (word.isalpha() and (len(word) == 1 or word[1:].islower()))
