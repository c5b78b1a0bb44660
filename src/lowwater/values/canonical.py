"""JSON text in one spelling, so that equal values are equal strings."""

import json
import re
from collections.abc import Collection
from decimal import MAX_EMAX, MIN_EMIN, Context
from math import isinf
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(order="sorted")
_STRING_OR_BLANKS = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\n\r]+', re.DOTALL)
_LONGEST_INTEGER = 4_000
"""Python refuses to read integers of more than 4,300 digits."""


class _Spelled(str):
    """A number that is compared by its spelling, because no float or integer of Python's holds its value."""

    __slots__ = ()


def canonical_json(text: str, *, without: Collection[str] = ()) -> str:
    """Return `text` with sorted keys and no insignificant blanks; text that is not JSON comes back stripped.

    `without` names top-level keys that do not count. Of a key that is written twice the last one counts, as it does for clients
    that read the text and write it again. What msgspec refuses is still compared by value where Python's own reader takes it:
    numbers beyond every float, lone surrogates, NaN.
    """
    try:
        return _encoder.encode(_less(msgspec.json.decode(text), without)).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:
        value = json.loads(text, parse_float=_float, parse_int=_integer, parse_constant=_Spelled)
        return _written(_less(value, without))
    except ValueError:
        return text.strip()
    except RecursionError:
        # Too deep to be read, but the blanks between its values do not count all the same.
        return _STRING_OR_BLANKS.sub(lambda found: found[1] or "", text)


def _less(value: Any, without: Collection[str]) -> Any:  # noqa: ANN401 - any JSON value
    if without and isinstance(value, dict):
        return {key: item for key, item in value.items() if key not in without}
    return value


def _float(spelled: str) -> float | _Spelled:
    number = float(spelled)
    if not isinf(number):
        return number
    exactly = Context(prec=len(spelled), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    value = exactly.create_decimal(spelled).normalize(exactly)
    return _Spelled(value if value.is_finite() else spelled.lower())


def _integer(spelled: str) -> int | _Spelled:
    return int(spelled) if len(spelled) <= _LONGEST_INTEGER else _Spelled(spelled)


def _written(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Write a value as msgspec would, and what it cannot write as Python's own writer does."""
    match value:
        case _Spelled():
            return str(value)
        case dict():
            return "{" + ",".join(f"{_written(key)}:{_written(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
        case _:
            try:
                return _encoder.encode(value).decode()
            except UnicodeError:
                return json.dumps(value)
