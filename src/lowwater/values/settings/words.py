"""A setting's type and value in words, for errors, help and tables."""

from collections.abc import Iterable
from difflib import get_close_matches

from msgspec import inspect

Number = inspect.IntType | inspect.FloatType

LONGEST = 40


def expected(kind: inspect.Type) -> str:
    """Say what values `kind` takes, so that it completes the sentence "must be …"."""
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
    """Write `value` shortly on one line, whatever it is; what a list or mapping holds is not shown."""
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
    """Return "; did you mean …?" for the name most like `given`, or nothing if none is.

    A `prefix` that all names share does not make them alike.
    """
    names = {name.removeprefix(prefix).lower(): name for name in known}
    close = get_close_matches(str(given).removeprefix(prefix)[:LONGEST].lower(), names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""
