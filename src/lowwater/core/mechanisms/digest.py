"""Digests: the outline and the most useful names of a text, in a few tokens.

A digest is what stays in the view of a tool result that was elided or cut. The steps are: tell what kind of content it is,
find its outline and its names, and choose what is worth most for its tokens.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, pairwise

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.references import NAME, ContentKind, lines_with_errors, reference_kind, worth_of
from lowwater.core.tools import ToolClass
from lowwater.protocols import Tokenizer

_HEAD = 1_500_000
_TAIL = 500_000
"""How many characters of the start and the end of a longer text are read."""
_OUTLINE_SHARE: dict[ContentKind, float] = {
    "code": 0.0,
    "diff": 0.3,
    "json": 0.15,
    "log": 0.25,
    "prose": 0.1,
    "search": 0.0,
    "table": 0.3,
}


class UnnumberedText(Struct, frozen=True, kw_only=True):
    """A text without the line numbers that a tool put before its lines; `first_line` is the first number, 0 if there were none."""

    kind: ContentKind
    text: str
    first_line: int = 0


class Name(Struct, frozen=True, kw_only=True):
    """One distinct name, how it is written in a digest, and the chance that it is needed again, in per cent."""

    text: str
    shown: str
    worth: float


class OutlineEntry(Struct, frozen=True, kw_only=True):
    """An entry of an outline; the lower its level, the more it is worth listing."""

    at: int
    label: str
    level: int = 0


class Priced(Struct, frozen=True, kw_only=True):
    """A name with its position in the text, its tokens, and its worth per token."""

    name: Name
    order: int
    tokens: int
    value: float


def digest(
    text: str,
    *,
    tool: ToolClass,
    subject: str,
    tokens: int,
    tokenizer: Tokenizer,
    said: Iterable[str] = (),
    known: Container[str] = frozenset(),
    repeated: Container[str] = frozenset(),
) -> str:
    """Return the outline and the most useful names of `text` in at most `tokens`; empty if nothing fits.

    Names in the call's `subject`, those `said` around the digest, and `known` ones, which are shown elsewhere in the view, are
    left out. Names that were `repeated`, because an older text has them too, come behind those that only this one has.
    """
    content = read_content(_bounded(text), tool=tool, subject=subject)
    outline = outline_of(content)
    share = int(tokens * _OUTLINE_SHARE[content.kind])
    marks = choose_marks([mark for mark in outline if mark.level < BLOCK], share, tokenizer)
    said = frozenset(said).union(NAME.findall(subject), *(NAME.findall(mark.label) for mark in marks))
    left = tokens - sum(price(mark, tokenizer) for mark in marks)
    found = [name for name in distinct_names(content, said, repeated) if name.text not in known]
    names = choose_names(found, left, tokenizer)
    left -= sum(offer.tokens for offer in names)
    if left > 0 and len(marks) < len(outline):
        marks = choose_marks(outline, share + left * 9 // 10, tokenizer)
        labelled = {name for mark in marks for name in NAME.findall(mark.label)}
        names = [offer for offer in names if offer.name.text not in labelled]
    return _fitted(content, marks, names, tokens, tokenizer)


def _bounded(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else text[:_HEAD] + "\n" + text[-_TAIL:]


def _fitted(
    content: UnnumberedText, marks: list[OutlineEntry], names: list[Priced], tokens: int, tokenizer: Tokenizer
) -> str:
    """Return the digest as text; while it is too long, drop the last paragraphs, then the least useful names, then the last marks."""
    while marks or names:
        written = _written(content, marks, names)
        over = tokenizer.count(written) - tokens
        if over <= 0:
            return written
        if any(mark.level == BLOCK for mark in marks):
            blocks = [mark.at for mark in marks if mark.level == BLOCK]
            gone = frozenset(blocks[-1 - over // 2 :])
            marks = [mark for mark in marks if mark.at not in gone]
        elif names:
            names = _without_least(names, over)
        else:
            marks = marks[:-1]
    return ""


def _without_least(names: list[Priced], tokens: int) -> list[Priced]:
    """Return the names without those worth least, which have at least `tokens` together."""
    dropped: set[int] = set()
    for offer in sorted(names, key=lambda offer: (offer.value, -offer.order)):
        if tokens <= 0:
            break
        dropped.add(offer.order)
        tokens -= offer.tokens
    return [offer for offer in names if offer.order not in dropped]


def _written(content: UnnumberedText, marks: Sequence[OutlineEntry], names: Sequence[Priced]) -> str:
    """Return one line for each mark, with the names that follow it in the text; paragraphs without names get none."""
    lines: list[list[str]] = [[]]
    waiting = list(reversed(marks))
    at, paragraph = 0, False
    for offer in names:
        at = max(at, content.text.find(offer.name.text, at))
        while waiting and waiting[-1].at <= at:
            mark = waiting.pop()
            if paragraph and len(lines[-1]) == 1:
                lines.pop()
            paragraph = mark.level == BLOCK
            lines += [[mark.label]] if content.kind == "code" else [[mark.label], []]
        lines[-1].append(offer.name.shown)
    lines += [[mark.label] for mark in reversed(waiting) if mark.level != BLOCK]
    return "\n".join(" ".join(line) for line in lines if line)


# What kind of content it is


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


def read_content(text: str, *, tool: ToolClass, subject: str) -> UnnumberedText:
    """Return the kind of `text` and its bare content; if the kind cannot be told, a shell's output is a log and anything else prose."""
    first = _first_line(text[:_BEGINNING])
    bare = _NUMBERED.sub("", text) if first else text
    kind = _kind(bare[:_BEGINNING].strip(), tool, subject)
    if kind == "search":
        bare = _FILE_AND_LINE.sub(r"\1\3:\2\4 ", bare)
    elif kind == "diff":
        bare = _DIFF_HEAD.sub("", bare)
    return UnnumberedText(kind=kind, text=_unescaped(bare), first_line=first)


