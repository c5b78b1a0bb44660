"""Cache marks in the chat format: Anthropic's (through OpenRouter, Bedrock proxies), and OpenAI's own breakpoints.

A breakpoint stands on a content part: the field and its parts are those of openai-python 3.49.0. Its types would let one
stand on an assistant's text too; OpenAI's guide as others read it does not (LangChain4j, brainlid/langchain #653), so none
is put there. They also know a lifetime of 12h, which the guide sells on the Responses API only: none is spelled out.
"""

from lowwater.wire.anthropic.marks import MARK, mark, mark_content, unmark_message
from lowwater.wire.breakpoints import Parts, broken, unbroken
from lowwater.wire.reading import read_fields, write_object

__all__ = [
    "break_message",
    "carries_break",
    "carries_mark",
    "mark_message",
    "unbreak_message",
    "unmark_message",
]

_BREAKABLE = frozenset({b'"system"', b'"developer"', b'"user"', b'"tool"'})
_PARTS = Parts(text="text", others=frozenset({"image_url", "file", "input_audio"}))


def mark_message(raw: bytes, ttl: str = "5m") -> bytes:
    """Return the message with a mark: text becomes a block that carries it.

    A tool message and one without content carry it themselves, for the provider's gateway to put where it belongs.
    """
    fields = read_fields(raw)
    is_tool = fields.get("role") == b'"tool"'
    marked = None if is_tool else mark_content(fields.get("content", b"null"), ttl)
    if marked is None:
        return write_object(fields | {MARK: mark(ttl)})
    return write_object(fields | {"content": marked})


def carries_mark(raw: bytes) -> bool:
    """Return whether a mark on the message is found: routers look at text parts, and not at those of tools."""
    fields = read_fields(raw)
    return fields.get("role") != b'"tool"' and mark_content(fields.get("content", b"null"), "5m") is not None


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
