"""What system prompt and tools cost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.tokens.counting import CLAUDE_TOOL_PROMPT, count_preamble
from lowwater.core.tokens.estimate import CharacterTokenizer

TOKENIZER = SplintrTokenizer()

READ = {
    "name": "read_file",
    "description": "Reads a file.",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is."},
            "mode": {"type": "string", "enum": ["text", "bytes"]},
        },
    },
}
CHAT_TOOLS = json.dumps([{"type": "function", "function": READ}]).encode()
CLAUDE_TOOLS = json.dumps(
    [{"name": "read_file", "description": "Reads a file.", "input_schema": READ["parameters"]}]
).encode()


def test_nothing_costs_nothing():
    assert count_preamble(b"", b"", TOKENIZER) == 0
    assert count_preamble(b"null", b"null", TOKENIZER) == 0
    assert count_preamble(b"[]", b"[]", TOKENIZER) == 0


def test_a_system_prompt_costs_its_text_in_either_form():
    text = "You are careful.\nYou keep notes."
    string = json.dumps(text).encode()
    blocks = json.dumps([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]).encode()
    assert count_preamble(string, b"", TOKENIZER) == 4 + TOKENIZER.count(text)
    assert count_preamble(blocks, b"", TOKENIZER) == count_preamble(string, b"", TOKENIZER)


def test_a_chat_tool_counts_as_a_declaration():
    count = TOKENIZER.count
    tool = 7 + count("read_file:Reads a file")
    properties = 3 + (3 + count("path:string:Where it is")) + (3 + count("mode:string:"))
    choices = 3 + count("text") + count("bytes")
    assert count_preamble(b"", CHAT_TOOLS, TOKENIZER) == 12 + tool + properties + choices


def test_a_claude_tool_counts_as_its_json_and_once_the_instructions():
    one = count_preamble(b"", CLAUDE_TOOLS, TOKENIZER)
    two = count_preamble(b"", json.dumps(json.loads(CLAUDE_TOOLS) * 2, indent=4).encode(), TOKENIZER)
    assert two - CLAUDE_TOOL_PROMPT == 2 * (one - CLAUDE_TOOL_PROMPT)


def test_nested_arguments_count():
    inner = {"type": "array", "items": {"type": "object", "properties": {"line": {"type": "integer"}}}}
    deep = {"name": "edit", "parameters": {"type": "object", "properties": {"edits": inner}}}
    flat = {"name": "edit", "parameters": {"type": "object", "properties": {"edits": {"type": "array"}}}}
    deep_count, flat_count = (
        count_preamble(b"", json.dumps([{"type": "function", "function": tool}]).encode(), TOKENIZER)
        for tool in (deep, flat)
    )
    assert deep_count == flat_count + 3 + 3 + TOKENIZER.count("line:integer:")


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"\xff\xfe",
        b"3",
        b"[1, {}]",
        b'[{"function": 3}]',
        b"[" * 3_000,
        b'[{"type": "text", "text": 3}]',
    ],
    ids=repr,
)
def test_bytes_of_an_unexpected_shape_count_as_the_text_they_are(raw):
    assert count_preamble(raw, b"", TOKENIZER) > 0
    assert count_preamble(b"", raw, TOKENIZER) > 0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=15,
)


@given(json_values, json_values)
def test_no_json_crashes_it(system: object, tools: object):
    count = count_preamble(json.dumps(system).encode(), json.dumps(tools).encode(), CharacterTokenizer())
    assert count >= 0