def _unescaped(text: str) -> str:
    """Return `text` without escaped white space and closing tags, which would be read as parts of names."""
    return _ESCAPED.sub("  ", text).replace("</", "< ") if "\\" in text else text.replace("</", "< ")


def _first_line(start: str) -> int:
    """Return the number before the first line if the lines are numbered one by one, otherwise 0."""
    lines = [line for line in start.split("\n")[:40] if line.strip()]
    numbers = [int(match[1]) for match in map(_NUMBERED.match, lines) if match]
    steps = sum(after == before + 1 for before, after in pairwise(numbers))
    return numbers[0] if numbers and steps >= max(1, 0.7 * (len(lines) - 1)) else 0


def _kind(start: str, tool: ToolClass, subject: str) -> ContentKind:
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


# The outline


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
"""Characters before the gap in a text that was bounded: behind it, line numbers would be wrong."""
BLOCK = 1000
"""The level of a paragraph of code, which is listed only if there is room left."""
_PLAINLY = re.compile(r"(?:[Ee]rror(?:\[\w+\])?|Exception|panic|fatal):|FAIL|Traceback ")
_HUNK = re.compile(
    r"^(?:\+\+\+ (?:[ab]/)?(?P<file>\S+)|@@ -\S+ \+(?P<line>\d+)\S* @@(?P<within>.*))$", re.MULTILINE
)
_KEY = re.compile(r"\"([A-Za-z_][\w.-]{0,40})\"\s*:")
_HEADING = re.compile(r"^(#{1,6}) +\S.*$|^\*\*[^*\n]{3,60}\*\*:?$", re.MULTILINE)


def outline_of(content: UnnumberedText) -> list[OutlineEntry]:
    """Return the outline of a text in order, at most some thousands of marks."""
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


def _definitions(content: UnnumberedText) -> Iterator[OutlineEntry]:
    """Yield the definitions; if lines are numbered, with their line number, and with the paragraphs between them."""
    pattern = _DEFINITION_OR_BLOCK if content.first_line else _DEFINITION
    line, counted = content.first_line, 0
    for match in pattern.finditer(content.text, 0, _NUMBERED_PART):
        label = match[match.lastgroup] if match.lastgroup else ""
        level = len(match["indent"].expandtabs(4)) if label else BLOCK
        if content.first_line:
            line += content.text.count("\n", counted, match.start())
            counted = match.start()
            label = f"{line} {label}".rstrip()
        yield OutlineEntry(at=match.start(), label=label, level=level)


