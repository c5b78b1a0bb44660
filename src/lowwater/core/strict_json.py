"""Reading and writing JSON: errors become one sentence, untouched values keep their bytes, equal values one spelling."""

import json
import math
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context
from math import isinf
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from lowwater.errors import BadInput, UnreadableJson

T = TypeVar("T")

_MOST_DIGITS = 300
"""The most digits of a number that is read as an integer. More exceed a float and are a mistake; many more are an attack."""
_LONGEST_INTEGER = 4_000
"""Python refuses to read integers of more than 4,300 digits."""
_ERROR_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_STRING_OR_BLANKS = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\n\r]+', re.DOTALL)
_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_CONSTANT = re.compile(rb"\b(?:NaN|Infinity)\b")
_ESCAPE_BYTES = 6
_REPLACEMENT = rb"\ufffd"

_encoder = msgspec.json.Encoder(order="sorted")


def read_json(data: bytes, kind: type[T]) -> T:
    """Return `data` as a value of type `kind`; raise UnreadableJson if it is not JSON, BadInput if it has another shape."""
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


def describe(error: Exception) -> str:
    """Return in a few words where a value has the wrong type and what was expected there."""
    text = str(error)
    where = _ERROR_PATH.search(text)
    problem = _ERROR_PATH.sub("", text).replace("`", "")
    problem = problem[:1].lower() + problem[1:]
    return f"{where['path']}: {problem}" if where and where["path"] else problem


def _why_unreadable(data: bytes, error: str) -> str:
    if _has_lone_surrogate(data):
        return (
            "text with a lone surrogate (half of a character, such as \\ud83d alone): no provider accepts it"
        )
    if "truncated" in error:
        return f"JSON cut short after {len(data):,} bytes"
    return f"not JSON: {error.removeprefix('JSON is malformed: ')}"


def _has_lone_surrogate(data: bytes) -> bool:
    """Return whether an escaped high surrogate is not followed by a low one, or a low one does not follow a high one."""
    return next(_lone_surrogates(data), None) is not None


def _lone_surrogates(data: bytes) -> Iterator[int]:
    """Yield where in JSON an escaped half of a character stands alone."""
    high: int | None = None
    at = 0
    for match in _ESCAPE.finditer(data):
        escape = match.group(1)
        kind = escape[1:3].lower() if escape[:1] == b"u" else b""
        is_high = kind in {b"d8", b"d9", b"da", b"db"}
        is_low = kind in {b"dc", b"dd", b"de", b"df"}
        is_pair = high is not None and is_low and match.start() == at
        if high is not None and not is_pair:
            yield high
        if is_low and not is_pair:
            yield match.start()
        high, at = (match.start() if is_high else None), match.end()
    if high is not None:
        yield high


def as_strict_json(data: bytes) -> bytes:
    """Return loosely written JSON as valid JSON; unchanged if it is that, or no JSON at all.

    Half characters and bytes that are not UTF-8 become the replacement character, NaN and infinity null. That is for answers, which have been paid for; what a caller wants to send is refused instead.
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        data = data.decode(errors="replace").encode()
    if _SURROGATE.search(data) is not None:
        mended = bytearray(data)
        for at in _lone_surrogates(data):
            mended[at : at + _ESCAPE_BYTES] = _REPLACEMENT
        data = bytes(mended)
    return _without_constants(data) if _CONSTANT.search(data) else data


def _without_constants(data: bytes) -> bytes:
    try:
        read_json(data, Raw)
    except UnreadableJson:
        pass
    else:
        return data  # the words are inside of strings
    try:
        return write_json(
            json.loads(data, parse_float=_finite, parse_int=_whole, parse_constant=lambda _: None)
        )
    except (ValueError, RecursionError, BadInput):
        return data


def write_answer(value: object) -> bytes:
    """Return an answer as JSON bytes like `write_json`; half characters are escaped, for `as_strict_json` to replace."""
    try:
        return write_json(value)
    except UnreadableJson:
        try:
            return json.dumps(value, default=_plain).encode()
        except (TypeError, ValueError, RecursionError):
            pass
        raise


def read_plain(data: bytes) -> Any:  # noqa: ANN401 - whatever JSON says
    """Return `data` as Python objects that can be written as JSON again.

    JSON allows numbers that are too large for a float (`1e400`). They become the largest float of their sign, so that an
    answer of a model with such a number can still be shown and sent.
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


