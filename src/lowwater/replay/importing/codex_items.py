"""The items of the Responses format, as Codex writes them, as parts of chat messages."""

from typing import Any

from msgspec import Raw, Struct

from lowwater.core.strict_json import read_json
from lowwater.replay.importing.chat_session import Fields
from lowwater.replay.importing.gathering import text_of

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)


KNOWN = CALLS | RESULTS | {"message", "reasoning"}
"""Items that are part of the conversation; searches that the provider makes itself leave no result to show."""


class _Typed(Struct):
    type: str = ""


class Content(Struct):
    """One part of a message or of a tool's output."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None


class Item(Struct):
    """Any item; each type has some of these fields."""

    type: str = ""
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b'""')
    input: str | None = None
    action: Raw = Raw(b"null")
    output: Raw = Raw(b'""')
    tools: Raw = Raw(b"")
    content: str | list[Content] | None = None
    summary: list[Content] | None = None


class _Output(Struct):
    content: Any = None
    success: bool | None = None


def read_item(raw: bytes) -> Item | None:
    """Return an item, None if it is none of the known ones, or raise BadInput."""
    return read_json(raw, Item) if read_json(raw, _Typed).type in KNOWN else None


def call_of(item: Item) -> Fields | None:
    """Return a chat message's tool call; None if no result could ever belong to it."""
    call = item.call_id or item.id
    if not call:
        return None
    if item.type == "custom_tool_call":
        return {
            "id": call,
            "type": "custom",
            "custom": {"name": item.name or "custom", "input": item.input or ""},
        }
    name = item.name or item.type.removesuffix("_call")
    arguments = text_of(item.action if item.type == "local_shell_call" else item.arguments)
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


def texts_of(content: str | list[Content] | None) -> list[str]:
    """Return the pieces of text in a message or in reasoning."""
    if isinstance(content, str):
        return [content] if content else []
    return [text for part in content or [] if (text := part.text or part.refusal)]


def content_of(content: str | list[Content] | None) -> str | list[Fields]:
    """Return a message's content as chat messages have it: text and pictures."""
    if not isinstance(content, list):
        return content or ""
    parts: list[Fields] = []
    for part in content:
        if part.image_url:
            parts.append({"type": "image_url", "image_url": {"url": part.image_url}})
        elif text := part.text or part.refusal:
            parts.append({"type": "text", "text": text})
    return parts


def output_of(item: Item) -> str | list[Fields]:
    """Return what a tool answered: text, parts, or (in older rollouts) an object around it."""
    raw = bytes(item.tools) or bytes(item.output)
    match raw[:1]:
        case b"[" if not bytes(item.tools):
            return content_of(read_json(raw, list[Content]))
        case b"{":
            output = read_json(raw, _Output)
            return output.content if isinstance(output.content, str) else raw.decode()
        case _:
            return text_of(Raw(raw))
