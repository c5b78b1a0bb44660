"""Cache marks in the chat format, for providers that take Anthropic's there (OpenRouter, Bedrock proxies)."""

from lowwater.wire.anthropic.marks import MARK, mark, mark_content, unmark_message
from lowwater.wire.reading import read_fields, write_object


def mark_message(raw: bytes, ttl: str = "5m") -> bytes:
    """Return the message with a mark: text becomes a block that carries it, a tool message carries it itself."""
    fields = read_fields(raw)
    content = fields.get("content", b"null")
    marked = None if fields.get("role") == b'"tool"' or content == b"null" else mark_content(content, ttl)
    if marked is None:
        return write_object(fields | {MARK: mark(ttl)})
    fields["content"] = marked
    return write_object(fields)


__all__ = ["mark_message", "unmark_message"]
