"""Cache marks on messages: Anthropic's `cache_control` and OpenAI's `prompt_cache_breakpoint`.

Every function works on a copy: it returns new bytes, or the bytes it was given where there is nothing to change.
"""

from collections.abc import Callable, Mapping

from msgspec import Raw, Struct

from lowwater.core.formats.openai_responses import ItemPeek
from lowwater.core.strict_json import read_fields, read_json, write_array, write_json, write_object

_CACHE_CONTROL = "cache_control"
_BREAKPOINT = "prompt_cache_breakpoint"
_EXPLICIT = b'{"mode":"explicit"}'

# Anthropic refuses `cache_control` on thinking blocks and on empty text.
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})

# OpenAI accepts breakpoints on the model's input only, not on what the assistant said.
_BREAKABLE_ROLES = frozenset({b'"system"', b'"developer"', b'"user"', b'"tool"'})
_BREAKABLE_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


class _BreakableParts(Struct, frozen=True, kw_only=True):
    """The types of content parts that may carry a breakpoint; text only if it is not empty."""

    text: str
    others: frozenset[str]


_CHAT_PARTS = _BreakableParts(text="text", others=frozenset({"image_url", "file", "input_audio"}))
_RESPONSES_PARTS = _BreakableParts(text="input_text", others=frozenset({"input_image", "input_file"}))


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _ChatPart(Struct):
    type: str = ""
    text: str = ""


class _Tool(Struct):
    defer_loading: bool | None = None


class _Content(Struct):
    content: str | list[Raw] | None = None
    tool_calls: list[Raw] | None = None


# Anthropic: `cache_control`


def count_blocks(raw: bytes) -> int:
    """Return how many content blocks a message has; in the chat format each tool call is a block too.

    Anthropic looks only so many blocks back from a mark for an earlier cache entry.
    """
    peek = read_json(raw, _Content)
    own = len(peek.content) if isinstance(peek.content, list) else int(bool(peek.content))
    return own + len(peek.tool_calls or ())


def carries_mark(raw: bytes) -> bool:
    """Return whether the message has a block that can carry a mark."""
    return mark_content(read_fields(raw).get("content", b"null")) is not None


def mark_message(raw: bytes, ttl: str = "5m") -> bytes:
    """Return the message with a mark on its last block that can carry one, or unchanged if none can."""
    fields = read_fields(raw)
    marked = mark_content(fields.get("content", b"null"), ttl)
    return raw if marked is None else write_object(fields | {"content": marked})


def mark_content(content: bytes, ttl: str = "5m") -> bytes | None:
    """Return content or a system prompt with a mark on its last block that can carry one; None if none can."""
    if content.lstrip()[:1] == b'"':
        if not read_json(content, str).strip():
            return None
        block = {"type": b'"text"', "text": content, _CACHE_CONTROL: _cache_control(ttl)}
        return write_array([write_object(block)])
    if content.lstrip()[:1] != b"[":
        return None
    blocks = [bytes(block) for block in read_json(content, list[Raw])]
    for index in range(len(blocks) - 1, -1, -1):
        peek = read_json(blocks[index], _Part)
        if peek.type not in _UNMARKABLE and (peek.type != "text" or peek.text):
            blocks[index] = write_object(read_fields(blocks[index]) | {_CACHE_CONTROL: _cache_control(ttl)})
            return write_array(blocks)
    return None


def mark_tools(tools: bytes, ttl: str = "5m") -> bytes | None:
    """Return the tools with a mark on the last one that is not loaded on demand; None if there is none.

    Anthropic refuses a mark on a tool with `defer_loading`, which is not part of the prompt's prefix.
    """
    if tools.lstrip()[:1] != b"[":
        return None
    definitions = [bytes(tool) for tool in read_json(tools, list[Raw])]
    for index in range(len(definitions) - 1, -1, -1):
        if not read_json(definitions[index], _Tool).defer_loading:
            fields = read_fields(definitions[index])
            definitions[index] = write_object(fields | {_CACHE_CONTROL: _cache_control(ttl)})
            return write_array(definitions)
    return None


def unmark_message(raw: bytes) -> bytes:
    """Return the message without its marks, including those inside tool results."""
    if not _mentions(raw, _CACHE_CONTROL):
        return raw
    fields = read_fields(raw)
    bare = {name: value for name, value in fields.items() if name != _CACHE_CONTROL}
    if "content" in bare:
        bare["content"] = unmark_content(bare["content"])
    return raw if bare == fields else write_object(bare)


def unmark_content(content: bytes) -> bytes:
    """Return content, a system prompt or tools without marks."""
    if not _mentions(content, _CACHE_CONTROL) or content.lstrip()[:1] != b"[":
        return content
    blocks = [bytes(block) for block in read_json(content, list[Raw])]
    bare = [unmark_message(block) for block in blocks]
    return content if bare == blocks else write_array(bare)


def _cache_control(ttl: str) -> bytes:
    # Five minutes are the provider's default and are not spelled out.
    return write_json({"type": "ephemeral", "ttl": ttl} if ttl != "5m" else {"type": "ephemeral"})


# `cache_control` in the chat format, as routers such as OpenRouter accept it


