"""The parts a message is made of: text, images, documents, tool calls, tool results, thinking.

Two parts are equal when their content is: `extra`, the fields a provider or client added around the content, does
not count, because clients move cache marks and drop fields when they send a message again.
"""

from typing import ClassVar, Literal

from msgspec import Struct

from lowwater.values.canonical import canonical_json
from lowwater.values.stored_form import stored_as

Source = Literal["base64", "url", "file", "text"]


class Part(Struct, frozen=True, kw_only=True, eq=False, rename=stored_as("part"), forbid_unknown_fields=True):
    """What all parts share: equality by content, and the fields beyond it."""

    kind: ClassVar[str] = ""

    extra: bytes = b""
    """The block's other fields as one JSON object, byte for byte; empty if there are none."""

    def identity(self) -> tuple[object, ...]:
        """Return what makes this part the same as another: its kind and every field but `extra`."""
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
    """The model asks for a tool; `arguments` is JSON text as the model wrote it."""

    kind: ClassVar[str] = "tool_call"

    id: str
    name: str
    arguments: str

    def identity(self) -> tuple[object, ...]:
        """Arguments count by value: clients parse them and write them again in other words."""
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
    """The model's reasoning; `signature` proves it to the provider, `redacted` means that only that is left."""

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
    """A block of a type this version has never heard of; `body` is the whole block as JSON."""

    kind: ClassVar[str] = "opaque"

    block: str
    """The type it says it is."""
    body: str

    def identity(self) -> tuple[object, ...]:
        """A cache mark inside an unknown block is still no content."""
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
    """What a tool answered to the call `call_id`."""

    kind: ClassVar[str] = "tool_result"

    call_id: str
    parts: tuple[ResultPart, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All text of the result, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def identity(self) -> tuple[object, ...]:
        """A result is its call, its content and whether it failed."""
        return (self.kind, self.call_id, tuple(part.identity() for part in self.parts), self.is_error)


AnyPart = Text | Image | Document | ToolCall | ToolResult | Thinking | Opaque
