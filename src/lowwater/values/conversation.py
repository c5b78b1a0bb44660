"""A conversation as it lay in a file: its messages, and the shape they came in."""

from typing import Literal

from msgspec import Struct

from lowwater.values.message import Format, Message

Shape = Literal["request", "array", "lines"]


class Conversation(Struct, frozen=True, kw_only=True):
    """Messages with what a request says around them; `shape` is how to write them back.

    `request`: one API request body, kept in `around`. `array`: a JSON array. `lines`: one message a line, with an
    optional first line that is no message, kept in `around`.
    """

    shape: Shape
    format: Format
    messages: tuple[Message, ...]
    around: bytes = b""
    system: bytes = b""
    tools: bytes = b""
    model: str = ""
