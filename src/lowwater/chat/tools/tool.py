"""A tool: how it is declared to the model, what it does, and whether the user is asked before."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lowwater.errors import BadInput

Arguments = Mapping[str, Any]


class Outcome(Struct, frozen=True, kw_only=True):
    """What a tool put out, or what was wrong."""

    text: str
    is_error: bool = False


def _never(_arguments: Arguments) -> str:
    return ""


class Tool(Struct, frozen=True, kw_only=True):
    """One tool; `run` returns its output or raises BadInput, whose sentence the model reads."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema for each argument."""
    required: tuple[str, ...] = ()
    run: Callable[[Arguments], str]
    question: Callable[[Arguments], str] = _never
    """What the user is asked before it runs; nothing if there is no need to."""

    def declared(self) -> dict[str, Any]:
        """Return the tool as a Messages request declares it."""
        schema = {
            "type": "object",
            "properties": dict(self.parameters),
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {"name": self.name, "description": self.description, "input_schema": schema}


def read_arguments(written: str) -> Arguments:
    """Return the arguments that a model wrote, or raise BadInput."""
    try:
        return msgspec.json.decode(written or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        raise BadInput("the arguments are no JSON object: write them again") from None


def text_of(arguments: Arguments, name: str, default: str | None = None) -> str:
    """Return an argument that is text, or raise BadInput; without a default it has to be there."""
    value = arguments.get(name, default)
    if not isinstance(value, str) or (default is None and not value):
        raise BadInput(f"the argument `{name}` is missing or no text")
    return value


def number_of(arguments: Arguments, name: str, default: int, *, most: int) -> int:
    """Return an argument that is a whole number from 1 up to `most`, or raise BadInput."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"the argument `{name}` has to be a whole number of at least 1")
    return min(value, most)
