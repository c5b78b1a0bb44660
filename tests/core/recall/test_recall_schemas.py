"""The two tools a model recalls with are declared as providers want them, in the same bytes every time."""

import json

import jsonschema
import pytest

from lowwater.core.ledger import Ledger
from lowwater.core.tools import offers_recall
from lowwater.testing.legality import refusal_of
from lowwater.testing.views import Script
from tests.core.recall.recall_parts import tools_for


@pytest.mark.parametrize("example", [{"query": "INV-4711"}, {"query": "x", "limit": 20}])
def test_what_search_takes_is_a_valid_schema(example) -> None:
    schema = tools_for(Ledger()).anthropic[0]["input_schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(example, schema)
    for wrong in ({}, {"query": 3}, {"query": "x", "limit": 0}, {"query": "x", "more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.parametrize(
    "more", [{}, {"around": "x"}, {"lines": [1, 200]}, {"characters": [1, 9]}], ids="".join
)
def test_what_expand_takes_is_a_valid_schema(more) -> None:
    schema = tools_for(Ledger()).openai[1]["function"]["parameters"]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"handle": "lw:412", **more}, schema)
    for wrong in ({}, {"handle": 412}, {"handle": "lw:1", "lines": [1]}, {"handle": "lw:1", "lines": [0, 2]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_providers_take_the_tools_and_a_conversation_that_uses_them(format) -> None:
    script = Script("openai_chat" if format == "openai_chat" else "anthropic")
    script.user("Hi.").calls("lowwater_search", {"query": "x"}).calls("lowwater_expand", {"handle": "lw:1"})
    messages = [json.loads(message.wire.raw) for message in script.messages() if message.wire]
    tools = tools_for(Ledger())
    body = {"messages": messages, "max_tokens": 100}
    if format == "anthropic":
        assert (
            refusal_of({"model": "claude-sonnet-4-5", "tools": tools.anthropic, **body}, "anthropic") is None
        )
    else:
        assert refusal_of({"model": "gpt-4o", "tools": tools.openai, **body}, "openai_chat") is None


def test_the_bytes_are_the_same_every_time_and_nobody_can_change_them() -> None:
    tools = tools_for(Ledger())
    before = json.dumps([tools.openai, tools.anthropic])
    tools.openai[0]["function"]["parameters"]["properties"].clear()
    tools.anthropic.clear()
    assert json.dumps([tools.openai, tools.anthropic]) == before
    assert json.dumps([tools_for(Ledger()).openai, tools_for(Ledger()).anthropic]) == before


def test_a_request_with_the_tools_offers_recall_in_either_form() -> None:
    tools = tools_for(Ledger())
    others = [{"name": "terminal", "input_schema": {"type": "object"}}]
    assert offers_recall(json.dumps([*others, *tools.anthropic]).encode())
    assert offers_recall(json.dumps([*others, *tools.openai]).encode())
    assert offers_recall(b'[{"name": "mcp__lowwater__lowwater_expand"}]')
    assert not offers_recall(json.dumps(others).encode())


@pytest.mark.parametrize(
    "tools",
    [
        b"",
        b"null",
        b'"lowwater_expand"',
        b'{"name": "lowwater_expand"}',
        b'["lowwater_expand"',
        b'["lowwater_expand", null, 1, {"name": 3}]',
        b'[{"function": ["lowwater_expand"]}]',
        b'[{"name": "terminal", "description": "not lowwater_expand"}]',
        b'["\xff", "lowwater_expand"]',
        b"[" * 9_999 + b'"lowwater_expand"',
    ],
    ids=repr,
)
def test_a_request_with_anything_else_for_tools_offers_none(tools) -> None:
    assert not offers_recall(tools)


def test_it_owns_its_names_and_no_others() -> None:
    tools = tools_for(Ledger())
    assert [tool["name"] for tool in tools.anthropic] == [
        "lowwater_search",
        "lowwater_expand",
        "lowwater_pin",
    ]
    assert tools.owns("lowwater_search")
    assert tools.owns("lowwater_expand")
    assert not tools.owns("terminal")
