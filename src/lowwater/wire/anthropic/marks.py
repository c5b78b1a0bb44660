"""Cache marks in Anthropic's form: put on a copy of the bytes, taken off again."""

from msgspec import Raw, Struct

from lowwater.wire.reading import read_fields, read_json, write_array, write_json, write_object

MARK = "cache_control"
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
_SPELLED = b'"cache_control"'


class _Block(Struct):
    type: str = ""
    text: str | None = None


class _Tool(Struct):
    defer_loading: bool | None = None


class _Content(Struct):
    content: str | list[Raw] | None = None
    tool_calls: list[Raw] | None = None


def count_blocks(raw: bytes) -> int:
    """Return how many content blocks a message is to the lookback; in the chat format its calls are blocks too."""
    peek = read_json(raw, _Content)
    own = len(peek.content) if isinstance(peek.content, list) else int(bool(peek.content))
    return own + len(peek.tool_calls or ())


def carries_mark(raw: bytes) -> bool:
    """Return whether the message has a block for a mark."""
    return mark_content(read_fields(raw).get("content", b"null")) is not None


def mark_message(raw: bytes, ttl: str = "5m") -> bytes:
    """Return the message with a mark on its last block that may carry one; a message without any stays as it is."""
    fields = read_fields(raw)
    marked = mark_content(fields.get("content", b"null"), ttl)
    return raw if marked is None else write_object(fields | {"content": marked})


def mark_content(content: bytes, ttl: str = "5m") -> bytes | None:
    """Return content, a system prompt or tools with a mark at their end; None where there is no place for one."""
    if content.lstrip()[:1] == b'"':
        if not read_json(content, str).strip():
            return None
        return write_array([write_object({"type": b'"text"', "text": content, MARK: mark(ttl)})])
    if content.lstrip()[:1] != b"[":
        return None
    blocks = [bytes(block) for block in read_json(content, list[Raw])]
    for index in range(len(blocks) - 1, -1, -1):
        peek = read_json(blocks[index], _Block)
        if peek.type not in _UNMARKABLE and (peek.type != "text" or peek.text):
            blocks[index] = write_object(read_fields(blocks[index]) | {MARK: mark(ttl)})
            return write_array(blocks)
    return None


def mark_tools(tools: bytes, ttl: str = "5m") -> bytes | None:
    """Return the tools with a mark on the last one that is loaded at once; None if there is none."""
    if tools.lstrip()[:1] != b"[":
        return None
    offered = [bytes(tool) for tool in read_json(tools, list[Raw])]
    for index in range(len(offered) - 1, -1, -1):
        if not read_json(offered[index], _Tool).defer_loading:
            offered[index] = write_object(read_fields(offered[index]) | {MARK: mark(ttl)})
            return write_array(offered)
    return None


def unmark_message(raw: bytes) -> bytes:
    """Return the message without its cache marks, those inside tool results too; without any it is the same bytes."""
    if _SPELLED not in raw:
        return raw
    fields = read_fields(raw)
    bare = {name: value for name, value in fields.items() if name != MARK}
    if "content" in bare:
        bare["content"] = unmark_content(bare["content"])
    return raw if bare == fields else write_object(bare)


def unmark_content(content: bytes) -> bytes:
    """Return content, a system prompt or tools without cache marks; without any it is the same bytes."""
    if _SPELLED not in content or content.lstrip()[:1] != b"[":
        return content
    blocks = [bytes(block) for block in read_json(content, list[Raw])]
    bare = [unmark_message(block) for block in blocks]
    return content if bare == blocks else write_array(bare)


def mark(ttl: str) -> bytes:
    """Return the mark itself; five minutes are the provider's default and not spelled out."""
    return write_json({"type": "ephemeral", "ttl": ttl} if ttl != "5m" else {"type": "ephemeral"})
