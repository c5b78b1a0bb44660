"""What parts and tool definitions become when they cross from one provider's format into another's."""

import re
from collections.abc import Callable
from types import MappingProxyType

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.messages import AnyPart, Format, Opaque, ResultPart, Text, ToolResult, read_block
from lowwater.core.strict_json import read_fields, read_json, write_array, write_object
from lowwater.errors import BadInput


class _Refusal(Struct):
    refusal: str = ""


def _refused(part: Opaque) -> str:
    """Return the words of a refusal; nothing if it does not say any."""
    try:
        return read_json(part.body.encode(), _Refusal).refusal
    except BadInput:
        return ""


def _compacted(part: Opaque) -> str:
    """Return what a provider's own compaction block says: another provider cannot read it, but its words can be."""
    block = read_block(part)
    return "" if block is None else block.content or ""


def crossed(part: AnyPart) -> AnyPart:
    """Return the part without what only its own format understands; a block of unknown type becomes a note that says so."""
    if isinstance(part, ToolResult):
        inner = tuple(_crossed_inside(each) for each in part.parts)
        return replace(part, parts=inner, extra=b"")
    return _crossed_inside(part) if isinstance(part, Opaque | Text) else replace(part, extra=b"")


def _crossed_inside(part: ResultPart) -> ResultPart:
    if not isinstance(part, Opaque):
        return replace(part, extra=b"")
    said = _refused(part) if part.block == "refusal" else _compacted(part)
    return Text(text=said or f"[{part.block}: left out, it has no form in this provider's format]")


_FUNCTION = b'"function"'
_CUSTOM = b'"custom"'
_HOSTED = frozenset(
    b'"%b"' % kind
    for kind in (
        b"web_search",
        b"web_search_preview",
        b"file_search",
        b"code_interpreter",
        b"image_generation",
        b"computer",
        b"computer_use_preview",
        b"mcp",
        b"local_shell",
        b"shell",
        b"apply_patch",
        b"tool_search",
        b"namespace",
    )
)
"""Types of tools that OpenAI runs or knows itself."""
_DATED = re.compile(rb'_\d{8}"$')
"""How the types of tools end that Anthropic runs or knows itself."""
_NO_ARGUMENTS = b'{"type":"object","properties":{}}'


def tools_as(tools: bytes, format: Format) -> bytes:
    """Return tools as a request of `format` carries them; those already in its form stay byte for byte.

    Tools that a provider runs itself exist nowhere else and are left out.
    """
    if not tools:
        return tools
    try:
        raws = [bytes(tool) for tool in read_json(tools, list[Raw])]
    except BadInput:
        return tools
    changed = [_CHANGES[format](raw) for raw in raws]
    return tools if changed == raws else write_array([raw for raw in changed if raw])


def _as_chat(raw: bytes) -> bytes:
    fields = read_fields(raw)
    if "function" in fields or "custom" in fields:
        return raw
    if _is_flat(fields, _CUSTOM):
        custom: dict[str, bytes] = {
            name: fields[name] for name in ("name", "description", "format") if name in fields
        }
        return write_object({"type": _CUSTOM, "custom": write_object(custom)})
    if "input_schema" not in fields and not _is_flat(fields, _FUNCTION):
        return b""
    names = ("name", "description", "parameters", "strict")
    function: dict[str, bytes] = {name: fields[name] for name in names if name in fields}
    if "input_schema" in fields:
        function["parameters"] = fields["input_schema"]
    return write_object({"type": _FUNCTION, "function": write_object(function)})


def _as_anthropic(raw: bytes) -> bytes:
    fields = read_fields(raw)
    if "function" not in fields and not _is_flat(fields, _FUNCTION):
        is_openai = "custom" in fields or _is_flat(fields, _CUSTOM) or fields.get("type") in _HOSTED
        return b"" if is_openai else raw
    function = read_fields(fields["function"]) if "function" in fields else fields
    tool: dict[str, bytes] = {name: function[name] for name in ("name", "description") if name in function}
    tool["input_schema"] = function.get("parameters", _NO_ARGUMENTS)
    return write_object(tool)


def _as_responses(raw: bytes) -> bytes:
    fields = read_fields(raw)
    if "function" in fields:
        return write_object({"type": _FUNCTION} | read_fields(fields["function"]))
    if "custom" in fields:
        return write_object({"type": _CUSTOM} | read_fields(fields["custom"]))
    if "input_schema" not in fields:
        return b"" if _DATED.search(fields.get("type", b"")) else raw
    named = {name: fields[name] for name in ("name", "description") if name in fields}
    return write_object({"type": _FUNCTION} | named | {"parameters": fields["input_schema"]})


def _is_flat(fields: dict[str, bytes], kind: bytes) -> bool:
    """Return whether it is a tool in the form of the Responses format, where name and type stand side by side."""
    return fields.get("type") == kind and "name" in fields and "input_schema" not in fields


_CHANGES: MappingProxyType[Format, Callable[[bytes], bytes]] = MappingProxyType(
    {"openai_chat": _as_chat, "anthropic": _as_anthropic, "openai_responses": _as_responses}
)
