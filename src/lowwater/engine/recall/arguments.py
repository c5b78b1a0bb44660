"""Reading what a model gave to a recall tool; whatever is wrong with it becomes one sentence for the model."""

import re
from collections.abc import Mapping
from typing import cast

import msgspec
from msgspec import Struct

from lowwater.engine.recall.finding import MOST_HITS
from lowwater.engine.recall.handles import clipped
from lowwater.engine.recall.schemas import EXPAND, MOST_WANTED, SEARCH, is_recall
from lowwater.errors import BadInput
from lowwater.values.entries import Numbers

_LONGEST = 4_000
_PAIR = re.compile(r"\s*\[?\s*([0-9]{1,15})(?:\s*[-–,:]\s*([0-9]{1,15}))?\s*\]?\s*")


class SearchFor(Struct, frozen=True, kw_only=True):
    """What `lowwater_search` was asked."""

    query: str
    limit: int


class ExpandTo(Struct, frozen=True, kw_only=True):
    """What `lowwater_expand` was asked; at most one of the last three is given."""

    handle: str
    around: str = ""
    lines: Numbers | None = None
    characters: Numbers | None = None


def read_arguments(name: str, arguments: object) -> SearchFor | ExpandTo:
    """Return what a tool was asked, or raise BadInput."""
    if not is_recall(name):
        raise BadInput(f"there is no tool {clipped(name)}: use {SEARCH} or {EXPAND}")
    fields = _fields(arguments)
    if name.endswith(SEARCH):
        _only(fields, SEARCH, "query", "limit")
        return SearchFor(query=_words(fields, "query", SEARCH), limit=_limit(fields.get("limit")))
    _only(fields, EXPAND, "handle", "around", "lines", "characters")
    if len(fields.keys() & {"around", "lines", "characters"}) > 1:
        raise BadInput("give only one of around, lines and characters")
    return ExpandTo(
        handle=_words(fields, "handle", EXPAND),
        around=_words(fields, "around", EXPAND) if "around" in fields else "",
        lines=_pair(fields, "lines"),
        characters=_pair(fields, "characters"),
    )


def _fields(arguments: object) -> dict[str, object]:
    """Return the arguments that were given; null is as good as nothing."""
    if isinstance(arguments, str | bytes):
        try:
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise BadInput("the arguments are no valid JSON: send one object and nothing else") from None
    if not isinstance(arguments, Mapping):
        raise BadInput('the arguments must be one JSON object, such as {"handle": "lw:412"}')
    given = cast(Mapping[object, object], arguments)
    return {str(name): value for name, value in given.items() if value is not None}


def _only(fields: Mapping[str, object], tool: str, *known: str) -> None:
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        raise BadInput(f"{tool} has no argument {clipped(unknown)}: it takes {', '.join(known)}")


def _words(fields: Mapping[str, object], name: str, tool: str) -> str:
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**15 else ""
    if not isinstance(value, str) or not value.strip():
        example = "lw:412" if name == "handle" else "words to look for"
        raise BadInput(f'{tool} needs {name} as text: send {{"{name}": "{example}"}}')
    if len(value) > _LONGEST:
        raise BadInput(f"{name} has {len(value):,} characters: shorten it to a few words")
    return value


def _limit(value: object) -> int:
    if value is None:
        return MOST_HITS
    number = _number(value)
    if number is None or number < 1:
        raise BadInput(f"limit must be a whole number from 1 to {MOST_WANTED}")
    return min(number, MOST_WANTED)


def _pair(fields: Mapping[str, object], name: str) -> Numbers | None:
    if name not in fields:
        return None
    value = fields[name]
    numbers: list[int | None] = [None]
    if isinstance(value, str) and (found := _PAIR.fullmatch(value)):
        numbers = [int(found[1]), int(found[2] or found[1])]
    elif isinstance(value, list | tuple) and len(value) in (1, 2):
        numbers = [_number(value[0]), _number(value[-1])]
    elif not isinstance(value, str):
        numbers = [_number(value)] * 2
    first, last = numbers[0], numbers[-1]
    if first is None or last is None or not 1 <= first <= last:
        raise BadInput(
            f"{name} must be two whole numbers, the first and the last one wanted, such as [1, 200]"
        )
    return Numbers(first=first, last=last)


def _number(value: object) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case str() if re.fullmatch(r"\s*[0-9]{1,15}\s*", value):
            return int(value)
        case _:
            return None
