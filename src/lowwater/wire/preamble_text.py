"""System prompt and tools as a person reads them."""

import msgspec
from msgspec import Struct


class _Block(Struct, frozen=True, kw_only=True):
    text: str = ""


class _Named(Struct, frozen=True, kw_only=True):
    name: str = ""


class _Tool(Struct, frozen=True, kw_only=True):
    name: str = ""
    type: str = ""
    function: _Named = _Named()


def system_text(system: bytes) -> str:
    """Return the text of a system prompt given as JSON, a string or blocks; of any other shape as it is."""
    if not system:
        return ""
    try:
        said = msgspec.json.decode(system, type=str | list[_Block] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return system.decode(errors="replace")
    if isinstance(said, list):
        return "\n\n".join(block.text for block in said if block.text)
    return said or ""


def tool_names(tools: bytes) -> tuple[str, ...]:
    """Return the names of tools given as JSON, in order; of those without one their type; none of any other shape."""
    if not tools:
        return ()
    try:
        known = msgspec.json.decode(tools, type=list[_Tool] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
    return tuple(tool.function.name or tool.name or tool.type for tool in known or ())
