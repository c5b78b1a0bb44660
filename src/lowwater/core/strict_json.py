"""JSON in one spelling, and JSON read strictly: whatever is wrong with it becomes one sentence."""

import json
import math
import re
import sys
from collections.abc import Collection, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context
from math import isinf
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from lowwater.errors import BadInput, UnreadableJson

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


T = TypeVar("T")

_MOST_DIGITS = 300
"""Digits of a whole number that is read as one; more than fit a float are a mistake, and many more an attack."""

_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


def read_json(data: bytes, kind: type[T]) -> T:
    """Return `data` as `kind`, or raise UnreadableJson (not JSON) or BadInput (JSON of another shape)."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise BadInput(describe(error)) from None
    except msgspec.DecodeError as error:
        raise UnreadableJson(_why_unreadable(data, str(error))) from None
    except UnicodeDecodeError:
        raise UnreadableJson("not UTF-8: save the text as UTF-8 and try again") from None
    except RecursionError:
        raise UnreadableJson("nested too deeply: no provider accepts JSON a thousand levels deep") from None


def read_plain(data: bytes) -> Any:  # noqa: ANN401 - whatever JSON says
    """Return `data` as Python objects that can be written as JSON again.

    JSON knows numbers that no float holds (`1e400`); these become the largest float of their sign, so that a model's answer
    with one in it can still be shown and sent.
    """
    try:
        return msgspec.json.decode(data)
    except msgspec.ValidationError:
        return json.loads(data, parse_float=_finite, parse_int=_whole)


def _finite(digits: str) -> float:
    value = float(digits)
    return math.copysign(sys.float_info.max, value) if math.isinf(value) else value


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else _finite(digits)


def describe(error: Exception) -> str:
    """Say in a few words where a value of the wrong shape is and what was expected there."""
    text = str(error)
    where = _AT.search(text)
    said = _AT.sub("", text).replace("`", "")
    said = said[:1].lower() + said[1:]
    return f"{where['path']}: {said}" if where and where["path"] else said


def write_json(value: object) -> bytes:
    """Return `value` as JSON bytes; objects of the official SDKs are written as they would be sent."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except UnicodeEncodeError:
        raise UnreadableJson(
            "text with a lone surrogate (half of a character): no provider accepts it"
        ) from None
    except RecursionError:
        raise UnreadableJson("nested too deeply: no provider accepts JSON a thousand levels deep") from None
    except OverflowError:
        return _with_large_integers(value)
    except (TypeError, msgspec.MsgspecError) as error:
        raise BadInput(f"not something JSON can hold: {error}") from None


def _with_large_integers(value: object) -> bytes:
    """Return `value` as JSON bytes where an integer has more than 64 bits, which msgspec does not write."""
    try:
        text = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError) as error:
        raise BadInput(f"not something JSON can hold: {error}") from None


def write_object(fields: Mapping[str, bytes]) -> bytes:
    """Return one JSON object whose values are the given bytes, in order, untouched."""
    return msgspec.json.encode({key: Raw(value) for key, value in fields.items()})


def write_array(items: list[bytes]) -> bytes:
    """Return one JSON array of the given bytes, untouched."""
    return msgspec.json.encode([Raw(item) for item in items])


def without_line_breaks(value: bytes) -> bytes:
    """Return JSON on one line: as it was written, unless it was written on several."""
    return msgspec.json.format(value, indent=-1) if b"\n" in value or b"\r" in value else value


def read_fields(data: bytes) -> dict[str, bytes]:
    """Return the fields of a JSON object, each as the bytes it was written in."""
    return {key: bytes(value) for key, value in read_json(data, dict[str, Raw]).items()}


def extra_of(raw: bytes, known: Collection[str]) -> bytes:
    """Return the fields of a JSON object that are not `known`, as one object; empty if there are none."""
    rest = {key: value for key, value in read_fields(raw).items() if key not in known}
    return write_object(rest) if rest else b""


def fields_of(extra: bytes) -> dict[str, bytes]:
    """Return the fields kept in a part's `extra`."""
    return read_fields(extra) if extra else {}


def _plain(value: object) -> object:
    # Pydantic models, which is what both official SDKs return: only what was set, as a client would send it back.
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # Answers may hold what the SDK's types do not foresee; it is sent back all the same, and without a warning.
        return cast(object, dump(mode="json", exclude_unset=True, by_alias=True, warnings=False))
    raise TypeError(f"a {type(value).__name__} is no message content")


def _why_unreadable(data: bytes, said: str) -> str:
    if _has_lone_surrogate(data):
        return (
            "text with a lone surrogate (half of a character, such as \\ud83d alone): no provider accepts it"
        )
    if "truncated" in said:
        return f"JSON cut short after {len(data):,} bytes"
    return f"not JSON: {said.removeprefix('JSON is malformed: ')}"


def _has_lone_surrogate(data: bytes) -> bool:
    high = False
    at = 0
    for match in re.finditer(rb"\\(u[0-9a-fA-F]{4}|.)", data):
        escape = match.group(1)
        kind = escape[1:3].lower() if escape[:1] == b"u" else b""
        is_high = kind in {b"d8", b"d9", b"da", b"db"}
        is_low = kind in {b"dc", b"dd", b"de", b"df"}
        follows = high and match.start() == at
        if (high and not (follows and is_low)) or (is_low and not follows):
            return True
        high, at = is_high, match.end()
    return high
