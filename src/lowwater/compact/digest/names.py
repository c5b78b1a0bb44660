"""The distinct names in a text, and how likely a later turn is to need each: measured on recorded sessions."""

import re
from collections import Counter
from collections.abc import Container

from msgspec import Struct

from lowwater.compact.digest.content import Content, Kind
from lowwater.values.references import NAME, kind_of

_RUN = re.compile(r"[\w@.+~/:,-]{3,}")
"""A run of the characters that names are made of: no name reaches beyond one."""

_LINE = re.compile(r":\d{1,7}(?!\w)")
_HEX = re.compile(r"[0-9a-f]{7,64}")
_ID = re.compile(r"[A-Za-z]\w*[_-]\w*\d{3,}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_LONGEST = 200
_STAMPS = 10
"""More distinct times than this stamp the lines of a text, and are no names that anybody would use again."""
_NO_NAMES = frozenset({"e.g", "i.e", "N/A", "n/a", "and/or"})

# Of a hundred names of a shape, how many were used more than five calls later; rounded, and paths raised where that
# kept more of them (bench/recall.py, on the half of the sessions that is for tuning).
_WORTH = {
    "absolute": 6.0,
    "camel": 4.0,
    "date": 8.0,
    "decimal": 2.0,
    "dotted": 5.0,
    "file": 3.0,
    "hex": 0.8,
    "id": 5.0,
    "integer": 2.0,
    "kebab": 3.5,
    "pascal": 3.0,
    "path": 3.3,
    "snake": 3.5,
    "time": 2.0,
    "upper": 4.0,
    "url": 7.0,
    "uuid": 5.0,
    "version": 0.8,
}
_WORTH_IN: dict[tuple[Kind, str], float] = {
    ("diff", "integer"): 0.6,
    ("json", "date"): 12.0,
    ("json", "id"): 25.0,
    ("json", "integer"): 15.0,
    ("json", "upper"): 10.0,
    ("log", "absolute"): 16.0,
    ("log", "integer"): 4.0,
    ("log", "path"): 10.0,
    ("prose", "absolute"): 20.0,
    ("prose", "integer"): 1.2,
    ("prose", "path"): 8.0,
    ("search", "absolute"): 12.0,
    ("search", "camel"): 1.5,
    ("search", "integer"): 0.6,
    ("search", "path"): 6.0,
}


class Name(Struct, frozen=True, kw_only=True):
    """One distinct name, how it is spelled in a digest, and the chance that it is needed, in per cent."""

    text: str
    shown: str
    worth: float


def names_in(content: Content, known: Container[str]) -> list[Name]:
    """Return the distinct names in order of their first appearance, without those in `known`."""
    counts: dict[str, int] = {}
    located: dict[str, str] = {}
    for run, count in Counter(_RUN.findall(content.text)).items():
        if _may_be_names(run):
            names = NAME.findall(run)
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
    return [
        Name(
            text=name,
            shown=located.get(name, name),
            worth=_worth(name, count, position / len(found), content.kind),
        )
        for position, (name, count) in enumerate(found)
    ]


def _is_time(name: str) -> bool:
    return name[0].isdigit() and ":" in name


def _place(run: str, names: list[str]) -> str:
    """Return a path with the line number that follows it, if that is what the run begins with."""
    if names and run.startswith(names[0]) and kind_of(names[0]) == "path":
        line = _LINE.match(run, len(names[0]))
        return run[: line.end()] if line else ""
    return ""


def _is_wanted(name: str, known: Container[str]) -> bool:
    return len(name) <= _LONGEST and name not in known and name not in _NO_NAMES


def _may_be_names(run: str) -> bool:
    """Return False for plain words, which most runs are."""
    word = run.rstrip(".,:-")
    return not (word.isalpha() and (word.islower() or word.istitle())) and not (
        word.isdigit() and len(word) < 3
    )


def _worth(name: str, count: int, position: float, kind: Kind) -> float:
    shape = _shape(name)
    worth = _WORTH_IN.get((kind, shape)) or _WORTH[shape]
    often: float = min(count, 12) ** 0.35
    return worth * often * (1.2 - 0.4 * position)


def _shape(name: str) -> str:
    match kind_of(name):
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
