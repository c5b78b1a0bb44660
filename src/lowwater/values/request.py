"""One request to a model, as a client wrote it or as it will be sent."""

from msgspec import Struct

from lowwater.values.message import Format, Message


class Request(Struct, frozen=True, kw_only=True):
    """A request body taken apart; `body` is the bytes it came in.

    `system` and `tools` are JSON as sent, empty where there are none. In the chat format the system prompt is among
    the messages; in the Responses format it is the `instructions`, and the items of an answer are one message.
    """

    format: Format
    body: bytes
    messages: tuple[Message, ...]
    system: bytes = b""
    tools: bytes = b""
    model: str = ""
    max_tokens: int | None = None
