"""Cache marks in the chat format: Anthropic's (through OpenRouter, Bedrock proxies), and OpenAI's own breakpoints.

A breakpoint stands on a content part: the field and its parts are those of openai-python 3.49.0. Its types would let one
stand on an assistant's text too; OpenAI's guide as others read it does not (LangChain4j, brainlid/langchain #653), so none
is put there. They also know a lifetime of 12h, which the guide sells on the Responses API only: none is spelled out.
"""

from collections.abc import Mapping

from msgspec import Struct

from lowwater.wire.anthropic.marks import mark_content, unmark_message
from lowwater.wire.breakpoints import Parts, broken, unbroken
from lowwater.wire.reading import read_fields, read_json, write_object

__all__ = [
    "break_message",
    "carries_break",
    "carries_mark",
    "mark_message",
    "unbreak_message",
    "unmark_message",
]


class _Part(Struct):
    type: str = ""
    text: str = ""


_BREAKABLE = frozenset({b'"system"', b'"developer"', b'"user"', b'"tool"'})
_PARTS = Parts(text="text", others=frozenset({"image_url", "file", "input_audio"}))


def mark_message(raw: bytes, ttl: str = "5m", *, on_tools: bool = True) -> bytes:
    """Return the message with a mark on its last part; one that cannot carry any stays as it is.

    Marks stand on text parts only, and a text becomes such a part: a router hangs on a mark on a tool message itself, and
    ignores it on others. `on_tools` says whether a tool message may carry one (`values.routers`).
    """
    fields = read_fields(raw)
    marked = _marked(fields, ttl, on_tools=on_tools)
    return raw if marked is None else write_object(fields | {"content": marked})


def carries_mark(raw: bytes, *, on_tools: bool = True) -> bool:
    """Return whether the message ends with a text that can carry a mark."""
    return _marked(read_fields(raw), "5m", on_tools=on_tools) is not None


def _marked(fields: Mapping[str, bytes], ttl: str, *, on_tools: bool) -> bytes | None:
    content = fields.get("content", b"null")
    if fields.get("role") == b'"tool"' and not on_tools:
        return None
    if content.lstrip()[:1] == b"[":
        parts = read_json(content, list[_Part])
        if not parts or parts[-1].type != "text" or not parts[-1].text.strip():
            return None
    return mark_content(content, ttl)


def carries_break(raw: bytes) -> bool:
    """Return whether the message has a place for a breakpoint."""
    fields = read_fields(raw)
    return fields.get("role") in _BREAKABLE and broken(fields.get("content", b"null"), _PARTS) is not None


def break_message(raw: bytes) -> bytes:
    """Return the message with a breakpoint on its last part that may carry one; one without any stays as it is."""
    fields = read_fields(raw)
    content = broken(fields.get("content", b"null"), _PARTS) if fields.get("role") in _BREAKABLE else None
    return raw if content is None else write_object(fields | {"content": content})


def unbreak_message(raw: bytes) -> bytes:
    """Return the message without breakpoints; without any it is the same bytes."""
    return unbroken(raw, lambda _: "content")
