"""What a scripted provider may answer; the same values serve both formats."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct


class Say(Struct, frozen=True, tag_field="kind", tag="say"):
    """Answer with text and end the turn."""

    text: str


OK = Say("ok")


class CutOff(Struct, frozen=True, tag_field="kind", tag="cut_off"):
    """Answer with text that the output limit cut short."""

    text: str


class Call(Struct, frozen=True, tag_field="kind", tag="call"):
    """One tool call; without an id the provider issues the next one."""

    name: str
    arguments: Mapping[str, Any] = {}
    id: str = ""


class CallTools(Struct, frozen=True, tag_field="kind", tag="call_tools"):
    """Ask for tools, several of them in parallel, with or without words before."""

    calls: tuple[Call, ...]
    text: str = ""


class Think(Struct, frozen=True, tag_field="kind", tag="think"):
    """Think, then answer; chat completions show only how many tokens the thinking took."""

    text: str
    then: Say | CutOff | CallTools = OK
    redacted: bool = False


class Refuse(Struct, frozen=True, tag_field="kind", tag="refuse"):
    """Decline in the provider's way: a successful response whose stop reason says so."""

    text: str = "I can't help with that."


class Fail(Struct, frozen=True, tag_field="kind", tag="fail"):
    """Answer with an error although the request broke no rule."""

    status: int
    type: str
    message: str
    retry_after: int | None = None


class DropConnection(Struct, frozen=True, tag_field="kind", tag="drop_connection"):
    """Begin to answer with text and close the connection half way through."""

    text: str = "The connection ends before this sentence does."


class Hang(Struct, frozen=True, tag_field="kind", tag="hang"):
    """Never answer: hold the request until the client goes away or the provider stops."""


Answer: TypeAlias = Say | CutOff | CallTools | Think | Refuse | Fail | DropConnection | Hang
Spoken: TypeAlias = Say | CutOff | CallTools | Think | Refuse | DropConnection
"""The answers that become a message."""
