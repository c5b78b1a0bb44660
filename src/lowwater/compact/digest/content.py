"""What kind of content a tool result is, told from the text itself, the tool's class and what the call was about."""

import re
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from lowwater.values.tools import ToolClass

Kind = Literal["code", "diff", "json", "log", "prose", "search", "table"]

_BEGINNING = 10_000
_NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?:→|\t|[ ]?\||[.:] )", re.MULTILINE)
_JSON = re.compile(r"[\[{]\s*(?:[\"{\[\]}]|-?\d|true\b|false\b|null\b)")
_DIFF = re.compile(r"^(?:diff --git |@@ -\d+|\+\+\+ [ab]/|Index: )", re.MULTILINE)
_HIT = re.compile(r"(?:\S{1,300}?[:-])?\d{1,7}[:-]")
_FILE_AND_LINE = re.compile(
    r"^(?:([^\s:]{1,300}?):(\d{1,7}):|([^\s:]{1,300}?\.\w{1,8})-(\d{1,7})-)", re.MULTILINE
)
_DIFF_HEAD = re.compile(r"^(?:diff --git |index [0-9a-f]+\.\.|--- [ab]/).*$", re.MULTILINE)
_ESCAPED = re.compile(r"\\[nrt]")
_PATH = re.compile(r"(?:[-dlrwx@.+]{10}.{1,60} )?\s{0,8}(?:\./|/|~/)?[\w@.+-]+(?:/[\w@.+-]+)*/?$")
_ROW = re.compile(r"\s*\|.*\|\s*$|[^\t\s][^\t]*\t[^\t]+(?:\t|$)|[^,;{(]{0,60}(?:,[^,;{(]{0,60}){3,}$")
_CODE = re.compile(
    r"\s*(?:(?:export|async|pub|public|private|protected|static|default|final) )*"
    r"(?:def|class|func|fn|function|interface|type|struct|enum|trait|impl|const|let|var|import|from|package|return|if|for)\b"
    r"|\s*(?:[}\])]+[;,]?|//.*|#include .*|\w[\w.]*\(.*\)|[\w.*, ]{1,60} :?= \S.*|.*[;{(\[])\s*$"
)
_PROSE_FILE = re.compile(r"\.(?:md|mdx|rst|txt|adoc)$", re.IGNORECASE)


class Content(Struct, frozen=True, kw_only=True):
    """A text without the line numbers a tool put before its lines; `first_line` is the first of them, 0 if none."""

    kind: Kind
    text: str
    first_line: int = 0


def read_content(text: str, *, tool: ToolClass, subject: str) -> Content:
    """Return what `text` is; what cannot be told is a log if a shell wrote it, otherwise prose."""
    first = _first_line(text[:_BEGINNING])
    bare = _NUMBERED.sub("", text) if first else text
    kind = _kind(bare[:_BEGINNING].strip(), tool, subject)
    if kind == "search":
        bare = _FILE_AND_LINE.sub(r"\1\3:\2\4 ", bare)
    elif kind == "diff":
        bare = _DIFF_HEAD.sub("", bare)
    return Content(kind=kind, text=_unescaped(bare), first_line=first)


def _unescaped(text: str) -> str:
    """Return `text` without what clings to names and is none of them: escaped white space, and tags that close."""
    return _ESCAPED.sub("  ", text).replace("</", "< ") if "\\" in text else text.replace("</", "< ")


def _first_line(start: str) -> int:
    """Return the number before the first line if the lines are numbered one by one, otherwise 0."""
    lines = [line for line in start.split("\n")[:40] if line.strip()]
    numbers = [int(match[1]) for match in map(_NUMBERED.match, lines) if match]
    steps = sum(after == before + 1 for before, after in pairwise(numbers))
    return numbers[0] if numbers and steps >= max(1, 0.7 * (len(lines) - 1)) else 0


def _kind(start: str, tool: ToolClass, subject: str) -> Kind:
    lines = [line for line in start.split("\n") if line.strip()][:80]
    if _JSON.match(start):
        return "json"
    if _DIFF.search(start):
        return "diff"
    if tool == "search" or _share(_HIT, lines) > 0.5:
        return "search"
    if tool == "list" or (tool != "read" and _share(_PATH, lines) > 0.5):
        return "search"
    if _share(_ROW, lines) > 0.7:
        return "table"
    code = _share(_CODE, lines)
    if _PROSE_FILE.search(subject) or (tool != "shell" and code < 0.15):
        return "prose"
    if tool == "read" or code > 0.4:
        return "code"
    return "log" if tool == "shell" else "prose"


def _share(pattern: re.Pattern[str], lines: list[str]) -> float:
    return sum(pattern.match(line) is not None for line in lines) / max(1, len(lines))