def read_fields(data: bytes) -> dict[str, bytes]:
    """Return the fields of a JSON object, each value as its original bytes."""
    return {key: bytes(value) for key, value in read_json(data, dict[str, Raw]).items()}


def extra_of(raw: bytes, known: Collection[str]) -> bytes:
    """Return the fields of a JSON object that are not `known`, as a JSON object; empty if there are none."""
    rest = {key: value for key, value in read_fields(raw).items() if key not in known}
    return write_object(rest) if rest else b""


def fields_of(extra: bytes) -> dict[str, bytes]:
    """Return the fields in a part's `extra`."""
    return read_fields(extra) if extra else {}


def write_json(value: object) -> bytes:
    """Return `value` as JSON bytes; objects of the providers' SDKs are written as they would be sent."""
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
    """Return `value` as JSON bytes if it has an integer of more than 64 bits, which msgspec does not write."""
    try:
        text = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError) as error:
        raise BadInput(f"not something JSON can hold: {error}") from None


def _plain(value: object) -> object:
    # Both official SDKs return Pydantic models: write only what was set, as a client would send it back.
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # Answers may have fields that the SDK's types do not know; they are sent back too, without a warning.
        return cast(object, dump(mode="json", exclude_unset=True, by_alias=True, warnings=False))
    raise TypeError(f"a {type(value).__name__} is no message content")


def write_object(fields: Mapping[str, bytes]) -> bytes:
    """Return a JSON object with these fields, in order, whose values are the given bytes unchanged."""
    return msgspec.json.encode({key: Raw(value) for key, value in fields.items()})


def write_array(items: list[bytes]) -> bytes:
    """Return a JSON array of the given bytes, unchanged."""
    return msgspec.json.encode([Raw(item) for item in items])


def without_line_breaks(value: bytes) -> bytes:
    """Return JSON on one line; its bytes are unchanged if it is on one line already."""
    return msgspec.json.format(value, indent=-1) if b"\n" in value or b"\r" in value else value


class _SpelledNumber(str):
    """A number that is compared by its spelling, because Python has no float or integer of its value."""

    __slots__ = ()


def canonical_json(text: str, *, without: Collection[str] = ()) -> str:
    """Return JSON `text` with sorted keys and no insignificant white space; text that is not JSON is only stripped.

    `without` names top-level keys to leave out. Of a key that occurs twice the last one counts, as it does for clients that
    parse the text and serialise it again. Python's own parser reads what msgspec rejects: numbers too large for a float,
    lone surrogates, NaN.
    """
    try:
        return _encoder.encode(_without_keys(msgspec.json.decode(text), without)).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    try:
        value = json.loads(text, parse_float=_float, parse_int=_integer, parse_constant=_SpelledNumber)
        return _serialise(_without_keys(value, without))
    except ValueError:
        return text.strip()
    except RecursionError:
        # Nested too deeply to be parsed: remove at least the white space between values.
        return _STRING_OR_BLANKS.sub(lambda found: found[1] or "", text)


def _without_keys(value: Any, without: Collection[str]) -> Any:  # noqa: ANN401 - any JSON value
    if without and isinstance(value, dict):
        return {key: item for key, item in value.items() if key not in without}
    return value


def _float(spelled: str) -> float | _SpelledNumber:
    number = float(spelled)
    if not isinf(number):
        return number
    exactly = Context(prec=len(spelled), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    value = exactly.create_decimal(spelled).normalize(exactly)
    return _SpelledNumber(value if value.is_finite() else spelled.lower())


def _integer(spelled: str) -> int | _SpelledNumber:
    return int(spelled) if len(spelled) <= _LONGEST_INTEGER else _SpelledNumber(spelled)


def _serialise(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return a value as msgspec would write it, and what msgspec cannot write as Python's `json` does."""
    match value:
        case _SpelledNumber():
            return str(value)
        case dict():
            return (
                "{" + ",".join(f"{_serialise(key)}:{_serialise(value[key])}" for key in sorted(value)) + "}"
            )
        case list():
            return "[" + ",".join(map(_serialise, value)) + "]"
        case _:
            try:
                return _encoder.encode(value).decode()
            except UnicodeError:
                return json.dumps(value)
