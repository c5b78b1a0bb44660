"""Lines that tell of an error: what they look like, and finding them fast."""

import re
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace

from msgspec import Struct

_ERROR = r"""
      [A-Za-z]\w{0,60}?(?:Error|Exception)(?:\b(?=[:(\s])|$)
    | FAIL(?:ED|URE)?\b | panic: | fatal: | [Ee]rror(?:\[\w+\]|\ [A-Z]{1,5}\d+)?: | ERROR\b | ERR!
    | command\ not\ found | No\ such\ file\ or\ directory | Permission\ denied | undefined: | cannot\ find
    | does\ not\ exist | not\ found\ in\ file | CONFLICT\b | rejected\b"""
_SAID = (
    *("rror", "xception", "FAIL", "panic:", "fatal:", "ERR", "not found", "No such file"),
    *("Permission denied", "undefined:", "cannot find", "does not exist", "CONFLICT", "rejected"),
)
_MARKS = tuple("✗✕✖❌")


class Signs(Struct, frozen=True, kw_only=True):
    """How to tell a line by what is in it."""

    pattern: re.Pattern[str]
    words: tuple[str, ...]
    """Every sign has one of these in it, or one of the marks: looking for them is much faster than for signs."""

    def words_for(self, text: str) -> tuple[str, ...]:
        """Return what to look for in a text."""
        return self.words if text.isascii() else (*self.words, *_MARKS)


def _signs(more: str, word: str) -> Signs:
    pattern = re.compile(rf"\b(?:{_ERROR} | {more}) | [✗✕✖❌]", re.VERBOSE | re.MULTILINE)
    return Signs(pattern=pattern, words=(*_SAID, word))


ERRORS = _signs(r"Traceback\ \(most", "Traceback (most")
"""Exceptions, what test runners, compilers and shells say, the level of a logger; and that a traceback follows."""
ERRORS_AND_FRAMES = _signs(r'File\ "[^"\n]+",\ line\ \d+', 'File "')
"""The same errors, and the frames of a traceback rather than its first line."""


class Signed(Struct, frozen=True, kw_only=True, gc=False):
    """Where a line with a sign starts and ends in its text."""

    start: int
    end: int


def signed_lines(text: str, signs: Signs = ERRORS) -> Iterator[Signed]:
    """Yield the lines of `text` with one of these signs, in order."""
    search = signs.pattern.search
    waiting = [(at, word) for word in signs.words_for(text) if (at := text.find(word)) >= 0]
    heapify(waiting)
    end = -1
    while waiting:
        at, word = waiting[0]
        if at > end:
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            if search(text, start, end):
                yield Signed(start=start, end=end)
        later = text.find(word, end)
        if later < 0:
            heappop(waiting)
        else:
            heapreplace(waiting, (later, word))
