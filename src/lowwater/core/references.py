"""Finding references in text: the paths, identifiers, numbers, quotes and errors that a later turn may name exactly."""

import re
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from typing import Literal

from msgspec import Struct

ReferenceKind = Literal["path", "identifier", "error", "number", "quote"]
ContentKind = Literal["code", "diff", "json", "log", "prose", "search", "table"]
"""The kinds of texts that digests tell apart."""

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


# How likely a name is to be used again


_HEX = re.compile(r"[0-9a-f]{7,64}")
_ID = re.compile(r"[A-Za-z]\w*[_-]\w*\d{3,}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
WORTH = {
    "absolute": 9.2,
    "camel": 8.0,
    "date": 13.5,
    "decimal": 7.3,
    "dotted": 9.0,
    "file": 5.3,
    "hex": 3.2,
    "id": 20.3,
    "integer": 3.3,
    "kebab": 8.7,
    "pascal": 5.8,
    "path": 5.4,
    "snake": 5.1,
    "time": 3.3,
    "upper": 10.1,
    "url": 2.2,
    "uuid": 2.8,
    "version": 2.3,
}
"""How many of a hundred new names of a shape are used more than five calls later (`python -m bench.recall --fit`)."""
WORTH_IN: dict[tuple[ContentKind, str], float] = {
    ("code", "decimal"): 12.1,
    ("code", "hex"): 4.3,
    ("code", "path"): 7.4,
    ("code", "uuid"): 4.2,
    ("diff", "camel"): 4.8,
    ("diff", "decimal"): 1.2,
    ("diff", "dotted"): 6.4,
    ("diff", "hex"): 5.1,
    ("diff", "pascal"): 4.4,
    ("diff", "path"): 2.4,
    ("diff", "upper"): 6.9,
    ("diff", "version"): 3.7,
    ("json", "date"): 20.6,
    ("json", "integer"): 17.4,
    ("json", "snake"): 1.4,
    ("json", "upper"): 15.1,
    ("json", "url"): 1.0,
    ("json", "version"): 4.1,
    ("log", "absolute"): 6.6,
    ("log", "camel"): 5.8,
    ("log", "decimal"): 4.3,
    ("log", "hex"): 1.7,
    ("log", "upper"): 5.5,
    ("log", "url"): 1.5,
    ("log", "uuid"): 2.1,
    ("log", "version"): 0.9,
    ("prose", "absolute"): 12.6,
    ("prose", "decimal"): 20.4,
    ("prose", "snake"): 7.1,
    ("prose", "time"): 4.8,
    ("prose", "url"): 4.2,
    ("search", "camel"): 2.9,
    ("search", "decimal"): 3.4,
    ("search", "dotted"): 4.6,
    ("search", "hex"): 4.6,
    ("search", "integer"): 0.3,
    ("search", "kebab"): 4.6,
    ("search", "path"): 3.3,
    ("search", "snake"): 2.4,
    ("search", "time"): 1.9,
    ("search", "upper"): 5.9,
    ("search", "uuid"): 1.4,
    ("search", "version"): 1.3,
    ("table", "decimal"): 5.1,
    ("table", "path"): 3.6,
    ("table", "url"): 1.6,
}
"""The same in one kind of text, where it is much more or much less."""


def worth_of(name: str, *, kind: ContentKind, count: int = 1, position: float = 0.5) -> float:
    """Return about how many of a hundred such names are used more than five calls later.

    `kind` is that of the text it stands in, `count` how often it stands there, and `position` where it comes first, from 0 to 1.
    """
    shape = shape_of(name)
    worth = WORTH_IN.get((kind, shape)) or WORTH[shape]
    often: float = min(count, 12) ** 0.35
    return worth * often * (1.2 - 0.4 * position)


def shape_of(name: str) -> str:
    """Return what a name looks like: `camel`, `snake`, `absolute` for a path from the root, `uuid` and so on."""
    match reference_kind(name):
        case "path":
            return _path_shape(name)
        case "number":
            return _number_shape(name)
        case _:
            return _identifier_shape(name)


def _path_shape(name: str) -> str:
    if "/" not in name:
        return "file"
    if "://" in name:
        return "url"
    return "absolute" if name[0] in "/~" else "path"


def _number_shape(name: str) -> str:
    if name.isdigit():
        return "integer"
    if ":" in name:
        return "time"
    if "-" in name:
        return "date"
    return "version" if name[0] == "v" or name.count(".") > 1 else "decimal"


def _identifier_shape(name: str) -> str:
    if "." in name:
        return "dotted"
    if _ID.fullmatch(name):
        return "id"
    if _HEX.fullmatch(name):
        return "hex"
    if "-" in name:
        return "uuid" if _UUID.fullmatch(name) else "kebab"
    if name.isupper():
        return "upper"
    if "_" in name:
        return "snake"
    return "pascal" if name[0].isupper() else "camel"
