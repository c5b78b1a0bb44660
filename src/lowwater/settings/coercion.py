"""Converting a raw value to the type of its setting: out-of-range numbers are clamped, nonsense raises BadSetting."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import inf, isfinite

from msgspec import NODEFAULT, Struct, inspect, structs

from lowwater.errors import BadSetting

LONGEST = 40
"""Characters of a value that an error shows."""

_NUMERAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

Number = inspect.IntType | inspect.FloatType


class Clamp(Struct, frozen=True, kw_only=True):
    """A number outside its range: `given` was replaced by `used`; `inside` is its path within the setting."""

    inside: str
    given: str
    used: str


class Fitted(Struct, frozen=True, kw_only=True):
    """A value of the right type, and the numbers in it that had to be clamped."""

    value: object
    clamps: tuple[Clamp, ...]


def fit(value: object, kind: inspect.Type, *, name: str, place: str = "") -> Fitted:
    """Return `value` converted to `kind`, or raise BadSetting, which names the setting and the `place` of the value.

    A number outside its range is moved to the nearest bound. A negative or absurdly large count, NaN and infinity raise
    BadSetting.
    """
    clamps: list[Clamp] = []
    fitted = _Fitter(name, place, clamps).fit(value, kind, "")
    return Fitted(value=fitted, clamps=tuple(clamps))


def fit_fields(section: Struct) -> None:
    """Convert the fields of a new `section` to their types (a list becomes a tuple); raise BadSetting instead of clamping."""
    for name, kind in _kinds(type(section)).items():
        fitted = fit(getattr(section, name), kind, name=name)
        for clamp in fitted.clamps:
            raise BadSetting(f"{name}{clamp.inside} must be {expected(kind)}, not {clamp.given}")
        structs.force_setattr(section, name, fitted.value)


@cache
def _kinds(section: type[Struct]) -> dict[str, inspect.Type]:
    return {field.name: inspect.type_info(field.type) for field in structs.fields(section)}


class _Fitter:
    """Converts one value recursively; `inside` is the path within the setting."""

    def __init__(self, name: str, place: str, clamps: list[Clamp]) -> None:
        self._name = name
        self._place = place
        self._clamps = clamps

    def fit(self, value: object, kind: inspect.Type, inside: str) -> object:
        match kind:
            case inspect.Metadata():
                return self.fit(value, kind.type, inside)
            case inspect.UnionType():
                return self._union(value, kind, inside)
            case inspect.IntType() | inspect.FloatType():
                return self._number(value, kind, kind, inside)
            case inspect.StrType() if isinstance(value, str):
                return self._text(value, kind, inside)
            case inspect.VarTupleType() if isinstance(value, list | tuple):
                return self._list(value, kind, inside)
            case inspect.StructType() if isinstance(value, kind.cls):
                return value
            case inspect.StructType() if isinstance(value, Mapping):
                return self._mapping(value, kind, inside)
            case inspect.BoolType() if isinstance(value, bool):
                return value
            case inspect.NoneType() if value is None:
                return value
            case inspect.LiteralType() if isinstance(value, str) and value in kind.values:
                return value
            case _:
                raise self._bad_value(value, kind, inside)

    def _union(self, value: object, union: inspect.UnionType, inside: str) -> object:
        for option in union.types:
            match option:
                case inspect.IntType() | inspect.FloatType() if _number_of(value) is not None:
                    return self._number(value, option, union, inside)
                case inspect.StrType() if isinstance(value, str):
                    return self._text(value, option, inside)
                case inspect.LiteralType() if value in option.values:
                    return value
                case inspect.VarTupleType() if isinstance(value, list | tuple):
                    return self._list(value, option, inside)
                case inspect.NoneType() if value is None:
                    return value
                case _:
                    pass
        raise self._bad_value(value, union, inside)

    def _number(self, value: object, kind: Number, whole: inspect.Type, inside: str) -> float:
        number = _number_of(value)
        if number is None or not isfinite(number):
            raise self._bad_value(value, whole, inside)
        if isinstance(kind, inspect.IntType):
            if number < 0 or number != int(number) or (kind.lt is not None and number >= kind.lt):
                raise self._bad_value(value, whole, inside)
            number = int(number)
        else:
            number = float(number)
        within = number
        if kind.ge is not None and number < kind.ge:
            within = type(number)(kind.ge)
        if kind.le is not None and number > kind.le:
            within = type(number)(kind.le)
        if within != number:
            self._clamps.append(Clamp(inside=inside, given=shown(value), used=shown(within)))
        return within

    def _text(self, value: str, kind: inspect.StrType, inside: str) -> str:
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise self._error(inside, f"must be text in UTF-8, not {ascii(value)[:60]}")
        if kind.pattern and not re.search(kind.pattern, value):
            raise self._error(inside, f"must be {expected(kind)}, not empty")
        return value

    def _list(self, value: Sequence[object], kind: inspect.VarTupleType, inside: str) -> tuple[object, ...]:
        return tuple(self.fit(item, kind.item_type, f"{inside}[{index}]") for index, item in enumerate(value))

    def _mapping(self, value: Mapping[object, object], kind: inspect.StructType, inside: str) -> Struct:
        known = [field.name for field in kind.fields]
        for key in value:
            if key not in known:
                hint = did_you_mean(key, known) or f"; it takes {', '.join(known)}"
                raise self._error(inside, f"has no {shown(key)}{hint}")
        for field in kind.fields:
            if field.default is NODEFAULT and field.name not in value:
                raise self._error(inside, f"must have {field.name}")
        fields = {
            field.name: self.fit(value[field.name], field.type, f"{inside}.{field.name}")
            for field in kind.fields
            if field.name in value
        }
        return kind.cls(**fields)

    def _bad_value(self, value: object, kind: inspect.Type, inside: str) -> BadSetting:
        hint = ""
        if isinstance(value, str) and isinstance(kind, inspect.LiteralType):
            hint = did_you_mean(value, [str(choice) for choice in kind.values])
        return self._error(inside, f"must be {expected(kind)}, not {shown(value)}{hint}")

    def _error(self, inside: str, problem: str) -> BadSetting:
        return BadSetting(f"{at(self._name + inside, self._place)} {problem}")


def _number_of(value: object) -> float | None:
    """Return `value`, a number or the text of one, as a number; None if it is neither, infinity if it is too large."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) > 10**300:
        return inf
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and _NUMERAL.fullmatch(value):
        return float(value)
    return None


