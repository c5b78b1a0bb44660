"""Converting message parts and tool definitions from one provider's format to another's."""

import re
from collections.abc import Callable
from types import MappingProxyType

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.messages import AnyPart, Format, Opaque, ResultPart, Text, ToolResult, read_block
from lowwater.core.strict_json import read_fields, read_json, write_array, write_object
from lowwater.errors import BadInput

# Parts


class _Refusal(Struct):
    refusal: str = ""


def as_portable(part: AnyPart) -> AnyPart:
    """Return the part without fields that only its own format has; an unknown block becomes a note that it was left out."""
    if isinstance(part, ToolResult):
        inner = tuple(_portable_content(each) for each in part.parts)
        return replace(part, parts=inner, extra=b"")
    return _portable_content(part) if isinstance(part, Opaque | Text) else replace(part, extra=b"")


def _portable_content(part: ResultPart) -> ResultPart:
    if not isinstance(part, Opaque):
        return replace(part, extra=b"")
    text = _refusal_text(part) if part.block == "refusal" else _compaction_text(part)
    return Text(text=text or f"[{part.block}: left out, it has no form in this provider's format]")


def _refusal_text(part: Opaque) -> str:
    """Return the text of a refusal; empty if it has none."""
    try:
        return read_json(part.body.encode(), _Refusal).refusal
    except BadInput:
        return ""


def _compaction_text(part: Opaque) -> str:
    """Return the readable text of a provider's compaction block, which no other provider accepts as a block."""
    block = read_block(part)
    return "" if block is None else block.content or ""


def split_data_url(url: str) -> tuple[str, str]:
    """Return media type and data of a base64 data URL, or two empty strings for any other."""
    head, comma, data = url.partition(";base64,")
    return (head.removeprefix("data:"), data) if comma and head.startswith("data:") else ("", "")


# Tools

_FUNCTION = b'"function"'
_CUSTOM = b'"custom"'
_OPENAI_TYPES = frozenset(
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
"""Types of the tools that OpenAI hosts or defines itself."""
_ANTHROPIC_TYPE = re.compile(rb'_\d{8}"$')
"""The types of tools that Anthropic hosts or defines itself end in a date, such as `bash_20250124`."""
_NO_ARGUMENTS = b'{"type":"object","properties":{}}'


def tools_as(tools: bytes, format: Format) -> bytes:
    """Return tool definitions in `format`; those already in it stay byte for byte.

    Tools hosted by another provider are left out.
    """
    if not tools:
        return tools
    try:
        raws = [bytes(tool) for tool in read_json(tools, list[Raw])]
    except BadInput:
        return tools
    converted = [_CONVERTERS[format](raw) for raw in raws]
    return tools if converted == raws else write_array([raw for raw in converted if raw])


def _as_chat(raw: bytes) -> bytes:
    fields = read_fields(raw)
    if "function" in fields or "custom" in fields:
        return raw
    if _is_responses_tool(fields, _CUSTOM):
        custom: dict[str, bytes] = {
            name: fields[name] for name in ("name", "description", "format") if name in fields
        }
        return write_object({"type": _CUSTOM, "custom": write_object(custom)})
    if "input_schema" not in fields and not _is_responses_tool(fields, _FUNCTION):
        return b""
    names = ("name", "description", "parameters", "strict")
    function: dict[str, bytes] = {name: fields[name] for name in names if name in fields}
    if "input_schema" in fields:
        function["parameters"] = fields["input_schema"]
    return write_object({"type": _FUNCTION, "function": write_object(function)})


def _as_anthropic(raw: bytes) -> bytes:
    fields = read_fields(raw)
    if "function" not in fields and not _is_responses_tool(fields, _FUNCTION):
        is_openai = (
            "custom" in fields or _is_responses_tool(fields, _CUSTOM) or fields.get("type") in _OPENAI_TYPES
        )
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
        return b"" if _ANTHROPIC_TYPE.search(fields.get("type", b"")) else raw
    named = {name: fields[name] for name in ("name", "description") if name in fields}
    return write_object({"type": _FUNCTION} | named | {"parameters": fields["input_schema"]})


def _is_responses_tool(fields: dict[str, bytes], kind: bytes) -> bool:
    """Return whether it is a tool of this type in the Responses format, which has name and type on one level."""
    return fields.get("type") == kind and "name" in fields and "input_schema" not in fields


_CONVERTERS: MappingProxyType[Format, Callable[[bytes], bytes]] = MappingProxyType(
    {"openai_chat": _as_chat, "anthropic": _as_anthropic, "openai_responses": _as_responses}
)
