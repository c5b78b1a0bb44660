"""What the scripted model does: acts, and the tasks they are parts of."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from msgspec import Struct


class Speak(Struct, frozen=True, kw_only=True):
    """Answer with text; that ends the turn."""

    text: str


class Call(Struct, frozen=True, kw_only=True):
    """One tool call."""

    tool: str
    arguments: Mapping[str, Any]


class Use(Struct, frozen=True, kw_only=True):
    """Ask for tools, with some words before."""

    text: str
    calls: tuple[Call, ...]


Act = Speak | Use
Task = Generator[Act, Sequence[str], None]
"""Yields acts; is sent the tool results of each."""


def use(text: str, tool: str, **arguments: object) -> Use:
    """Return the act of asking for one tool."""
    return Use(text=text, calls=(Call(tool=tool, arguments=arguments),))
