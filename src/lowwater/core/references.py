"""Finding references in text: the paths, identifiers, numbers, quotes and errors that a later turn may name exactly."""

import re
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from typing import Literal

from msgspec import Struct

ReferenceKind = Literal["path", "identifier", "error", "number", "quote"]

_ERROR = r"""
      [A-Za-z]\w{0,60}?(?:Error|Exception)(?:\b(?=[:(\s])|$)
    | FAIL(?:ED|URE)?\b | panic: | fatal: | [Ee]rror(?:\[\w+\]|\ [A-Z]{1,5}\d+)?: | ERROR\b | ERR!
    | command\ not\ found | No\ such\ file\ or\ directory | Permission\ denied | undefined: | cannot\ find
    | does\ not\ exist | not\ found\ in\ file | CONFLICT\b | rejected\b"""
_ERROR_WORDS = (
    *("rror", "xception", "FAIL", "panic:", "fatal:", "ERR", "not found", "No such file"),
    *("Permission denied", "undefined:", "cannot find", "does not exist", "CONFLICT", "rejected"),
)
_CROSSES = tuple("✗✕✖❌")
_SUFFIXES = frozenset(
    "py pyi ipynb ts tsx js jsx mjs cjs go rs java kt c cs h hpp cpp cc rb php swift md mdx rst json jsonl yaml yml toml "
    "txt sh sql html htm css scss lock cfg ini env log csv tsv xml proto tf mod sum gz zip pdf png jpg svg".split()
)

# Every repetition is bounded, or starts only where a run of its characters starts, so that no text takes quadratic time.
NAME = re.compile(
    r"""
      (?<![\w@.+~/-])(?!(?<=<)/)(?:https?://)?(?:[\w@.+~-]{0,100}/){1,40}[\w@.+~-]{0,100}\w   # a/b, /a/b, ./a, ~/a, @a/b
    | (?<![\w@.+~-])[\w@+-]{1,80}(?:\.[\w+-]{1,40}){0,4}\.(?:"""
    + "|".join(sorted(_SUFFIXES, reverse=True))
    + r""")\b
    | \b(?:
        [0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}
      | (?=[0-9a-f]{0,63}\d)(?=\d{0,63}[a-f])[0-9a-f]{7,64}
      | [A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+                                     # a.b
      | [A-Za-z]\w*_\w+ | _\w{3,}                                           # a_b, _abc
      | [a-z]+[A-Z]\w* | (?:[A-Z][a-z0-9]+){2,}\w* | [A-Z]{2,}[a-z]\w*      # aB, AaBb, ABc
      | [A-Z][A-Z0-9]+-\d+ | (?<!\.)(?=[A-Z]{0,32}\d)(?=\d{0,32}[A-Z])[A-Z0-9]{5,32}(?!\.\d)    # ABC-12, HAT045
      | [A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+){2,}                           # a-b-c
      )\b
    | (?<![\w.])(?:\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)? | v?\d+(?:[.,:]\d+)+ | \d{3,})(?!\w)   # dates, versions, times, numbers
    """,
    re.VERBOSE,
)
"""Matches paths, identifiers and numbers. It has no groups, so that `findall` returns the strings."""

_NUMBER = re.compile(r"v?\d[\d.,:-]*(?:T[\d:]+Z?)?")
# Each alternative begins with a literal character, which lets the search skip quickly over all others.
_QUOTE = re.compile(
    r"""(?:"(?<!\w")(\S[^"\n]{2,78}\S)"|`(?<!\w`)(\S[^`\n]{2,78}\S)`|'(?<!\w')(\S[^'\n]{2,78}\S)')(?!\w)"""
)


class Reference(Struct, frozen=True, kw_only=True):
    """A string that may be named again exactly, and its kind."""

    kind: ReferenceKind
    text: str


class TextLine(Struct, frozen=True, kw_only=True):
    """A line of a text, stripped, and where it starts."""

    at: int
    text: str


def references(text: str) -> Iterator[Reference]:
    """Yield every reference in `text`, with repetitions: names in order, then quotes, then error lines.

    A quote that consists of a name is yielded as the name only; an error line is cut at 100 characters.
    """
    yield from names(text)
    yield from (Reference(kind="quote", text=quote) for quote in quotes(text))
    for line in lines_with_errors(text):
        yield Reference(kind="error", text=line.text[:100])


def names(text: str) -> Iterator[Reference]:
    """Yield the paths, identifiers and numbers in `text`, in order, with repetitions."""
    for name in NAME.findall(text):
        yield Reference(kind=reference_kind(name), text=name)


def quotes(text: str) -> Iterator[str]:
    """Yield what is in quotation marks or backticks in `text`, in order, except for single names."""
    for match in _QUOTE.finditer(text):
        quoted = match[match.lastindex or 0]
        if " " in quoted or not NAME.search(quoted):
            yield quoted


def reference_kind(name: str) -> ReferenceKind:
    """Return the kind of a string that `NAME` matched."""
    if "/" in name or ("." in name and name.rsplit(".", 1)[1] in _SUFFIXES):
        return "path"
    return "number" if _NUMBER.fullmatch(name) else "identifier"


def lines_with_errors(text: str) -> Iterator[TextLine]:
    """Yield the lines that report an error, in order."""
    for line in signed_lines(text):
        yield TextLine(at=line.start, text=text[line.start : line.end].strip())


class LinePattern(Struct, frozen=True, kw_only=True):
    """A pattern by which lines are found, and words by which they are found faster."""

    pattern: re.Pattern[str]
    words: tuple[str, ...]
    """Every match contains one of these words or a cross (✗): searching for them first is much faster than for the pattern."""

    def words_for(self, text: str) -> tuple[str, ...]:
        """Return the words to search for in a text."""
        return self.words if text.isascii() else (*self.words, *_CROSSES)


def _line_pattern(more: str, word: str) -> LinePattern:
    pattern = re.compile(rf"\b(?:{_ERROR} | {more}) | [✗✕✖❌]", re.VERBOSE | re.MULTILINE)
    return LinePattern(pattern=pattern, words=(*_ERROR_WORDS, word))


ERRORS = _line_pattern(r"Traceback\ \(most", "Traceback (most")
"""Exceptions, errors as test runners, compilers, shells and loggers write them, and the first line of a traceback."""
ERRORS_AND_FRAMES = _line_pattern(r'File\ "[^"\n]+",\ line\ \d+', 'File "')
"""The same errors, and the frames of a traceback rather than its first line."""


class LineSpan(Struct, frozen=True, kw_only=True, gc=False):
    """Where a matching line starts and ends in its text."""

    start: int
    end: int


def signed_lines(text: str, signs: LinePattern = ERRORS) -> Iterator[LineSpan]:
    """Yield the lines of `text` that match the pattern, in order."""
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
                yield LineSpan(start=start, end=end)
        later = text.find(word, end)
        if later < 0:
            heappop(waiting)
        else:
            heapreplace(waiting, (later, word))
