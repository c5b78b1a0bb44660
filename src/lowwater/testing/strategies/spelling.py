"""JSON in the many ways it can be written: blanks, escapes, order of fields, odd numbers."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hypothesis import strategies as st
from msgspec import Struct

from lowwater.testing.strategies.text import texts

_ODD = (
    "1.0",
    "1e5",
    "1E+2",
    "-0",
    "0.10",
    "-1.50e-7",
    "123456789012345678901234567890",
    "9007199254740993",
    "1e400",
)
_UNKNOWN = ("x_trace", "x-vendor", "annotations2", "ключ", "key with blanks", "_", "0")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class Number(Struct, frozen=True, kw_only=True):
    """A number in a spelling of its own."""

    spelled: str


Json: TypeAlias = bool | int | str | Number | Sequence["Json"] | Mapping[str, "Json"] | None
Fields: TypeAlias = dict[str, Json]


class Spelling(Struct, frozen=True, kw_only=True):
    """One way of writing JSON down."""

    comma: str = ","
    colon: str = ":"
    margin: str = ""
    ascii_only: bool = False
    escapes_slash: bool = False

    def write(self, value: Json) -> str:
        """Return `value` as JSON text."""
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case Number():
                return value.spelled
            case str():
                return self._string(value)
            case Mapping():
                fields = [self._string(key) + self.colon + self.write(item) for key, item in value.items()]
                return "{" + self.margin + self.comma.join(fields) + self.margin + "}"
            case _:
                items = [self.write(item) for item in value]
                return "[" + self.margin + self.comma.join(items) + self.margin + "]"

    def _string(self, text: str) -> str:
        return '"' + "".join(self._character(character) for character in text) + '"'

    def _character(self, character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "/" and self.escapes_slash:
            return "\\/"
        if character >= " " and (character < "\x7f" or not self.ascii_only):
            return character
        units = character.encode("utf-16-be").hex()
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def spellings() -> st.SearchStrategy[Spelling]:
    """Return a strategy for ways of writing JSON; it shrinks to the plain one."""
    return st.sampled_from(
        (
            Spelling(),
            Spelling(comma=", ", colon=": "),
            Spelling(ascii_only=True),
            Spelling(comma=",\n  ", colon=" : ", margin="\n  "),
            Spelling(escapes_slash=True, ascii_only=True, comma=" ,"),
            Spelling(margin="\t \r\n"),
        )
    )


_LEAVES: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(_ODD).map(lambda odd: Number(spelled=odd))
    | texts()
)
_VALUES: st.SearchStrategy[Json] = (
    _LEAVES | st.lists(_LEAVES, max_size=3) | st.dictionaries(texts(), _LEAVES, max_size=2)
)
_EXTRAS: st.SearchStrategy[Fields] = st.just({}) | st.dictionaries(
    st.sampled_from(_UNKNOWN), _VALUES, max_size=2
)


def extras() -> st.SearchStrategy[Fields]:
    """Return a strategy for fields nobody has heard of; often there are none."""
    return _EXTRAS


def arguments() -> st.SearchStrategy[Fields]:
    """Return a strategy for the arguments of a tool call."""
    return st.dictionaries(st.sampled_from(("path", "limit", "pattern", "値")), _VALUES, max_size=3)
