"""Responses rules about the form of a request: required fields, types of items and of their content, names."""

from collections.abc import Iterator
from typing import Any

from lowwater.testing.provider.openai.body import invalid, wrong_type
from lowwater.testing.provider.responses_api.body import CALLS, OUTPUTS, TYPES, items_of, kind_of
from lowwater.testing.provider.rule import Incoming, Json, Violation

ROLES = ("assistant", "system", "developer", "user")
SAID = ("input_text", "input_image", "input_file")
ANSWERED = ("output_text", "refusal")
_MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
_REQUIRED = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "reasoning": ("id",),
    "item_reference": ("id",),
    "compaction": ("encrypted_content",),
}


def parameters_of_chat(incoming: Incoming) -> Iterator[Violation]:
    """Parameters of the chat format have other names here."""
    for old, new in _MOVED.items():
        if old in incoming.body:
            yield invalid(
                f"Unsupported parameter: '{old}'. In the Responses API, this parameter has moved to '{new}'.",
                old,
                "unsupported_parameter",
            )


def input_given(incoming: Incoming) -> Iterator[Violation]:
    """There is something to answer, or something to go on with."""
    body = incoming.body
    sent = body.get("input")
    if sent is None and not (body.get("previous_response_id") or body.get("conversation")):
        yield invalid("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    elif not isinstance(sent, str | list | None):
        yield wrong_type("input", "one of a string or array of input items", sent)


def item_shape(incoming: Incoming) -> Iterator[Violation]:
    """An item is an object of a known type with what that type requires."""
    listed: list[Any] = list(items_of(incoming.body))
    for at, item in enumerate(listed):
        where = f"input[{at}]"
        if not isinstance(item, dict):
            yield wrong_type(where, "an input item", item)
            return
        kind = kind_of(item)
        if kind not in TYPES:
            yield _not_among(kind, TYPES, where)
        required = ("call_id", "output") if kind in OUTPUTS else _REQUIRED.get(kind, ())
        for name in required:
            if item.get(name) is None:
                yield _missing(f"{where}.{name}")
            elif name != "output" and not isinstance(item[name], str):
                yield wrong_type(f"{where}.{name}", "a string", item[name])
        if kind == "reasoning" and not isinstance(item.get("summary"), list):
            yield _missing(f"{where}.summary")


def known_roles(incoming: Incoming) -> Iterator[Violation]:
    """A message's role is one of four."""
    for at, item in enumerate(items_of(incoming.body)):
        if kind_of(item) == "message" and item.get("role") not in ROLES:
            yield _not_among(item.get("role"), ROLES, f"input[{at}]")


def content_given(incoming: Incoming) -> Iterator[Violation]:
    """A message has content, and an output too: a string or a list of parts."""
    for at, item in enumerate(items_of(incoming.body)):
        kind = kind_of(item)
        name = "content" if kind == "message" else "output" if kind in OUTPUTS else ""
        if not name:
            continue
        if name not in item:
            yield _missing(f"input[{at}].{name}")
        elif not isinstance(item[name], str | list):
            yield wrong_type(f"input[{at}].{name}", "one of an array of objects or string", item[name])


def content_shape(incoming: Incoming) -> Iterator[Violation]:
    """Parts are of the types that their item may hold: the model's own words have another than all others."""
    for at, item in enumerate(items_of(incoming.body)):
        kind = kind_of(item)
        parts = item.get("content") if kind == "message" else item.get("output") if kind in OUTPUTS else None
        allowed = ANSWERED if kind == "message" and item["role"] == "assistant" else SAID
        for index, part in enumerate(parts if isinstance(parts, list) else []):
            where = f"input[{at}].{'content' if kind == 'message' else 'output'}[{index}]"
            if not isinstance(part, dict):
                yield wrong_type(where, "an object", part)
                return
            if part.get("type") not in allowed:
                yield _not_among(part.get("type"), allowed, where)
            name = "refusal" if part.get("type") == "refusal" else "text"
            if part.get("type") in ("input_text", "output_text", "refusal") and not isinstance(
                part.get(name), str
            ):
                yield wrong_type(f"{where}.{name}", "a string", part.get(name))


def instructions_are_text(incoming: Incoming) -> Iterator[Violation]:
    """Instructions are one text."""
    said = incoming.body.get("instructions")
    if not isinstance(said, str | None):
        yield wrong_type("instructions", "a string", said)


def tool_shape(incoming: Incoming) -> Iterator[Violation]:
    """A tool has a type; a function has its name beside it, not inside an object of its own."""
    tools = incoming.body.get("tools")
    if not isinstance(tools, list | None):
        yield wrong_type("tools", "an array of objects", tools)
        return
    for at, tool in enumerate(tools or []):
        if not isinstance(tool, dict):
            yield wrong_type(f"tools[{at}]", "an object", tool)
            return
        if not isinstance(tool.get("type"), str):
            yield _missing(f"tools[{at}].type")
        if tool.get("type") in ("function", "custom") and not isinstance(tool.get("name"), str):
            yield _missing(f"tools[{at}].name")


def names(body: Json) -> Iterator[tuple[str, str]]:
    """Yield the names of functions, offered or called, and where they stand."""
    for at, tool in enumerate(body.get("tools") or []):
        if tool.get("type") in ("function", "custom"):
            yield f"tools[{at}].name", tool["name"]
    for at, item in enumerate(items_of(body)):
        if kind_of(item) in CALLS and isinstance(item.get("name"), str):
            yield f"input[{at}].name", item["name"]


def _missing(where: str) -> Violation:
    return invalid(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")


def _not_among(value: object, allowed: tuple[str, ...], where: str) -> Violation:
    listed = ", ".join(f"'{one}'" for one in allowed[:-1]) + f", and '{allowed[-1]}'"
    return invalid(f"Invalid value: '{value}'. Supported values are: {listed}.", where, "invalid_value")
