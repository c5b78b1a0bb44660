"""The tool `todo`: the model's list of what is to be done; it lives in the conversation, which keeps it."""

from typing import Literal

import msgspec
from msgspec import Struct

from lowwater.chat.tools.tool import Arguments, Tool
from lowwater.errors import BadInput

State = Literal["open", "doing", "done"]
_SIGNS: dict[State, str] = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


class _Item(Struct, frozen=True):
    text: str
    state: State = "open"


def todo() -> Tool:
    """Return the tool that writes the list down as it is now."""
    item = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "state": {"type": "string", "enum": ["open", "doing", "done"]},
        },
        "required": ["text"],
    }
    return Tool(
        name="todo",
        description="Write down the whole list of what is to be done as it is now, for work of several steps.",
        parameters={"items": {"type": "array", "items": item}},
        required=("items",),
        run=_write,
    )


def _write(arguments: Arguments) -> str:
    try:
        items = msgspec.convert(arguments.get("items"), type=list[_Item])
    except msgspec.ValidationError as error:
        raise BadInput(f"`items` is a list of objects with `text` and `state`: {error}") from None
    done = sum(item.state == "done" for item in items)
    lines = [f"{_SIGNS[item.state]} {' '.join(item.text.split())}" for item in items]
    return "\n".join([f"{done} of {len(items)} done", *lines])
