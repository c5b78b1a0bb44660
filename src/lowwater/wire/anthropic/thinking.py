"""When a thinking budget may be asked for: not in a tool loop whose first answer no longer begins with its thinking."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lowwater.wire.reading import read_json

DISABLED = b'{"type":"disabled"}'
_THINKING = frozenset({"thinking", "redacted_thinking"})


class _Block(Struct):
    type: str = ""


class _Peek(Struct):
    role: str
    content: str | list[_Block]


class _Config(Struct):
    type: str = ""


def thinking_for(config: bytes, messages: Sequence[bytes]) -> bytes:
    """Return the request's `thinking` as it may be sent with these messages.

    A budget (`enabled`) wants the assistant turn that called tools to begin with its thinking. Where a compaction took
    that away and it could not be kept, the provider would refuse the request: thinking is disabled for each call of this tool loop, until
    the user says something. Adaptive thinking has no such rule and stays as it is.
    """
    if read_json(config, _Config).type != "enabled" or _loop_begins_with_thinking(messages):
        return config
    return DISABLED


def _loop_begins_with_thinking(messages: Sequence[bytes]) -> bool:
    """Return whether the answer being worked on begins with thinking, or there is none."""
    opening: tuple[str, ...] = ()
    is_loop = asked = False
    for role, kinds in _turns(messages):
        is_result = "tool_result" in kinds
        if role == "user" and not is_result:
            opening, asked = (), True
        elif role == "assistant" and asked and not opening:
            opening = kinds
        is_loop = role == "user" and is_result
    return not is_loop or not opening or opening[0] in _THINKING


def _turns(messages: Sequence[bytes]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield neighbouring messages of one role as one, by the types of their blocks."""
    role = ""
    kinds: tuple[str, ...] = ()
    for raw in messages:
        peek = read_json(raw, _Peek)
        own = ("text",) if isinstance(peek.content, str) else tuple(block.type for block in peek.content)
        if peek.role == "system":
            continue
        if peek.role == role:
            kinds += own
            continue
        if role:
            yield role, kinds
        role, kinds = peek.role, own
    if role:
        yield role, kinds