def expected(kind: inspect.Type) -> str:
    """Return in words what values `kind` takes, to complete the sentence "must be …"."""
    match kind:
        case inspect.Metadata():
            return expected(kind.type)
        case inspect.UnionType():
            return _either(kind)
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType():
            return _number(kind)
        case inspect.StrType():
            return "text"
        case inspect.NoneType():
            return "null"
        case inspect.LiteralType(values=(only,)):
            return str(only)
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, kind.values))}"
        case inspect.VarTupleType(item_type=inspect.StrType()):
            return "a list of words"
        case inspect.VarTupleType():
            return f"a list, each {expected(kind.item_type)}"
        case inspect.StructType():
            return f"a mapping with {', '.join(field.name for field in kind.fields)}"
        case _:
            raise AssertionError(f"no setting has the type {type(kind).__name__}")


def _either(kind: inspect.UnionType) -> str:
    match kind.types:
        case (inspect.LiteralType() as ours, inspect.StrType()):
            return f"{expected(ours)} or another that is installed"
        case options:
            return " or ".join(map(expected, options))


def _number(kind: Number) -> str:
    noun = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
    if kind.ge is not None and kind.le is not None:
        return f"{noun} from {kind.ge:,} to {kind.le:,}"
    return noun if kind.ge is None else f"{noun} of at least {kind.ge:,}"


def shown(value: object) -> str:
    """Return a short form of any value on one line; the contents of lists and mappings are not shown."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value.bit_length() <= 64 else "a number of more than 19 digits"
        case float():
            return f"{value:g}"
        case str():
            cut = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
            return cut if cut.isprintable() and cut == cut.strip() and cut else ascii(cut)
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return "a mapping"
        case _:
            return f"a {type(value).__name__}"


def did_you_mean(given: object, known: Iterable[str], *, prefix: str = "") -> str:
    """Return "; did you mean …?" with the name most similar to `given`; empty if none is similar.

    A `prefix` that all names share is ignored in the comparison.
    """
    names = {name.removeprefix(prefix).lower(): name for name in known}
    from difflib import get_close_matches  # noqa: PLC0415 - for an error message

    close = get_close_matches(str(given).removeprefix(prefix)[:LONGEST].lower(), names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""


def at(name: str, place: str) -> str:
    """Return a setting's name together with where its value was written, if that is known."""
    return f"{name} ({place})" if place else name
