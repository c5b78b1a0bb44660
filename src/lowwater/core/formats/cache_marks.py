"""Cache marks and breakpoints in each provider's form: put on a copy of the bytes, taken off again."""

from collections.abc import Callable, Mapping

from msgspec import Raw, Struct

from lowwater.core.formats.openai_responses import Peek
from lowwater.core.strict_json import read_fields, read_json, write_array, write_json, write_object

BREAK = "prompt_cache_breakpoint"
SPELLED = b'"prompt_cache_breakpoint"'
_EXPLICIT = b'{"mode":"explicit"}'


class Parts(Struct, frozen=True, kw_only=True):
    """What a format calls the parts that may carry a breakpoint."""

    text: str
    others: frozenset[str]


class _Part(Struct):
    type: str = ""
    text: str | None = None


def broken(content: bytes, parts: Parts) -> bytes | None:
    """Return a content with a breakpoint on its last part that may carry one; None if there is none."""
    if content.lstrip()[:1] == b'"':
        if not read_json(content, str):
            return None
        kind = f'"{parts.text}"'.encode()
        return write_array([write_object({"type": kind, "text": content, BREAK: _EXPLICIT})])
    if content.lstrip()[:1] != b"[":
        return None
    raws = [bytes(part) for part in read_json(content, list[Raw])]
    for index in range(len(raws) - 1, -1, -1):
        peek = read_json(raws[index], _Part)
        if peek.type in parts.others or (peek.type == parts.text and peek.text):
            raws[index] = write_object(read_fields(raws[index]) | {BREAK: _EXPLICIT})
            return write_array(raws)
    return None


def unbroken(raw: bytes, field_of: Callable[[bytes], str]) -> bytes:
    """Return a message or item without breakpoints in the field that may carry them; without any it is the same bytes."""
    name = field_of(raw) if SPELLED in raw else ""
    fields = read_fields(raw) if name else {}
    if fields.get(name, b"").lstrip()[:1] != b"[":
        return raw
    parts = [bytes(part) for part in read_json(fields[name], list[Raw])]
    bare = [_without_break(part) for part in parts]
    return raw if bare == parts else write_object(fields | {name: write_array(bare)})


def _without_break(part: bytes) -> bytes:
    fields = read_fields(part)
    bare = {name: value for name, value in fields.items() if name != BREAK}
    return part if bare == fields else write_object(bare)


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


class _ChatPart(Struct):
    type: str = ""
    text: str = ""


_BREAKABLE = frozenset({b'"system"', b'"developer"', b'"user"', b'"tool"'})
_PARTS = Parts(text="text", others=frozenset({"image_url", "file", "input_audio"}))


def mark_chat_message(raw: bytes, ttl: str = "5m", *, on_tools: bool = True) -> bytes:
    """Return the message with a mark on its last part; one that cannot carry any stays as it is.

    Marks stand on text parts only, and a text becomes such a part: a router hangs on a mark on a tool message itself, and
    ignores it on others. `on_tools` says whether a tool message may carry one (`values.routers`).
    """
    fields = read_fields(raw)
    marked = _marked(fields, ttl, on_tools=on_tools)
    return raw if marked is None else write_object(fields | {"content": marked})


def chat_carries_mark(raw: bytes, *, on_tools: bool = True) -> bool:
    """Return whether the message ends with a text that can carry a mark."""
    return _marked(read_fields(raw), "5m", on_tools=on_tools) is not None


def _marked(fields: Mapping[str, bytes], ttl: str, *, on_tools: bool) -> bytes | None:
    content = fields.get("content", b"null")
    if fields.get("role") == b'"tool"' and not on_tools:
        return None
    if content.lstrip()[:1] == b"[":
        parts = read_json(content, list[_ChatPart])
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


_RESPONSES_PARTS = Parts(text="input_text", others=frozenset({"input_image", "input_file"}))
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def count_responses_blocks(raw: bytes) -> int:
    """Return how many blocks an item is: the parts of its content, or itself."""
    fields, name = read_fields(raw), _field(raw)
    if not name or fields.get(name, b"").lstrip()[:1] != b"[":
        return 1
    return max(1, len(read_json(fields[name], list[Raw])))


def responses_carries_break(raw: bytes) -> bool:
    """Return whether the item has a place for a breakpoint."""
    return break_item(raw) is not raw


def break_item(raw: bytes) -> bytes:
    """Return the item with a breakpoint on its last part that may carry one; one without any stays as it is."""
    name = _field(raw)
    if not name:
        return raw
    fields = read_fields(raw)
    content = broken(fields.get(name, b"null"), _RESPONSES_PARTS)
    return raw if content is None else write_object(fields | {name: content})


def unbreak_item(raw: bytes) -> bytes:
    """Return the item without breakpoints; without any it is the same bytes."""
    return unbroken(raw, _field)


def _field(raw: bytes) -> str:
    """Return the field whose content may carry a breakpoint; empty if there is none."""
    item = read_json(raw, Peek)
    if item.type == "message":
        return "content" if item.role != "assistant" else ""
    return "output" if item.type in _OUTPUTS else ""
