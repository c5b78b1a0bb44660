"""What happens next in a session, as its story tells it."""

from collections.abc import Mapping

from msgspec import Struct


class Call(Struct, frozen=True, kw_only=True):
    """One tool call and what it will answer after some seconds."""

    tool: str
    arguments: Mapping[str, object]
    output: str
    failed: bool = False
    seconds: float = 0.3


class Ask(Struct, frozen=True, kw_only=True):
    """The user says something."""

    text: str


class Act(Struct, frozen=True, kw_only=True):
    """The model calls tools, several at once if there are several calls."""

    calls: tuple[Call, ...]
    text: str = ""
    thought: str = ""


class Tell(Struct, frozen=True, kw_only=True):
    """The model answers in words and the user has the floor."""

    text: str
    thought: str = ""


Step = Ask | Act | Tell