def _errors(text: str) -> Iterator[OutlineEntry]:
    seen: set[str] = set()
    for line in lines_with_errors(text):
        label = _short(line.text)
        if label not in seen:
            seen.add(label)
            yield OutlineEntry(at=line.at, label=label, level=0 if _PLAINLY.search(label) else 2)
    end = text.rstrip()
    start = end.rfind("\n") + 1
    if end and _short(end[start:]) not in seen:
        yield OutlineEntry(at=start, label=_short(end[start:]), level=1)


def _hunks(text: str) -> Iterator[OutlineEntry]:
    for match in _HUNK.finditer(text):
        if match["file"]:
            yield OutlineEntry(at=match.start(), label=match["file"])
        else:
            yield OutlineEntry(
                at=match.start(), label=f"@{match['line']} {_short(match['within'])}".strip(), level=1
            )


def _keys(text: str) -> Iterator[OutlineEntry]:
    seen = dict.fromkeys(_KEY.findall(text[: 1 << 18]))
    if seen:
        yield OutlineEntry(at=0, label="keys " + " ".join(list(seen)[:40]))


def _headings(text: str) -> Iterator[OutlineEntry]:
    for match in _HEADING.finditer(text):
        level = len(match[1]) if match[1] else 6
        yield OutlineEntry(at=match.start(), label=_short(match[0]), level=level)


def _rows(text: str) -> Iterator[OutlineEntry]:
    start = 0
    for _ in range(2):
        end = text.find("\n", start)
        row = text[start : end if end >= 0 else len(text)]
        if row.strip():
            yield OutlineEntry(at=start, label=_short(row, 200))
        if end < 0:
            return
        start = end + 1


