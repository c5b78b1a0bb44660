"""The outline of a text by its kind: definitions, errors, files and hunks, keys, headings, the head of a table."""

import re
from collections.abc import Iterator

from msgspec import Struct

from lowwater.compact.digest.content import Content
from lowwater.values.references import error_lines

_MOST = 400
_WIDTH = 100

_DEFINITION = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:export|default|async|pub(?:\(\w+\))?|public|private|protected|static|abstract|final|declare|unsafe)\s+)*"
    r"(?:(?:def|class|fn|function\*?|interface|struct|enum|trait|type|module|namespace|mod|impl(?:<[^>\n]*>)?)\s+(?P<name>[A-Za-z_$][\w$]*)"
    r"|func\s+(?:\([^)\n]*\)\s*)?(?P<go>\w+)"
    r"|(?:const|let|var)\s+(?P<arrow>[A-Za-z_$][\w$]*)\s*(?::[^=\n]{1,80})?=\s*(?:async\s*)?(?:function\b|\([^)\n]*\)\s*(?::[^=\n]{1,60})?=>|\w+\s*=>))",
    re.MULTILINE,
)
_HUNK = re.compile(r"^(?:\+\+\+ (?:[ab]/)?(?P<file>\S+)|@@ -\S+ \+(?P<line>\d+)\S* @@(?P<within>.*))$", re.MULTILINE)
_KEY = re.compile(r"\"([A-Za-z_][\w.-]{0,40})\"\s*:")
_HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*#*$|^(?P<bold>\*\*[^*\n]{3,60}\*\*:?)$", re.MULTILINE)


class Mark(Struct, frozen=True, kw_only=True):
    """A place in the text worth naming; the lower the level, the more so."""

    at: int
    label: str
    level: int = 0


def outline_of(content: Content) -> list[Mark]:
    """Return the marks of a text in order, at most some hundreds."""
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
    line, counted = content.first_line, 0
    for match in _DEFINITION.finditer(content.text):
        name = match["name"] or match["go"] or match["arrow"]
        label = name
        if content.first_line:
            line += content.text.count("\n", counted, match.start())
            counted = match.start()
            label = f"{line} {name}"
        yield Mark(at=match.start(), label=label, level=len(match["indent"].expandtabs(4)))


def _errors(text: str) -> Iterator[Mark]:
    seen: set[str] = set()
    for line in error_lines(text):
        label = _short(line.text)
        if label not in seen:
            seen.add(label)
            yield Mark(at=line.at, label=label)
    end = text.rstrip()
    start = end.rfind("\n") + 1
    if end and _short(end[start:]) not in seen:
        yield Mark(at=start, label=_short(end[start:]), level=1)


def _hunks(text: str) -> Iterator[Mark]:
    for match in _HUNK.finditer(text):
        if match["file"]:
            yield Mark(at=match.start(), label=match["file"])
        else:
            yield Mark(at=match.start(), label=f"@{match['line']}{_short(match['within'])}", level=1)


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
