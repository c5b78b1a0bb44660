"""OpenAI's cache breakpoints in Responses items: they stand on content of the client, never on the model's own."""

from msgspec import Raw, Struct

from lowwater.wire.openai_chat.marks import BREAK
from lowwater.wire.openai_responses.items import Peek
from lowwater.wire.reading import read_fields, read_json, write_array, write_object

_EXPLICIT = b'{"mode":"explicit"}'
_SPELLED = b'"prompt_cache_breakpoint"'
_PARTS = frozenset({"input_text", "input_image", "input_file"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


class _Part(Struct):
    type: str = ""
    text: str | None = None


def count_blocks(raw: bytes) -> int:
    """Return how many blocks an item is: the parts of its content, or itself."""
    fields, name = read_fields(raw), _field(raw)
    if not name or fields.get(name, b"").lstrip()[:1] != b"[":
        return 1
    return max(1, len(read_json(fields[name], list[Raw])))


def carries_break(raw: bytes) -> bool:
    """Return whether the item has a place for a breakpoint."""
    return break_item(raw) is not raw


def break_item(raw: bytes) -> bytes:
    """Return the item with a breakpoint on its last part that may carry one; one without any stays as it is."""
    name = _field(raw)
    if not name:
        return raw
    fields = read_fields(raw)
    content = _broken(fields.get(name, b"null"))
    return raw if content is None else write_object(fields | {name: content})


def unbreak_item(raw: bytes) -> bytes:
    """Return the item without breakpoints; without any it is the same bytes."""
    name = _field(raw) if _SPELLED in raw else ""
    fields = read_fields(raw) if name else {}
    if fields.get(name, b"").lstrip()[:1] != b"[":
        return raw
    parts = [bytes(part) for part in read_json(fields[name], list[Raw])]
    bare = [_without_break(part) for part in parts]
    return raw if bare == parts else write_object(fields | {name: write_array(bare)})


def _field(raw: bytes) -> str:
    """Return the field whose content may carry a breakpoint; empty if there is none."""
    item = read_json(raw, Peek)
    if item.type == "message":
        return "content" if item.role != "assistant" else ""
    return "output" if item.type in _OUTPUTS else ""


def _broken(content: bytes) -> bytes | None:
    if content.lstrip()[:1] == b'"':
        if not read_json(content, str):
            return None
        return write_array([write_object({"type": b'"input_text"', "text": content, BREAK: _EXPLICIT})])
    if content.lstrip()[:1] != b"[":
        return None
    parts = [bytes(part) for part in read_json(content, list[Raw])]
    for index in range(len(parts) - 1, -1, -1):
        peek = read_json(parts[index], _Part)
        if peek.type in _PARTS and (peek.type != "input_text" or peek.text):
            parts[index] = write_object(read_fields(parts[index]) | {BREAK: _EXPLICIT})
            return write_array(parts)
    return None


def _without_break(part: bytes) -> bytes:
    fields = read_fields(part)
    bare = {name: value for name, value in fields.items() if name != BREAK}
    return part if bare == fields else write_object(bare)
