"""Cache marks in the chat format, for providers that take Anthropic's there (OpenRouter, Bedrock proxies)."""

from lowwater.wire.anthropic.marks import MARK, mark, mark_content, unmark_message
from lowwater.wire.reading import read_fields, write_object

__all__ = ["mark_message", "unmark_message"]


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
