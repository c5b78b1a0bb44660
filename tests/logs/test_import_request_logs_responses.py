"""Logs of the Responses API become recordings like any other: items of an answer are one message."""

import json
from pathlib import Path

import pytest

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Thinking, ToolCall
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Think
from tests.logs.request_lines import START, Fields, read, texts, usages, written
from tests.logs.responses_of import asked, streamed_from

USAGE = {"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 60}}
BILLED = Usage(uncached=40, cache_read=60, output=5)
USER: Fields = {"role": "user", "content": "List the files."}
CALLED: list[Fields] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": "{}"},
    {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "ls", "arguments": '{"p":1}'},
]
OUTPUTS: list[Fields] = [
    {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
    {"type": "function_call_output", "call_id": "c2", "output": "b.txt"},
]
SAID: list[Fields] = [
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Two."}],
    }
]


def response(output: list[Fields]) -> Fields:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": START,
        "status": "completed",
        "model": "gpt-x",
        "output": output,
        "usage": USAGE,
    }


def line(sent: object, output: list[Fields], **fields: object) -> Fields:
    request = {"model": "gpt-x", "instructions": "Be brief.", "input": sent} | fields
    return {"request": request, "response": response(output)}


def test_requests_that_extend_each_other_are_one_session(tmp_path: Path) -> None:
    lines = [line([USER], CALLED), line([USER, *CALLED, *OUTPUTS], SAID)]
    (recording,) = read(written(tmp_path, *lines))
    assert [one.message.role for one in recording.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert [type(part) for part in recording.messages[1].message.parts] == [Thinking, ToolCall, ToolCall]
    assert texts(recording)[-1] == "Two."
    assert usages(recording) == [BILLED, BILLED]
    assert (recording.model, json.loads(recording.system), recording.broken) == ("gpt-x", "Be brief.", ())


def test_a_text_is_what_the_user_says(tmp_path: Path) -> None:
    (recording,) = read(written(tmp_path, line("List the files.", SAID)))
    assert texts(recording) == ["List the files.", "Two."]


def test_a_client_that_writes_its_items_anew_goes_on_with_its_session(tmp_path: Path) -> None:
    bare = [{name: value for name, value in item.items() if name != "id"} for item in CALLED]
    lines = [line([USER], CALLED), line([{"type": "message", **USER}, *bare, *OUTPUTS], SAID)]
    (recording,) = read(written(tmp_path, *lines))
    assert len(usages(recording)) == 2


@pytest.mark.parametrize(
    "fields",
    [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}],
    ids=["response", "conversation"],
)
def test_what_goes_on_with_the_providers_memory_is_told(tmp_path: Path, fields: Fields) -> None:
    found = read(written(tmp_path, line([USER], SAID), line(OUTPUTS, SAID, **fields)))
    assert [texts(one) for one in found] == [["List the files.", "Two."]]
    assert sum(len(one.broken) for one in found) == 1


def test_a_streamed_answer_is_the_same_as_a_whole_one(tmp_path: Path) -> None:
    script: list[Answer] = [
        Think("Hm.", CallTools((Call("ls", {"path": "."}, "c1"), Call("ls", {}, "c2")), "Looking.")),
        Say("Two."),
    ]
    with Provider(script) as provider, Provider(script) as other:
        first, second = asked([USER]), asked([USER, *SAID, USER])
        whole = [streamed_from(provider, body, stream=False) for body in (first, second)]
        streams = [streamed_from(other, body, stream=True) for body in (first, second)]
    logged = [
        [{"request": body, "response": answer} for body, answer in zip((first, second), answers, strict=True)]
        for answers in (whole, streams)
    ]
    one, two = (read(written(tmp_path, *lines, name=f"log{at}.any")) for at, lines in enumerate(logged))
    assert [recording.messages for recording in one] == [recording.messages for recording in two]
    assert sum(len(usages(recording)) for recording in one) == 2
