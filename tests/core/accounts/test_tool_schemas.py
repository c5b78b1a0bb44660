"""What fills a request before its first message: definitions by tool and by MCP server, those never called first."""

import json

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.accounts.tool_schemas import preamble_of, server_of, start_cost
from lowwater.core.api_calls import Usage
from lowwater.core.messages import Message, Text, ToolCall

ANTHROPIC = [
    {"name": "Read", "description": "r" * 400, "input_schema": {}},
    {"name": "mcp__github__create_issue", "description": "g" * 900, "input_schema": {}},
    {"name": "mcp__github__list", "description": "g" * 90, "input_schema": {}},
    {"type": "web_search_20250305", "name": "web_search"},
]
CHAT = [{"type": "function", "function": {"name": "Read", "parameters": {}}}]
CALLS = [
    Message(role="assistant", parts=(ToolCall(id="1", name="Read", arguments="{}"),)),
    Message(
        role="assistant", parts=(Text(text="."), ToolCall(id="2", name="mcp__github__list", arguments="{}"))
    ),
]


def test_tools_that_were_never_called_come_first_and_larger_before_smaller() -> None:
    found = preamble_of(json.dumps(ANTHROPIC).encode(), CALLS, system=70, count=len)
    assert [tool.name for tool in found.tools] == [
        "mcp__github__create_issue",
        "web_search",
        "Read",
        "mcp__github__list",
    ]
    assert [tool.calls for tool in found.tools] == [0, 0, 1, 1]
    assert [tool.name for tool in found.unused] == ["mcp__github__create_issue", "web_search"]
    (server,) = found.servers()
    assert (server.name, server.calls) == ("github", 1)
    assert server.tokens == found.tools[0].tokens + found.tools[3].tokens


def test_what_a_list_takes_beside_its_tools_is_no_tools_own() -> None:
    def with_a_preface(tools: bytes) -> int:
        return 300 + sum(len(json.dumps(tool)) for tool in json.loads(tools))

    found = preamble_of(json.dumps(ANTHROPIC).encode(), CALLS, system=0, count=with_a_preface)
    assert [tool.tokens for tool in found.tools] == [len(json.dumps(ANTHROPIC[at])) for at in (1, 3, 0, 2)]


def test_tools_of_a_chat_request_are_read_too() -> None:
    (tool,) = preamble_of(json.dumps(CHAT).encode(), CALLS, system=0, count=len).tools
    assert (tool.name, tool.calls) == ("Read", 1)


@pytest.mark.parametrize("tools", [b"", b"null", b"{}", b"[1]", b"nonsense"])
def test_what_cannot_be_read_has_no_tools(tools: bytes) -> None:
    assert preamble_of(tools, (), system=5, count=len).tools == ()


@pytest.mark.parametrize(
    ("name", "server"), [("mcp__a_b__do__it", "a_b"), ("Read", ""), ("mcp_x", ""), ("mcp__only", "only")]
)
def test_a_server_is_known_by_the_name_of_its_tools(name: str, server: str) -> None:
    assert server_of(name) == server


def test_the_start_of_a_prompt_costs_its_reads_and_once_its_writing() -> None:
    model = load_registry().find("claude-opus-4-5")
    prices = model.prices
    assert prices is not None
    first, second = Usage(cache_write=10_000), Usage(cache_read=10_000, cache_write=500)
    paid = start_cost(4_000, [first, second], model)
    assert paid == (4_000 * prices.cache_write + 4_000 * prices.cache_read) // 1_000
    assert start_cost(4_000, [first], load_registry().find("nobody-knows-it")) is None
