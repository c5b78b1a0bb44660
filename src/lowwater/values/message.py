"""One conversation message: a value, equal to another when its content is."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.values.stored_form import stored_as

Role = Literal["system", "developer", "user", "assistant", "tool"]
Format = Literal["openai_chat", "anthropic", "openai_responses"]


class Wire(Struct, frozen=True, kw_only=True, rename=stored_as("wire"), forbid_unknown_fields=True):
    """The bytes a message came in, so that it can leave in them."""

    format: Format
    raw: bytes
    exact: bool = True
    """False once the message's parts were edited: the bytes then only supply the fields around the content."""


class Message(
    Struct, frozen=True, kw_only=True, eq=False, rename=stored_as("message"), forbid_unknown_fields=True
):
    """One message; equality and hash look at role and parts only, never at the wire form."""

    role: Role
    parts: tuple[AnyPart, ...]
    name: str = ""
    wire: Wire | None = None
    memo: bytes = b""
    """The digest once it was asked for; never set it."""

    @property
    def digest(self) -> bytes:
        """Sixteen bytes that are equal exactly when the content is."""
        if not self.memo:
            force_setattr(self, "memo", _digest(self))
        return self.memo

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def text(self) -> str:
        """The message's own text, without thinking, calls and results."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in it, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results in it, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolResult)])

    @property
    def thinking(self) -> tuple[Thinking, ...]:
        """The thinking in it, in order."""
        return tuple([part for part in self.parts if isinstance(part, Thinking)])

    @property
    def bytes(self) -> int:
        """About how many bytes it takes in a request: what it came in, or what its parts hold once they were edited."""
        if self.wire is not None and self.wire.exact:
            return len(self.wire.raw)
        return sum(_bytes(part) for part in self.parts)

    def with_parts(self, parts: Sequence[AnyPart]) -> "Message":
        """Return the message with other parts; its role, name and the unknown fields around them stay."""
        wire = self.wire and Wire(format=self.wire.format, raw=self.wire.raw, exact=False)
        return Message(role=self.role, parts=tuple(parts), name=self.name, wire=wire)


def _digest(message: Message) -> bytes:
    # A tool message's name repeats what its call says, and clients drop it; a user's name tells people apart.
    name = message.name if message.role == "user" else ""
    identity = [message.role, name, [part.identity() for part in message.parts]]
    return blake2b(msgspec.json.encode(identity), digest_size=16).digest()


def _bytes(part: AnyPart) -> int:
    match part:
        case Text() | Thinking():
            return len(part.text.encode(errors="replace"))
        case ToolResult():
            return sum(_bytes(inner) for inner in part.parts)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case Image() | Document():
            return len(part.data)
        case Opaque():
            return len(part.body)


def texts_of(message: Message) -> Iterator[str]:
    """Yield every piece of text the message puts before the model, thinking and arguments included."""
    for part in message.parts:
        match part:
            case Text() | Thinking():
                yield part.text
            case ToolCall():
                yield part.name
                yield part.arguments
            case ToolResult():
                yield part.text
            case _:
                pass
