"""OpenAI's cache breakpoints on the parts of a content, as both of its formats spell them."""

from collections.abc import Callable

from msgspec import Raw, Struct

from lowwater.wire.reading import read_fields, read_json, write_array, write_object

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
