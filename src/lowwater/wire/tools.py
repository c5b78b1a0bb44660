"""Tool definitions from one format to the other."""

from msgspec import Raw

from lowwater.errors import BadInput
from lowwater.values.message import Format
from lowwater.wire.reading import read_fields, read_json, write_array, write_object

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
    change = _as_chat if format == "openai_chat" else _as_anthropic
    changed = [change(raw) for raw in raws]
    return tools if changed == raws else write_array([raw for raw in changed if raw])


def _as_chat(raw: bytes) -> bytes:
    fields = read_fields(raw)
    if "function" in fields or "custom" in fields:
        return raw
    if "input_schema" not in fields:
        return b""
    function: dict[str, bytes] = {name: fields[name] for name in ("name", "description") if name in fields}
    function["parameters"] = fields["input_schema"]
    return write_object({"type": b'"function"', "function": write_object(function)})


def _as_anthropic(raw: bytes) -> bytes:
    fields = read_fields(raw)
    if "function" not in fields:
        return b"" if "custom" in fields else raw
    function = read_fields(fields["function"])
    tool: dict[str, bytes] = {name: function[name] for name in ("name", "description") if name in function}
    tool["input_schema"] = function.get("parameters", _NO_ARGUMENTS)
    return write_object(tool)