def mark_chat_message(raw: bytes, ttl: str = "5m", *, on_tools: bool = True) -> bytes:
    """Return the chat message with a mark on its last part, or unchanged if that cannot carry one.

    Only text parts are marked, and a plain string becomes one: a router hangs on a mark on a tool message itself and
    ignores it on other messages. `on_tools` says whether a tool message may carry one, which differs by router.
    """
    fields = read_fields(raw)
    marked = _marked_chat_content(fields, ttl, on_tools=on_tools)
    return raw if marked is None else write_object(fields | {"content": marked})


def carries_chat_mark(raw: bytes, *, on_tools: bool = True) -> bool:
    """Return whether the chat message ends with a text that can carry a mark."""
    return _marked_chat_content(read_fields(raw), "5m", on_tools=on_tools) is not None


def _marked_chat_content(fields: Mapping[str, bytes], ttl: str, *, on_tools: bool) -> bytes | None:
    content = fields.get("content", b"null")
    if fields.get("role") == b'"tool"' and not on_tools:
        return None
    if content.lstrip()[:1] == b"[":
        parts = read_json(content, list[_ChatPart])
        if not parts or parts[-1].type != "text" or not parts[-1].text.strip():
            return None
    return mark_content(content, ttl)


# OpenAI chat: breakpoints


def carries_break(raw: bytes) -> bool:
    """Return whether the chat message has a part that can carry a breakpoint."""
    return _broken_chat_content(read_fields(raw)) is not None


def break_message(raw: bytes) -> bytes:
    """Return the chat message with a breakpoint on its last part that can carry one, or unchanged if none can."""
    fields = read_fields(raw)
    content = _broken_chat_content(fields)
    return raw if content is None else write_object(fields | {"content": content})


def unbreak_message(raw: bytes) -> bytes:
    """Return the chat message without breakpoints."""
    return _without_breakpoints(raw, lambda _: "content")


def _broken_chat_content(fields: Mapping[str, bytes]) -> bytes | None:
    if fields.get("role") not in _BREAKABLE_ROLES:
        return None
    return _with_breakpoint(fields.get("content", b"null"), _CHAT_PARTS)


# OpenAI Responses: breakpoints


def count_item_blocks(raw: bytes) -> int:
    """Return how many blocks an item counts as: the parts of its content, or one."""
    fields, name = read_fields(raw), _breakable_field(raw)
    if not name or fields.get(name, b"").lstrip()[:1] != b"[":
        return 1
    return max(1, len(read_json(fields[name], list[Raw])))


def carries_item_break(raw: bytes) -> bool:
    """Return whether the item has a part that can carry a breakpoint."""
    return break_item(raw) is not raw


def break_item(raw: bytes) -> bytes:
    """Return the item with a breakpoint on its last part that can carry one, or unchanged if none can."""
    name = _breakable_field(raw)
    if not name:
        return raw
    fields = read_fields(raw)
    content = _with_breakpoint(fields.get(name, b"null"), _RESPONSES_PARTS)
    return raw if content is None else write_object(fields | {name: content})


def unbreak_item(raw: bytes) -> bytes:
    """Return the item without breakpoints."""
    return _without_breakpoints(raw, _breakable_field)


def _breakable_field(raw: bytes) -> str:
    """Return the name of the field whose parts may carry a breakpoint; empty if the item has none."""
    item = read_json(raw, ItemPeek)
    if item.type == "message":
        return "content" if item.role != "assistant" else ""
    return "output" if item.type in _BREAKABLE_OUTPUTS else ""


# Both OpenAI formats


def _with_breakpoint(content: bytes, breakable: _BreakableParts) -> bytes | None:
    """Return the content with a breakpoint on its last part that can carry one; None if none can."""
    if content.lstrip()[:1] == b'"':
        if not read_json(content, str):
            return None
        kind = f'"{breakable.text}"'.encode()
        return write_array([write_object({"type": kind, "text": content, _BREAKPOINT: _EXPLICIT})])
    if content.lstrip()[:1] != b"[":
        return None
    parts = [bytes(part) for part in read_json(content, list[Raw])]
    for index in range(len(parts) - 1, -1, -1):
        peek = read_json(parts[index], _Part)
        if peek.type in breakable.others or (peek.type == breakable.text and peek.text):
            parts[index] = write_object(read_fields(parts[index]) | {_BREAKPOINT: _EXPLICIT})
            return write_array(parts)
    return None


def _without_breakpoints(raw: bytes, field_of: Callable[[bytes], str]) -> bytes:
    """Return a message or item without breakpoints in the parts of the field that `field_of` names."""
    name = field_of(raw) if _mentions(raw, _BREAKPOINT) else ""
    fields = read_fields(raw) if name else {}
    if fields.get(name, b"").lstrip()[:1] != b"[":
        return raw
    parts = [bytes(part) for part in read_json(fields[name], list[Raw])]
    bare = [_without_breakpoint(part) for part in parts]
    return raw if bare == parts else write_object(fields | {name: write_array(bare)})


def _without_breakpoint(part: bytes) -> bytes:
    fields = read_fields(part)
    bare = {name: value for name, value in fields.items() if name != _BREAKPOINT}
    return part if bare == fields else write_object(bare)


def _mentions(raw: bytes, field: str) -> bool:
    """Return whether the field's name occurs in the bytes at all, which is cheaper than parsing them."""
    return b'"%b"' % field.encode() in raw
