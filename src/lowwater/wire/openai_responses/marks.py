"""OpenAI's cache breakpoints in Responses items: they stand on content of the client, never on the model's own."""

from msgspec import Raw

from lowwater.wire.breakpoints import Parts, broken, unbroken
from lowwater.wire.openai_responses.items import Peek
from lowwater.wire.reading import read_fields, read_json, write_object

_PARTS = Parts(text="input_text", others=frozenset({"input_image", "input_file"}))
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


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
    content = broken(fields.get(name, b"null"), _PARTS)
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