def _short(line: str, width: int = _WIDTH) -> str:
    flat = " ".join(line.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


# The names


_RUN = re.compile(r"[\w@.+~/:,-]{3,}")
"""A run of characters that names are made of: no name extends beyond one."""
_LINE = re.compile(r":\d{1,7}(?!\w)")
_LONGEST = 200
_STAMPS = 10
"""If a text has more distinct times than this, they are time stamps of its lines, and nobody will name them again."""
_REPEATED = 0.2
"""A name that an older text has too is worth so much of one that only this text has: it had its chance there."""
_NO_NAMES = frozenset({"e.g", "i.e", "N/A", "n/a", "and/or"})


def names_in(text: str) -> frozenset[str]:
    """Return the names in a text that is shown whole."""
    return frozenset(chain.from_iterable(names for _, names, _ in _runs(_bounded(text))))


def _runs(text: str) -> Iterator[tuple[str, list[str], int]]:
    """Yield every distinct run that may have names, the names in it, and how often it occurs."""
    for run, count in Counter(_RUN.findall(text)).items():
        if _may_be_names(run):
            yield run, NAME.findall(run), count


def distinct_names(
    content: UnnumberedText, known: Container[str], repeated: Container[str] = frozenset()
) -> list[Name]:
    """Return the distinct names in the order of their first appearance, without those in `known`.

    Those that were `repeated`, because an older text has them too, are worth less.
    """
    counts: dict[str, int] = {}
    located: dict[str, str] = {}
    for run, names, count in _runs(content.text):
        if content.kind in {"search", "log"} and (place := _place(run, names)):
            located.setdefault(names[0], place)
        for name in names:
            counts[name] = counts.get(name, 0) + count
    stamped = sum(_is_time(name) for name in counts) > _STAMPS
    found = [
        (name, count)
        for name, count in counts.items()
        if _is_wanted(name, known) and not (stamped and _is_time(name))
    ]
    numbers = sum(reference_kind(name) == "number" for name, _ in found)
    few_of_many = min(1.0, _NUMBERS / max(1, numbers))
    return [
        Name(
            text=name,
            shown=located.get(name, name),
            worth=worth_of(name, kind=content.kind, count=count, position=position / len(found))
            * (_REPEATED if name in repeated else 1.0)
            * (few_of_many if reference_kind(name) == "number" else 1.0),
        )
        for position, (name, count) in enumerate(found)
    ]


_NUMBERS = 16
"""Where a text has more numbers than this, each is worth less: few of a drawing's coordinates or a table's cells are named again."""


def _is_time(name: str) -> bool:
    return name[0].isdigit() and ":" in name


def _place(run: str, names: list[str]) -> str:
    """Return a path with the line number that follows it, if that is what the run begins with."""
    if names and run.startswith(names[0]) and reference_kind(names[0]) == "path":
        line = _LINE.match(run, len(names[0]))
        return run[: line.end()] if line else ""
    return ""


def _is_wanted(name: str, known: Container[str]) -> bool:
    return len(name) <= _LONGEST and name not in known and name not in _NO_NAMES


def _may_be_names(run: str) -> bool:
    """Return False for plain words and small numbers, which most runs are."""
    word = run.rstrip(".,:-")
    return not (word.isalpha() and (word.islower() or word.istitle())) and not (
        word.isdigit() and len(word) < 3
    )


# Choosing what is worth most for its tokens


_TOKEN_POWER = 0.9
"""How strongly a name's tokens count against its worth."""
_PATH_POWER = 0.5
"""The same for paths, which have the names of directories and of a file in them."""
_SHORTEST = 10
"""Tokens below which a cut mark says nothing."""
_WORD = re.compile(r"\w+")


def choose_marks(marks: Sequence[OutlineEntry], tokens: int, tokenizer: Tokenizer) -> list[OutlineEntry]:
    """Return the marks of the lowest levels that fit into `tokens`, in order; the last one may be cut."""
    chosen: dict[int, OutlineEntry] = {}
    for index in sorted(range(len(marks)), key=lambda index: marks[index].level):
        mark = marks[index]
        cost = price(mark, tokenizer)
        if cost > tokens:
            if tokens >= _SHORTEST:
                kept = mark.label[: len(mark.label) * (tokens - 2) // cost].rsplit(" ", 1)[0]
                chosen[index] = replace(mark, label=f"{kept} …")
            break
        chosen[index] = mark
        tokens -= cost
    return [chosen[index] for index in sorted(chosen)]


def price(mark: OutlineEntry, tokenizer: Tokenizer) -> int:
    """Return the tokens of a mark on a line of its own."""
    return 1 + tokenizer.count(mark.label)


def choose_names(names: Sequence[Name], tokens: int, tokenizer: Tokenizer) -> list[Priced]:
    """Return the names with the greatest worth per token that fit into `tokens`, in order.

    A name that is part of another chosen name is not written twice.
    """
    chosen: list[Priced] = []
    said: set[str] = set()
    offers = _priced(names, tokens, tokenizer)
    for _ in range(2):
        new = []
        for offer in offers:
            if offer.tokens <= tokens and offer.name.text not in said:
                new.append(offer)
                said.add(offer.name.text)
                tokens -= offer.tokens
        within = {part for offer in new for part in _inside(offer.name.shown) if part != offer.name.text}
        chosen += new
        tokens += sum(offer.tokens for offer in chosen if offer.name.text in within)
        chosen = [offer for offer in chosen if offer.name.text not in within]
        said |= within
    return sorted(chosen, key=lambda offer: offer.order)


def _priced(names: Sequence[Name], tokens: int, tokenizer: Tokenizer) -> list[Priced]:
    """Return the names, those worth most per token first; of very many, only those that look good by their length."""
    order = list(range(len(names)))
    most = 2 * max(tokens, 0) + 50
    if len(order) > most:
        order.sort(key=lambda index: -names[index].worth / len(names[index].shown) ** _TOKEN_POWER)
        order = order[:most]
    offers: list[Priced] = []
    for index in order:
        name = names[index]
        cost = max(1, tokenizer.count(" " + name.shown))
        power = _PATH_POWER if "/" in name.text else _TOKEN_POWER
        offers.append(Priced(name=name, order=index, tokens=cost, value=name.worth / cost**power))
    return sorted(offers, key=lambda offer: (-offer.value, offer.order))


def _inside(name: str) -> Iterator[str]:
    """Yield the words of a name, its beginnings and its ends: of `a.b.c`, `a`, `b`, `c`, `a.b` and `b.c`."""
    words = [] if name.isidentifier() else [*_WORD.finditer(name)]
    if len(words) > 1:
        for word in words:
            yield word[0]
            yield name[word.start() :]
            yield name[: word.end()]
