"""Request logs of any common shape tell the same."""

import json
from pathlib import Path

import pytest

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings
from tests.logs.request_lines import (
    BILLED,
    CHUNKS,
    EVENTS,
    FIRST,
    FORMATS,
    SENT,
    START,
    STREAM,
    TOOLS,
    USAGE,
    Fields,
    body,
    completion,
    message,
    model,
    read,
    texts,
    usages,
    written,
)

LITELLM = {
    "call_type": "completion",
    "model": "gpt-x",
    "messages": FIRST,
    "startTime": START - 2.0,
    "endTime": START,
}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param({"request": SENT, "response": message("b")}, id="bodies"),
        pytest.param({"request": SENT, "response": model("b"), "usage": USAGE}, id="message alone"),
        pytest.param(
            {"request_body": json.dumps(SENT), "response_body": json.dumps(message("b"))}, id="as text"
        ),
        pytest.param(
            {"request": {"url": "/v1", "body": SENT}, "response": {"status_code": 200, "body": message("b")}},
            id="wrapped",
        ),
        pytest.param({"request": {"body": SENT}, "response": {"body_raw": EVENTS}}, id="Anthropic's events"),
        pytest.param({"request": SENT, "response": STREAM}, id="OpenAI's events"),
        pytest.param({"request": SENT, "response": CHUNKS}, id="chunks"),
        pytest.param(LITELLM | {"response": completion("b")}, id="LiteLLM"),
        pytest.param(
            LITELLM | {"messages": json.dumps(FIRST), "response": json.dumps(completion("b"))},
            id="LiteLLM's table",
        ),
        pytest.param(
            {"custom_id": "x", "body": SENT, "response": {"body": completion("b")}}, id="batch in one line"
        ),
    ],
)
def test_the_common_shapes_tell_the_same(tmp_path: Path, line: Fields) -> None:
    (recording,) = read(written(tmp_path, line))
    assert texts(recording) == ["a", "b"]
    assert usages(recording) == [BILLED]


def test_times_system_and_tools_are_kept_where_they_are_told(tmp_path: Path) -> None:
    (recording,) = read(written(tmp_path, {"request": SENT, "response": message("b")}))
    assert recording.system == b'"Be kind."'
    assert json.loads(recording.tools) == TOOLS
    (recording,) = read(written(tmp_path, LITELLM | {"response": completion("b")}))
    call = recording.messages[1].call
    assert call is not None
    assert (call.asked_at, recording.messages[1].at) == (START - 2, START)


def test_what_only_the_logger_counted_is_the_usage(tmp_path: Path) -> None:
    silent = {name: value for name, value in completion("b").items() if name != "usage"}
    counted = LITELLM | {"response": silent, "prompt_tokens": 7, "completion_tokens": 3}
    (recording,) = read(written(tmp_path, counted))
    assert usages(recording) == [Usage(uncached=7, output=3)]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        pytest.param(
            {"custom_id": "x", "method": "POST", "url": "/v1/chat/completions", "body": body(*FIRST)},
            {
                "id": "batch_req",
                "custom_id": "x",
                "response": {"status_code": 200, "body": completion("b")},
                "error": None,
            },
            id="OpenAI",
        ),
        pytest.param(
            {"custom_id": "x", "params": body(*FIRST)},
            {"custom_id": "x", "result": {"type": "succeeded", "message": message("b")}},
            id="Anthropic",
        ),
    ],
)
def test_results_of_a_batch_find_their_requests_beside_them(
    tmp_path: Path, asked: Fields, answered: Fields
) -> None:
    written(tmp_path, asked, name="input.jsonl")
    written(tmp_path, answered, name="output.jsonl")
    (recording,) = list(recordings([tmp_path], formats=FORMATS))
    assert (recording.id, texts(recording), usages(recording)) == ("x", ["a", "b"], [BILLED])


def test_results_without_their_requests_are_still_calls(tmp_path: Path) -> None:
    answered = {"custom_id": "x", "result": {"type": "succeeded", "message": message("b")}}
    (recording,) = read(written(tmp_path, answered))
    assert usages(recording) == [BILLED]


def test_a_tool_call_that_was_streamed_is_put_together(tmp_path: Path) -> None:
    begun = {"index": 0, "id": "t1", "type": "function", "function": {"name": "read", "arguments": ""}}
    pieces = [
        begun,
        {"index": 0, "function": {"arguments": '{"path":'}},
        {"index": 0, "function": {"arguments": '"a"}'}},
    ]
    chunks = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    (recording,) = read(written(tmp_path, {"request": SENT, "response": chunks}))
    (call,) = recording.messages[1].message.calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("t1", "read", {"path": "a"})
