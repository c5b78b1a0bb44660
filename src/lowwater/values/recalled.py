"""What recall gives back: originals with what stands around them, and what a summary was made of."""

from typing import Literal

from msgspec import Struct

from lowwater.values.entries import Numbers
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Document, Image, Opaque, Text, Thinking, ToolCall, ToolResult

_LONGEST_NAME = 200


class Told(Struct, frozen=True, kw_only=True):
    """One message as it was, with its number and size."""

    number: int
    message: Message
    tokens: int

    @property
    def handle(self) -> str:
        """How a placeholder refers to it."""
        return f"lw:{self.number}"

    @property
    def text(self) -> str:
        """Everything it says, calls and results included; pictures and files by name."""
        return text_of(self.message)

    @property
    def who(self) -> str:
        """Who speaks, and which tools are called."""
        return who_of(self.message)


class Recalled(Told, frozen=True, kw_only=True):
    """A message that was asked for or found, with its neighbourhood."""

    excerpt: str = ""
    """One line of it: around the words it was found by, or its first."""
    group: Numbers
    """The messages it belongs together with: a tool result with its call, a call with its results; itself at least."""
    near: tuple[Told, ...] = ()
    """The rest of its group and the messages just before and after, in order, itself left out."""

    @property
    def tokens_with_near(self) -> int:
        """What it takes to show it with its neighbourhood."""
        return self.tokens + sum(told.tokens for told in self.near)


class Child(Struct, frozen=True, kw_only=True):
    """A message, or a summary that stands for several, as one line of an expansion."""

    kind: Literal["message", "summary"]
    handle: str
    who: str
    """Who speaks, and which tools are called."""
    tokens: int
    """Its own size: that of the summary, not of what it stands for."""
    messages: int
    """How many messages it stands for."""
    first_line: str
    sources: tuple[Numbers, ...]


class Expansion(Struct, frozen=True, kw_only=True):
    """What a handle leads to, one level down."""

    handle: str
    text: str
    """What the summary says that the handle names; empty if it names messages."""
    children: tuple[Child, ...]

    @property
    def tokens(self) -> int:
        """The size of all children together."""
        return sum(child.tokens for child in self.children)


def text_of(message: Message) -> str:
    """Return everything a message says, in order, as it was said; pictures, files and unknown blocks are named."""
    return "\n".join(text for part in message.parts if (text := _text(part)))


def who_of(message: Message) -> str:
    """Return who speaks in a message, and which tools are called."""
    if message.calls:
        return f"{message.role}, calls {', '.join(dict.fromkeys(call.name for call in message.calls))}"
    is_result = message.results and not any(isinstance(part, Text) for part in message.parts)
    return "tool result" if is_result else message.role


def _text(part: AnyPart) -> str:
    match part:
        case Text() | Thinking():
            return part.text
        case ToolCall():
            return f"{part.name} {part.arguments}"
        case ToolResult():
            return "\n".join(text for inner in part.parts if (text := _text(inner)))
        case Image():
            return _named("image", part.media_type, part.source, part.data)
        case Document(source="text"):
            return f"{part.title}\n{part.data}" if part.title else part.data
        case Document():
            return _named("document", part.title or part.media_type, part.source, part.data)
        case Opaque():
            return f"[{part.block} · {len(part.body):,} characters that are no text]"


def _named(what: str, kind: str, source: str, data: str) -> str:
    """Return the name of something that cannot be told in words."""
    where = f"{len(data):,} characters of {source}" if source == "base64" else data[:_LONGEST_NAME]
    return f"[{' · '.join(part for part in (what, kind, where) if part)}]"
