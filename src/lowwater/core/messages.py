"""One conversation message: its parts, its identity, and the provider's own compaction block as a part."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import ClassVar, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from lowwater.core.stored_form import stored_as
from lowwater.core.strict_json import canonical_json

Source = Literal["base64", "url", "file", "text"]
Role = Literal["system", "developer", "user", "assistant", "tool"]
Format = Literal["openai_chat", "anthropic", "openai_responses"]

_COMPACTION = "compaction"
"""The type of the block into which Anthropic compacts a conversation; it must be sent back as it came."""


class Part(Struct, frozen=True, kw_only=True, eq=False, rename=stored_as("part"), forbid_unknown_fields=True):
    """The base of all parts: they are compared by content, and keep the fields that Lowwater does not know."""

    kind: ClassVar[str] = ""

    extra: bytes = b""
    """The block's other fields as one JSON object, byte for byte; empty if there are none."""

    def identity(self) -> tuple[object, ...]:
        """Return what two equal parts have in common: the kind and every field but `extra`."""
        return (self.kind, *(getattr(self, name) for name in self.__struct_fields__ if name != "extra"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash(self.identity())


class Text(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="text",
    rename=stored_as("text"),
    forbid_unknown_fields=True,
):
    """Plain text."""

    kind: ClassVar[str] = "text"

    text: str


class Image(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="image",
    rename=stored_as("image"),
    forbid_unknown_fields=True,
):
    """A picture: base64 data, a URL, or the id of an uploaded file in `data`."""

    kind: ClassVar[str] = "image"

    source: Source
    data: str
    media_type: str = ""
    detail: str = ""


class Document(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="document",
    rename=stored_as("document"),
    forbid_unknown_fields=True,
):
    """A document, usually a PDF: base64 data, a URL, plain text, or the id of an uploaded file in `data`."""

    kind: ClassVar[str] = "document"

    source: Source
    data: str
    media_type: str = ""
    title: str = ""


class ToolCall(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="tool_call",
    rename=stored_as("tool_call"),
    forbid_unknown_fields=True,
):
    """A call of a tool by the model; `arguments` is JSON text as the model wrote it."""

    kind: ClassVar[str] = "tool_call"

    id: str
    name: str
    arguments: str

    def identity(self) -> tuple[object, ...]:
        """Arguments are compared by value: clients parse them and serialise them differently."""
        return (self.kind, self.id, self.name, canonical_json(self.arguments))


class Thinking(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="thinking",
    rename=stored_as("thinking"),
    forbid_unknown_fields=True,
):
    """The model's reasoning; the provider verifies it by `signature`, which is all there is if it is `redacted`."""

    kind: ClassVar[str] = "thinking"

    text: str
    signature: str = ""
    redacted: bool = False


class Opaque(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="opaque",
    rename=stored_as("opaque"),
    forbid_unknown_fields=True,
):
    """A block of a type that Lowwater does not know; `body` is the whole block as JSON."""

    kind: ClassVar[str] = "opaque"

    block: str
    """The block's type."""
    body: str

    def identity(self) -> tuple[object, ...]:
        """The whole block, except for a cache mark, which is not content."""
        return (self.kind, canonical_json(self.body, without=("cache_control",)))


ResultPart = Text | Image | Document | Opaque


class ToolResult(
    Part,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="tool_result",
    rename=stored_as("tool_result"),
    forbid_unknown_fields=True,
):
    """The result of the tool call `call_id`."""

    kind: ClassVar[str] = "tool_result"

    call_id: str
    parts: tuple[ResultPart, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All text of the result, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def identity(self) -> tuple[object, ...]:
        """The call, the content and whether it failed."""
        return (self.kind, self.call_id, tuple(part.identity() for part in self.parts), self.is_error)


AnyPart = Text | Image | Document | ToolCall | ToolResult | Thinking | Opaque


class Wire(Struct, frozen=True, kw_only=True, rename=stored_as("wire"), forbid_unknown_fields=True):
    """The bytes that a message arrived in, so that it can be sent unchanged."""

    format: Format
    raw: bytes
    exact: bool = True
    """False once the parts were edited: then only the fields around the content are taken from the bytes."""


class Message(
    Struct, frozen=True, kw_only=True, eq=False, rename=stored_as("message"), forbid_unknown_fields=True
):
    """One message; equality and hash look at role and parts only, never at the wire form."""

    role: Role
    parts: tuple[AnyPart, ...]
    name: str = ""
    wire: Wire | None = None
    memo: bytes = b""
    """The digest, cached on first use; never set it."""

    @property
    def digest(self) -> bytes:
        """A hash of 16 bytes over role, name and parts: messages with equal content have the same."""
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
        """Its approximate size in a request: of the bytes it arrived in, or of its parts if they were edited."""
        if self.wire is not None and self.wire.exact:
            return len(self.wire.raw)
        return sum(_size_in_bytes(part) for part in self.parts)

    def with_parts(self, parts: Sequence[AnyPart]) -> "Message":
        """Return the message with other parts, and the same role, name and unknown fields."""
        wire = self.wire and Wire(format=self.wire.format, raw=self.wire.raw, exact=False)
        return Message(role=self.role, parts=tuple(parts), name=self.name, wire=wire)


def _digest(message: Message) -> bytes:
    # The name of a tool message repeats its call's, and clients drop it; a user's name tells speakers apart.
    name = message.name if message.role == "user" else ""
    identity = [message.role, name, [part.identity() for part in message.parts]]
    return blake2b(msgspec.json.encode(identity), digest_size=16).digest()


def _size_in_bytes(part: AnyPart) -> int:
    match part:
        case Text() | Thinking():
            return len(part.text.encode(errors="replace"))
        case ToolResult():
            return sum(_size_in_bytes(inner) for inner in part.parts)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case Image() | Document():
            return len(part.data)
        case Opaque():
            return len(part.body)


def texts_of(message: Message) -> Iterator[str]:
    """Yield every text in the message that the model sees, including thinking and the arguments of calls."""
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


class NativeBlock(Struct, frozen=True):
    """The known fields of a provider's compaction block; it may have others."""

    content: str | None = None
    encrypted_content: str | None = None
    signature: str | None = None

    @property
    def has_content(self) -> bool:
        """Whether it replaces anything: a block without content is a compaction that failed."""
        return bool(self.content or self.encrypted_content)


def read_block(part: AnyPart) -> NativeBlock | None:
    """Return a part as a compaction block; None if it is another part or a compaction that failed."""
    if not isinstance(part, Opaque) or part.block != _COMPACTION:
        return None
    try:
        block = msgspec.json.decode(part.body, type=NativeBlock)
    except msgspec.MsgspecError:
        return None
    return block if block.has_content else None


def newest_block(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message with a compaction block that did not fail, or None."""
    for at in range(len(messages) - 1, -1, -1):
        for part in messages[at].parts:
            if isinstance(part, Opaque) and read_block(part) is not None:
                return at
    return None


def message_with(block: bytes) -> Message:
    """Return the assistant message that consists of this compaction block, as the provider expects it back."""
    body = block.decode()
    raw = b'{"role":"assistant","content":[' + block + b"]}"
    return Message(
        role="assistant",
        parts=(Opaque(block=_COMPACTION, body=body),),
        wire=Wire(format="anthropic", raw=raw),
    )


def block_in(message: Message) -> bytes:
    """Return the bytes of the compaction block that a message consists of; empty for any other message."""
    match message.parts:
        case (Opaque(block="compaction", body=body),):
            return body.encode()
        case _:
            return b""


def said_in(message: Message) -> str:
    """Return a message's own text, or the text of its compaction block if it is one."""
    block = read_block(message.parts[0]) if block_in(message) else None
    return message.text if block is None else block.content or ""
