"""Reading a Chat Completions request: calls, answers, parts, prompt pieces."""

import re
from collections.abc import Iterator

from lowwater.testing.provider.prompt import BREAKPOINT, Piece
from lowwater.testing.provider.rule import Json, Violation

_KINDS = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    dict: "an object",
    list: "an array",
    type(None): "null",
}

_MARKS = ("prompt_cache_breakpoint", "cache_control")
"""OpenAI's own; Qwen's, and Claude's behind a router."""

_VERSION = re.compile(r"^gpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?")


def version(model: str) -> tuple[int, int] | None:
    """Return major and minor version of a GPT model, else None."""
    found = _VERSION.match(model)
    return (int(found["major"]), int(found["minor"] or 0)) if found else None


def invalid(message: str, param: str | None = None, code: str | None = None) -> Violation:
    """Return the ordinary 400 of this API."""
    return Violation(message=message, param=param, code=code)


def wrong_type(where: str, expected: str, value: object) -> Violation:
    """Return the 400 for a value of another type than expected."""
    got = _KINDS.get(type(value), "something else")
    return invalid(
        f"Invalid type for '{where}': expected {expected}, but got {got} instead.", where, "invalid_type"
    )


def calls_of(message: Json) -> list[Json]:
    """Return the tool calls of a message; only the assistant makes any."""
    return list(message.get("tool_calls") or []) if message["role"] == "assistant" else []


def parts_of(message: Json) -> list[Json]:
    """Return a message's content as parts; a string is one text part, an empty string none."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or [])


def breakpoints(body: Json) -> Iterator[str]:
    """Yield where explicit cache breakpoints stand."""
    for at, message in enumerate(body["messages"]):
        for index, part in enumerate(parts_of(message)):
            if part.get("prompt_cache_breakpoint") is not None:
                yield f"messages[{at}].content[{index}]"


def pieces(body: Json) -> list[Piece]:
    """Return the prompt in the order the model reads it; cache marks are no part of it."""
    found = [
        Piece(section="tools", path=f"tools[{at}]", value=tool)
        for at, tool in enumerate(body.get("tools") or [])
    ]
    for at, message in enumerate(body["messages"]):
        found += message_pieces(message, at)
    return found


def message_pieces(message: Json, at: int) -> list[Piece]:
    """Return the pieces of the message at index `at`: its parts, then its calls."""
    role = f"{message['role']} {message.get('tool_call_id', '')}".strip()
    return [
        Piece(
            section="messages",
            path=f"messages[{at}].{index}",
            role=role,
            value={key: held for key, held in value.items() if key not in _MARKS},
            mark=_mark(value),
        )
        for index, value in enumerate([*parts_of(message), *calls_of(message)])
    ]


def output_limit(body: Json) -> int | None:
    """Return how many tokens of output the request allows, if it says so."""
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return limit if isinstance(limit, int) else None


def _mark(value: Json) -> str:
    if value.get("prompt_cache_breakpoint") is not None:
        return BREAKPOINT
    control = value.get("cache_control")
    return str(control.get("ttl") or "5m") if isinstance(control, dict) else ""
