"""The outline of a text by its kind: definitions, errors, files and hunks, keys, headings, the head of a table."""

import re
from collections.abc import Iterator

from msgspec import Struct

from lowwater.compact.digest.content import Content
from lowwater.values.references import error_lines

_MOST = 2_000
_WIDTH = 100

_MODIFIERS = (
    "export|default|async|pub|public|private|protected|internal|static|abstract|override|final|declare|unsafe"
)
_DEFINES = (
    "def|class|fn|fun|function|interface|struct|enum|trait|type|module|namespace|mod|impl|object|record"
)
_DEFINITION = re.compile(
    rf"""
    ^(?P<indent>[ \t]*+)(?:
      (?:(?:{_MODIFIERS})[ ]+)*+(?:
          (?:{_DEFINES})\*?[ ]+(?P<name>[A-Za-z_$][\w$]*)
        | func[ ]+(?:\([^)\n]{{0,80}}\)[ ]*)?(?P<go>\w+)
        | (?:const|let|var)[ ]+(?P<arrow>[A-Za-z_$][\w$]*)[^=\n]{{0,80}}=[ ]*(?:async[ ]*)?(?:function\b|\(|\w+[ ]*=>)
        )
      | (?:(?:public|private|protected|internal)[ ]+)(?:[\w<>\[\],?.]{{1,60}}[ ]+){{0,4}}(?P<method>\w+)\(
      | (?i:create[ ]+(?:table|view|index|function))[ ]+(?:(?i:if[ ]+not[ ]+exists)[ ]+)?(?P<sql>[\w."]{{1,80}})
      )
    """,
    re.MULTILINE | re.VERBOSE,
)
_DEFINITION_OR_BLOCK = re.compile(_DEFINITION.pattern + r"| (?<=\n\n)(?=[^\n])", re.MULTILINE | re.VERBOSE)
_NUMBERED_PART = 1_500_000
"""Beyond it the text has a gap, and lines cannot be counted on."""

BLOCK = 1000
"""The level of a paragraph of code: named only where there is room left."""

_PLAINLY = re.compile(r"(?:[Ee]rror(?:\[\w+\])?|Exception|panic|fatal):|FAIL|Traceback ")
_HUNK = re.compile(
    r"^(?:\+\+\+ (?:[ab]/)?(?P<file>\S+)|@@ -\S+ \+(?P<line>\d+)\S* @@(?P<within>.*))$", re.MULTILINE
)
_KEY = re.compile(r"\"([A-Za-z_][\w.-]{0,40})\"\s*:")
_HEADING = re.compile(r"^(#{1,6}) +\S.*$|^\*\*[^*\n]{3,60}\*\*:?$", re.MULTILINE)


class Mark(Struct, frozen=True, kw_only=True):
    """A place in the text worth naming; the lower the level, the more so."""

    at: int
    label: str
    level: int = 0


def outline_of(content: Content) -> list[Mark]:
    """Return the marks of a text in order, at most some thousands."""
    match content.kind:
        case "code":
            marks = _definitions(content)
        case "diff":
            marks = _hunks(content.text)
        case "json":
            marks = _keys(content.text)
        case "log":
            marks = _errors(content.text)
        case "prose":
            marks = _headings(content.text)
        case "search":
            marks = iter(())
        case "table":
            marks = _rows(content.text)
    return [mark for mark, _ in zip(marks, range(_MOST), strict=False)]


def _definitions(content: Content) -> Iterator[Mark]:
    """Yield the definitions; where lines are numbered, with their line, and the paragraphs between them too."""
    pattern = _DEFINITION_OR_BLOCK if content.first_line else _DEFINITION
    line, counted = content.first_line, 0
    for match in pattern.finditer(content.text, 0, _NUMBERED_PART):
        label = match[match.lastgroup] if match.lastgroup else ""
        level = len(match["indent"].expandtabs(4)) if label else BLOCK
        if content.first_line:
            line += content.text.count("\n", counted, match.start())
            counted = match.start()
            label = f"{line} {label}".rstrip()
        yield Mark(at=match.start(), label=label, level=level)


def _errors(text: str) -> Iterator[Mark]:
    seen: set[str] = set()
    for line in error_lines(text):
        label = _short(line.text)
        if label not in seen:
            seen.add(label)
            yield Mark(at=line.at, label=label, level=0 if _PLAINLY.search(label) else 2)
    end = text.rstrip()
    start = end.rfind("\n") + 1
    if end and _short(end[start:]) not in seen:
        yield Mark(at=start, label=_short(end[start:]), level=1)


def _hunks(text: str) -> Iterator[Mark]:
    for match in _HUNK.finditer(text):
        if match["file"]:
            yield Mark(at=match.start(), label=match["file"])
        else:
            yield Mark(at=match.start(), label=f"@{match['line']} {_short(match['within'])}".strip(), level=1)


def _keys(text: str) -> Iterator[Mark]:
    seen = dict.fromkeys(_KEY.findall(text[: 1 << 18]))
    if seen:
        yield Mark(at=0, label="keys " + " ".join(list(seen)[:40]))


def _headings(text: str) -> Iterator[Mark]:
    for match in _HEADING.finditer(text):
        level = len(match[1]) if match[1] else 6
        yield Mark(at=match.start(), label=_short(match[0]), level=level)


def _rows(text: str) -> Iterator[Mark]:
    start = 0
    for _ in range(2):
        end = text.find("\n", start)
        row = text[start : end if end >= 0 else len(text)]
        if row.strip():
            yield Mark(at=start, label=_short(row, 200))
        if end < 0:
            return
        start = end + 1


def _short(line: str, width: int = _WIDTH) -> str:
    flat = " ".join(line.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
