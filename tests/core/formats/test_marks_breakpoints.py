"""OpenAI's cache breakpoints stand on content parts of what the model was told, never on what it said."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from lowwater.core.formats.cache_marks import (
    break_message,
    carries_break,
    carries_mark,
    count_blocks,
    mark_tools,
    unbreak_message,
)
from lowwater.core.formats.codec import decode_messages
from lowwater.testing.strategies import transcripts

EXPLICIT = {"mode": "explicit"}
TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def json(value: object) -> bytes:
    return msgspec.json.encode(value)


def broken(message: dict[str, Any]) -> Any:
    return msgspec.json.decode(break_message(json(message)))


@pytest.mark.parametrize("role", ["system", "developer", "user", "tool"])
def test_a_string_becomes_a_part_with_the_breakpoint(role: str) -> None:
    message = {"role": role, "tool_call_id": "1", "content": "hi"}
    assert broken(message) == {**message, "content": [{**TEXT, "prompt_cache_breakpoint": EXPLICIT}]}


@pytest.mark.parametrize(
    ("parts", "at"),
    [([TEXT, IMAGE], 1), ([TEXT, {"type": "text", "text": ""}], 0), ([TEXT, {"type": "new"}], 0)],
    ids=["the last part", "not on empty text", "not on an unknown part"],
)
def test_a_list_gets_it_on_its_last_part_that_may_carry_one(parts: list[dict[str, Any]], at: int) -> None:
    content = broken({"role": "user", "content": parts})["content"]
    assert [index for index, part in enumerate(content) if "prompt_cache_breakpoint" in part] == [at]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "said"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": ""},
        {"role": "user", "content": []},
        {"role": "user"},
    ],
    ids=["assistant", "calls", "empty", "no parts", "no content"],
)
def test_what_has_no_place_for_one_stays_as_it_is(message: dict[str, Any]) -> None:
    assert break_message(json(message)) == json(message)
    assert not carries_break(json(message))


@given(transcripts("openai_chat"))
def test_one_that_is_put_on_can_be_taken_off_and_changes_no_content(raws: list[bytes]) -> None:
    for raw in raws:
        marked = break_message(raw)
        assert carries_break(raw) == (marked != raw)
        assert marked.count(b'"prompt_cache_breakpoint"') - raw.count(b'"prompt_cache_breakpoint"') in (0, 1)
        before, after = decode_messages([unbreak_message(raw), unbreak_message(marked)], "openai_chat")
        assert before == after


@pytest.mark.parametrize(
    "raw",
    [
        b'{ "role":"user", "content":"the word \\"prompt_cache_breakpoint\\"" }',
        b'{ "role":"user", "content":[ {"type":"text","text":"\\"prompt_cache_breakpoint\\""} ] }',
        b'{ "role":"user", "content":"nothing" , "n":1.0 }',
    ],
    ids=["in a text", "in a part's text", "nowhere"],
)
def test_the_bytes_of_a_message_without_one_are_untouched(raw: bytes) -> None:
    assert unbreak_message(raw) == raw


@pytest.mark.parametrize(
    ("message", "blocks"),
    [
        ({"role": "user", "content": "hi"}, 1),
        ({"role": "user", "content": ""}, 0),
        ({"role": "user", "content": [TEXT, TEXT, TEXT]}, 3),
        ({"role": "assistant", "content": None, "tool_calls": [{}, {}]}, 2),
        ({"role": "assistant", "content": "hi", "tool_calls": [{}]}, 2),
    ],
    ids=["string", "empty", "list", "calls", "text and a call"],
)
def test_blocks_are_counted_as_the_lookback_does(message: dict[str, Any], blocks: int) -> None:
    assert count_blocks(json(message)) == blocks


def test_a_message_of_thinking_alone_carries_no_mark() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    assert not carries_mark(json({"role": "assistant", "content": [thought]}))
    assert carries_mark(json({"role": "assistant", "content": [thought, TEXT]}))


def test_the_last_tool_that_is_loaded_at_once_carries_the_mark() -> None:
    tools: list[dict[str, object]] = [
        {"name": "a"},
        {"name": "b", "defer_loading": False},
        {"name": "c", "defer_loading": True},
    ]
    marked = mark_tools(json(tools), "1h")
    assert marked is not None
    kept = {"type": "ephemeral", "ttl": "1h"}
    assert msgspec.json.decode(marked) == [tools[0], {**tools[1], "cache_control": kept}, tools[2]]
    assert mark_tools(json([tools[2]])) is None
    assert mark_tools(b"[]") is None
    assert mark_tools(b"") is None
