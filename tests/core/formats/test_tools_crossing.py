"""Tools, thinking budgets and refusals between the formats."""

import json
from typing import Any

import pytest

from lowwater.core.formats.anthropic import thinking_for
from lowwater.core.formats.convert import tools_as
from lowwater.core.formats.refusals import context_length_in
from lowwater.core.messages import Format

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CLAUDE = {"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}
CHAT = {
    "type": "function",
    "function": {"name": "read", "description": "Reads a file.", "parameters": SCHEMA},
}
FLAT = {"type": "function", "name": "read", "description": "Reads a file.", "parameters": SCHEMA}
FREE = {"type": "custom", "name": "free"}
SERVER = {"type": "web_search_20260101", "name": "web_search"}


@pytest.mark.parametrize(
    ("tools", "format", "expected"),
    [
        ([CLAUDE], "openai_chat", [CHAT]),
        ([CHAT], "anthropic", [CLAUDE]),
        ([CLAUDE, SERVER], "openai_chat", [CHAT]),
        (
            [{"type": "function", "function": {"name": "now"}}],
            "anthropic",
            [{"name": "now", "input_schema": {"type": "object", "properties": {}}}],
        ),
        ([{**CLAUDE, "cache_control": {"type": "ephemeral"}}], "openai_chat", [CHAT]),
        ([{"type": "custom", "custom": {"name": "free"}}], "anthropic", []),
        ([CHAT, {"type": "custom", "custom": {"name": "free"}}], "openai_responses", [FLAT, FREE]),
        ([CLAUDE, SERVER], "openai_responses", [FLAT]),
        ([FLAT, FREE, {"type": "web_search"}], "anthropic", [CLAUDE]),
        (
            [FLAT, FREE, {"type": "web_search"}],
            "openai_chat",
            [CHAT, {"type": "custom", "custom": {"name": "free"}}],
        ),
        (
            [{"type": "function", "name": "now"}],
            "openai_chat",
            [{"type": "function", "function": {"name": "now"}}],
        ),
    ],
    ids=[
        "to chat",
        "to messages",
        "server tool",
        "no arguments",
        "mark",
        "custom",
        "chat to responses",
        "messages to responses",
        "responses to messages",
        "responses to chat",
        "no arguments, responses",
    ],
)
def test_tools_cross_to_the_other_format(tools: list[Any], format: Format, expected: list[Any]) -> None:
    assert json.loads(tools_as(json.dumps(tools).encode(), format)) == expected


@pytest.mark.parametrize(
    ("tools", "format"),
    [
        ([CLAUDE, SERVER], "anthropic"),
        ([CHAT], "openai_chat"),
        ([FLAT, FREE, {"type": "web_search"}, {"type": "mcp", "server_label": "x"}], "openai_responses"),
        ([], "anthropic"),
    ],
    ids=["messages", "chat", "responses", "none"],
)
def test_tools_of_the_same_format_stay_byte_for_byte(tools: list[Any], format: Format) -> None:
    spelled = json.dumps(tools, indent=3).encode()
    assert tools_as(spelled, format) == spelled
    assert tools_as(b"", format) == b""
    assert tools_as(b'"nonsense"', format) == b'"nonsense"'


USER = {"role": "user", "content": "Go on."}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
CALL = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}
BUDGET = b'{"type":"enabled","budget_tokens":2000}'


@pytest.mark.parametrize(
    ("messages", "allowed"),
    [
        ([USER], True),
        ([USER, {"role": "assistant", "content": [THOUGHT, CALL]}, RESULT], True),
        ([USER, {"role": "assistant", "content": [CALL]}, RESULT], False),
        ([USER, {"role": "assistant", "content": [CALL]}, RESULT, USER], False),
        ([USER, {"role": "assistant", "content": "Done."}, USER], True),
        (
            [
                USER,
                {"role": "assistant", "content": [THOUGHT, CALL]},
                RESULT,
                {"role": "assistant", "content": [CALL]},
                RESULT,
            ],
            True,
        ),
        (
            [
                USER,
                {"role": "assistant", "content": [THOUGHT, CALL]},
                RESULT,
                {"role": "assistant", "content": "Done."},
                USER,
                {"role": "assistant", "content": [CALL]},
                RESULT,
            ],
            False,
        ),
    ],
    ids=["no loop", "opened", "not opened", "joined user", "ended", "opened before", "opened too long ago"],
)
def test_a_budget_is_asked_for_only_where_the_loop_begins_with_thinking(
    messages: list[Any], allowed: bool
) -> None:
    raws = [json.dumps(message).encode() for message in messages]
    assert (thinking_for(BUDGET, raws) == BUDGET) is allowed
    adaptive = b'{"type":"adaptive"}'
    assert thinking_for(adaptive, raws) == adaptive


@pytest.mark.parametrize("text", ["", "overloaded", "maximum context length is unknown", "limit: 5 + 6 > x"])
def test_an_error_without_a_limit_names_none(text: str) -> None:
    assert context_length_in(text) is None
