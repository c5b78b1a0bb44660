"""Sizes what stands before the messages: the system prompt and the tools.

Neither is in the recorded sessions, so these figures are the providers' published ones; what they miss ends up in the
calibration's hidden part, which the first reported usage settles.
"""

from typing import Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from lowwater.ports import Tokenizer

T = TypeVar("T")

CLAUDE_TOOL_PROMPT = 346
"""The instructions for tool use that Anthropic adds once to a request with tools."""
TOOLS_END = 12
TOOL_START = 7
PROPERTIES_START = 3
PROPERTY = 3
CHOICE = 3
"""OpenAI's arithmetic for tools, which its models are shown as declarations rather than as JSON: 12 once, 7 for each
tool, 3 where it takes arguments, 3 for each argument, 3 for each value it is limited to but the first."""
BLOCK = 4
"""Around the system prompt, or one block of it."""


class _Block(Struct):
    type: str = ""
    text: str = ""


class _Schema(Struct):
    type: str | list[str] = ""
    description: str = ""
    enum: list[Raw] = []
    properties: "dict[str, _Schema]" = {}
    items: "_Schema | bool | None" = None


class _Function(Struct):
    name: str
    description: str = ""
    parameters: _Schema | None = None


class _Tool(Struct):
    function: _Function


class _Flat(_Function, kw_only=True):
    type: Literal["function"]


def count_preamble(system: bytes, tools: bytes, tokenizer: Tokenizer) -> int:
    """Return how many tokens system prompt and tools are, given as JSON bytes, empty where there are none.

    Functions of OpenAI's formats count by OpenAI's arithmetic, every other tool by its JSON text. Bytes of an unexpected
    shape count as the text they are.
    """
    return _count_system(system, tokenizer) + _count_tools(tools, tokenizer)


def _count_system(system: bytes, tokenizer: Tokenizer) -> int:
    blocks = _blocks(system)
    return sum(BLOCK + tokenizer.count(text) for text in blocks if text)


def _blocks(system: bytes) -> list[str]:
    """Return the texts of a system prompt: a string, or a list of blocks of which the unknown ones are JSON."""
    if not system:
        return []
    try:
        match msgspec.json.decode(system, type=str | list[Raw] | None):
            case None:
                return []
            case str() as text:
                return [text]
            case blocks:
                return [_text(bytes(block)) for block in blocks]
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return [system.decode("utf-8", "replace")]


def _text(block: bytes) -> str:
    try:
        known = msgspec.json.decode(block, type=_Block)
    except msgspec.MsgspecError:
        return block.decode()
    return known.text if known.type == "text" else block.decode()


def _count_tools(tools: bytes, tokenizer: Tokenizer) -> int:
    if not tools:
        return 0
    try:
        listed = msgspec.json.decode(tools, type=list[Raw] | None) or []
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return tokenizer.count(tools.decode("utf-8", "replace"))
    functions = [_function(bytes(tool)) for tool in listed]
    total = 0
    for tool, function in zip(listed, functions, strict=True):
        if function is not None:
            total += _count_function(function, tokenizer)
        else:
            total += tokenizer.count(_compact(bytes(tool)))
    if any(function is not None for function in functions):
        total += TOOLS_END
    if any(function is None for function in functions):
        total += CLAUDE_TOOL_PROMPT
    return total


def _function(tool: bytes) -> _Function | None:
    """Return the function a chat or Responses tool declares, or None for another tool or one with an unusual schema."""
    nested = _declared(tool, _Tool)
    return nested.function if nested is not None else _declared(tool, _Flat)


def _declared(tool: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(tool, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _compact(tool: bytes) -> str:
    try:
        return msgspec.json.format(tool, indent=0).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return tool.decode("utf-8", "replace")


def _count_function(function: _Function, tokenizer: Tokenizer) -> int:
    line = tokenizer.count(f"{function.name}:{function.description.removesuffix('.')}")
    return TOOL_START + line + (_count_schema(function.parameters, tokenizer) if function.parameters else 0)


def _count_schema(schema: _Schema, tokenizer: Tokenizer) -> int:
    total = PROPERTIES_START if schema.properties else 0
    for name, value in schema.properties.items():
        kind = value.type if isinstance(value.type, str) else "|".join(value.type)
        total += PROPERTY + tokenizer.count(f"{name}:{kind}:{value.description.removesuffix('.')}")
        total += max(0, len(value.enum) - 1) * CHOICE
        total += sum(tokenizer.count(bytes(choice).decode().strip('"')) for choice in value.enum)
        total += _count_schema(value, tokenizer)
    if isinstance(schema.items, _Schema):
        total += _count_schema(schema.items, tokenizer)
    return total
