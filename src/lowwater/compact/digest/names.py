"""The distinct names in a text, and how likely a later turn is to need each: measured on recorded sessions."""

import re
from collections import Counter
from collections.abc import Container

from msgspec import Struct

from lowwater.compact.digest.content import Content, Kind
from lowwater.values.references import NAME, kind_of

_RUN = re.compile(r"[\w@.+~/:,-]{3,}")
"""A run of the characters that names are made of: no name reaches beyond one."""

_LINE = re.compile(r":\d{1,7}\b")
_HEX = re.compile(r"[0-9a-f]{7,64}")
_ID = re.compile(r"[A-Za-z]\w*[_-]\w*\d{3,}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_LONGEST = 200

# How often one name in a hundred of this shape was used more than five calls later (see bench/recall.py).
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
    ("json", "id"): 25.0,
    ("json", "integer"): 15.0,
    ("json", "upper"): 10.0,
    ("json", "date"): 12.0,
    ("log", "integer"): 4.0,
    ("search", "absolute"): 9.0,
    ("search", "camel"): 1.5,
    ("search", "integer"): 0.4,
    ("search", "pascal"): 3.0,
    ("diff", "integer"): 0.6,
    ("prose", "absolute"): 9.0,
    ("prose", "integer"): 1.2,
}


class Name(Struct, frozen=True, kw_only=True):
    """One distinct name, how it is spelled in a digest, and the chance that it is needed, in per cent."""

    text: str
    shown: str
    worth: float


def names_in(content: Content, known: Container[str]) -> list[Name]:
    """Return the distinct names in order of their first appearance, without those in `known`."""
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    with_lines = content.kind in {"search", "log"}
    for run, count in Counter(_RUN.findall(content.text)).items():
        if _may_be_names(run):
            for name in NAME.findall(run):
                counts[name] = counts.get(name, 0) + count
                if with_lines and name not in shown:
                    shown[name] = _with_line(name, run)
    found = [(name, count) for name, count in counts.items() if len(name) <= _LONGEST and name not in known]
    return [
        Name(
            text=name,
            shown=shown.get(name, name),
            worth=_worth(name, count, position / len(found), content.kind),
        )
        for position, (name, count) in enumerate(found)
    ]


def _with_line(name: str, run: str) -> str:
    """Return a path with the line number that follows it in the run, other names as they are."""
    if not run.startswith(name) or kind_of(name) != "path":
        return name
    line = _LINE.match(run, len(name))
    return name + line[0] if line else name


def _may_be_names(run: str) -> bool:
    """Return False for plain words, which most runs are."""
    word = run.rstrip(".,:-")
    return not (word.isalpha() and (word.islower() or word.istitle())) and not (word.isdigit() and len(word) < 3)


def _worth(name: str, count: int, position: float, kind: Kind) -> float:
    shape = _shape(name)
    worth = _WORTH_IN.get((kind, shape)) or _WORTH[shape]
    return worth * min(count, 12) ** 0.35 * (1.2 - 0.4 * position)


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
    if "-" in name:
        return "date"
    if ":" in name:
        return "time"
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
