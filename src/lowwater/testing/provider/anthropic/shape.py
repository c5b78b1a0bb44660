"""Messages rules about the form of a request: headers, JSON, required fields, types."""

import re
from collections.abc import Iterator, Sequence

from lowwater.testing.provider.anthropic.body import blocks, inner_blocks, invalid
from lowwater.testing.provider.rule import Incoming, Json, Violation

MAX_BYTES = 32 * 1024 * 1024

_EXPECTED = {
    str: "a valid string",
    int: "a valid integer",
    dict: "a valid dictionary",
    list: "a valid list",
    bool: "a valid boolean",
}

_FIELDS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "image": {"source": dict},
    "document": {"source": dict},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
}


def body_size(incoming: Incoming) -> Iterator[Violation]:
    """A request may have 32 MB."""
    if incoming.size > MAX_BYTES:
        yield Violation(status=413, type="request_too_large", message="Request exceeds the maximum size")


def api_key(incoming: Incoming) -> Iterator[Violation]:
    """A request carries a key, in either of two headers."""
    if not (incoming.headers.get("x-api-key") or incoming.headers.get("authorization")):
        yield Violation(status=401, type="authentication_error", message="x-api-key header is required")


def version_header(incoming: Incoming) -> Iterator[Violation]:
    """A request names the version of the API it was written for."""
    if "anthropic-version" not in incoming.headers:
        yield invalid("anthropic-version: header is required")


def readable_json(incoming: Incoming) -> Iterator[Violation]:
    """The body is one JSON object."""
    if incoming.problem:
        yield invalid(f"The request body is not valid JSON: {incoming.problem}")


def required_fields(incoming: Incoming) -> Iterator[Violation]:
    """Model, messages and, unless only a count is asked for, an output limit."""
    yield from _field("", incoming.body, "model", str)
    yield from _field("", incoming.body, "messages", list)
    if not incoming.counting:
        yield from _field("", incoming.body, "max_tokens", int)


def max_tokens_positive(incoming: Incoming) -> Iterator[Violation]:
    """At least one token of output has to be allowed."""
    if not incoming.counting and incoming.body["max_tokens"] < 1:
        yield invalid("max_tokens: Input should be greater than or equal to 1")


def messages_given(incoming: Incoming) -> Iterator[Violation]:
    """There is something to answer."""
    if not incoming.messages:
        yield invalid("messages: at least one message is required")


def message_shape(incoming: Incoming) -> Iterator[Violation]:
    """A message has a role, and content that is a string or a list of typed blocks."""
    for at, message in enumerate(incoming.body["messages"]):
        path = f"messages.{at}"
        if not isinstance(message, dict):
            yield invalid(f"{path}: Input should be a valid dictionary")
            return
        yield from _field(path, message, "role", str)
        content = message.get("content")
        if "content" not in message:
            yield invalid(f"{path}.content: Field required")
        elif isinstance(content, list):
            yield from _typed(f"{path}.content", content)
        elif not isinstance(content, str):
            yield invalid(f"{path}.content: Input should be a valid list")


def block_shape(incoming: Incoming) -> Iterator[Violation]:
    """A block of a known type has the fields of that type; unknown types are let through."""
    for block in blocks(incoming.body):
        yield from _fields(block.path, block.value)
        content = block.value.get("content") if block.type == "tool_result" else None
        if content is not None and not isinstance(content, str | list):
            yield invalid(f"{block.path}.tool_result.content: Input should be a valid list")
        yield from _typed(f"{block.path}.tool_result.content", inner_blocks(block.value))
        for at, inner in enumerate(inner_blocks(block.value)):
            yield from _fields(f"{block.path}.tool_result.content.{at}", inner)


def system_shape(incoming: Incoming) -> Iterator[Violation]:
    """The system prompt is a string or a list of text blocks."""
    system = incoming.body.get("system")
    if isinstance(system, list):
        yield from _typed("system", system)
        for at, block in enumerate(system):
            yield from _fields(f"system.{at}", block)
    elif system is not None and not isinstance(system, str):
        yield invalid("system: Input should be a valid list")


def tool_shape(incoming: Incoming) -> Iterator[Violation]:
    """A tool of the client's own has a name and a schema; one of the provider's may have a name."""
    tools = incoming.body.get("tools")
    if tools is not None and not isinstance(tools, list):
        yield invalid("tools: Input should be a valid list")
        return
    for at, tool in enumerate(tools or []):
        if not isinstance(tool, dict):
            yield invalid(f"tools.{at}: Input should be a valid dictionary")
            return
        custom = tool.get("type", "custom") == "custom"
        if custom or "name" in tool:
            yield from _field(f"tools.{at}.custom", tool, "name", str)
        if custom:
            yield from _field(f"tools.{at}.custom", tool, "input_schema", dict)


def tool_name_pattern(incoming: Incoming) -> Iterator[Violation]:
    """A tool's name has 1 to 128 letters, digits, underscores and hyphens."""
    for at, tool in enumerate(incoming.body.get("tools") or []):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(tool.get("name", "unnamed"))):
            yield invalid(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")


def _typed(path: str, values: Sequence[object]) -> Iterator[Violation]:
    for at, value in enumerate(values):
        if not isinstance(value, dict):
            yield invalid(f"{path}.{at}: Input should be a valid dictionary")
        elif not isinstance(value.get("type"), str):
            yield invalid(f"{path}.{at}.type: Field required")


def _fields(path: str, block: Json) -> Iterator[Violation]:
    for name, kind in _FIELDS.get(block["type"], {}).items():
        yield from _field(f"{path}.{block['type']}", block, name, kind)


def _field(path: str, holder: Json, name: str, kind: type) -> Iterator[Violation]:
    where = f"{path}.{name}".removeprefix(".")
    value = holder.get(name)
    if name not in holder:
        yield invalid(f"{where}: Field required")
    elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        yield invalid(f"{where}: Input should be {_EXPECTED[kind]}")
