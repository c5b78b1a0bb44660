"""A streamed answer, read on its way, is the answer that would have come unstreamed."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.streams import CUT_OFF, AnswerStream, answer_in_stream, stream_for
from lowwater.core.messages import Format
from lowwater.testing.provider import (
    Answer,
    Call,
    CallTools,
    CutOff,
    DropConnection,
    Provider,
    Refuse,
    Say,
    Think,
)
from tests.sdk_clients import anthropic_client, openai_client

ASKED: list[Any] = [{"role": "user", "content": "Was gibt es Neues? 你好 🌊"}]
CALLS = CallTools((Call("bash", {"command": "ls 🌊", "n": [1, 2.5]}), Call("look")), "Zwei auf einmal: äöü.")
SCRIPTS: dict[str, Answer] = {
    "said": Say("Nichts Neues, aber Grüße 🌊 und 你好."),
    "empty": Say(""),
    "cut off": CutOff("All do"),
    "refused": Refuse("I will not."),
    "calls": CALLS,
    "thought": Think("Erst sehen.", CALLS),
    "hidden thought": Think("Secret.", Say("Yes."), redacted=True),
}


class Recorded:
    """The same answer, whole and as the chunks of a stream."""

    def __init__(self, whole: bytes, streamed: bytes) -> None:
        self.whole, self.streamed = whole, streamed


def of_anthropic(provider: Provider, *, stream: bool) -> bytes:
    with (
        anthropic_client(provider) as client,
        client.messages.with_streaming_response.create(
            model="claude-opus-5-5", max_tokens=4_000, messages=ASKED, stream=stream
        ) as response,
    ):
        return b"".join(response.iter_bytes())


def of_chat(provider: Provider, *, stream: bool) -> bytes:
    options: Any = {"stream_options": {"include_usage": True}} if stream else {}
    with (
        openai_client(provider) as client,
        client.chat.completions.with_streaming_response.create(
            model="gpt-5.5", messages=ASKED, stream=stream, **options
        ) as response,
    ):
        return b"".join(response.iter_bytes())


def of_responses(provider: Provider, *, stream: bool) -> bytes:
    with (
        openai_client(provider) as client,
        client.responses.with_streaming_response.create(
            model="gpt-5.5", input=ASKED, stream=stream, store=False, include=["reasoning.encrypted_content"]
        ) as response,
    ):
        return b"".join(response.iter_bytes())


FORMATS: dict[Format, Callable[..., bytes]] = {
    "anthropic": of_anthropic,
    "openai_chat": of_chat,
    "openai_responses": of_responses,
}


@pytest.fixture(scope="module", params=FORMATS)
def format(request: pytest.FixtureRequest) -> Format:
    named: Format = request.param
    return named


@pytest.fixture(scope="module", params=SCRIPTS)
def recorded(request: pytest.FixtureRequest, format: Format) -> Recorded:
    said = []
    for stream in (False, True):
        with Provider([SCRIPTS[request.param]]) as provider:
            said.append(FORMATS[format](provider, stream=stream))
    return Recorded(*said)


def fed(format: Format, *chunks: bytes) -> AnswerStream:
    stream = stream_for(format)
    for chunk in chunks:
        stream.feed(chunk)
    return stream


def meant(body: bytes) -> Any:
    """What an answer says, without what only one of its two forms has."""
    said = json.loads(body)
    for choice in said.get("choices", []):
        choice.pop("logprobs", None)
    return said


def test_the_whole_answer_is_that_of_the_unstreamed_call(format: Format, recorded: Recorded) -> None:
    stream = fed(format, recorded.streamed)
    assert (stream.is_done, stream.broken) == (True, "")
    answer = stream.answer()
    assert answer is not None
    assert meant(answer) == meant(recorded.whole)
    assert decode_response(answer) == decode_response(recorded.whole)
    assert stream.usage == decode_response(recorded.whole).usage


def test_it_does_not_matter_where_the_bytes_were_cut(format: Format, recorded: Recorded) -> None:
    data, expected = recorded.streamed, fed(format, recorded.streamed).answer()

    @given(st.lists(st.integers(0, len(data)), max_size=40))
    def check(places: list[int]) -> None:
        marks = sorted({0, len(data), *places})
        stream = fed(format, *(data[a:b] for a, b in pairwise(marks)))
        assert stream.answer() == expected

    check()
    assert fed(format, *(data[at : at + 1] for at in range(len(data)))).answer() == expected


def test_a_stream_that_ends_early_has_no_answer_and_says_so(format: Format, recorded: Recorded) -> None:
    events = recorded.streamed.split(b"\n\n")[:-1]
    last = -2 if format == "openai_chat" else -1  # without its end mark a chat completion is still whole
    for count in range(len(events[:last])):
        stream = fed(format, b"\n\n".join(events[:count]) + b"\n\n")
        assert (stream.is_done, stream.answer(), stream.broken) == (False, None, "")
        stream.end()
        if format == "openai_chat" and b'"finish_reason":"' in b"".join(events[:count]):
            continue
        assert (stream.is_done, stream.answer(), stream.broken) == (False, None, CUT_OFF)


def test_what_was_recorded_of_a_stream_is_read_by_its_content(format: Format, recorded: Recorded) -> None:
    expected = fed(format, recorded.streamed).answer()
    assert answer_in_stream(recorded.streamed) == expected


def test_a_dropped_connection_gives_the_usage_seen_so_far() -> None:
    stream = stream_for("anthropic")

    def pass_on(response: Any) -> None:
        for chunk in response.iter_bytes():
            stream.feed(chunk)

    with (
        Provider([DropConnection("x" * 400)]) as provider,
        anthropic_client(provider) as client,
        client.messages.with_streaming_response.create(
            model="claude-opus-5-5", max_tokens=4_000, messages=ASKED, stream=True
        ) as response,
        pytest.raises(Exception, match="without sending complete"),
    ):
        pass_on(response)
    stream.end()
    assert (stream.answer(), stream.broken) == (None, CUT_OFF)
    assert stream.usage == Usage(uncached=6, output=1)


@pytest.mark.parametrize(
    ("format", "data", "said"),
    [
        (
            "anthropic",
            b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
            "overloaded_error: Overloaded",
        ),
        (
            "openai_chat",
            b'data: {"error":{"message":"Provider disconnected","code":502},"choices":[]}\n\n',
            "502: Provider disconnected",
        ),
        ("openai_chat", b'data: {"error":"out of memory"}\n\n', 'error: "out of memory"'),
        (
            "openai_responses",
            b'data: {"type":"error","code":"server_error","message":"Sorry.","param":null}\n\n',
            "server_error: Sorry.",
        ),
        (
            "openai_responses",
            b'data: {"type":"response.failed","response":{"id":"r","error":{"code":"rate_limit_exceeded",'
            b'"message":"Slow down."}}}\n\n',
            "rate_limit_exceeded: Slow down.",
        ),
    ],
)
def test_an_error_in_a_stream_is_reported_in_the_providers_words(
    format: Format, data: bytes, said: str
) -> None:
    stream = fed(format, data)
    assert (stream.broken, stream.is_done, stream.answer()) == (said, False, None)
    stream.end()
    assert stream.broken == said


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.binary(max_size=200))
@example(data=b"[DONE]")
def test_bytes_that_are_no_stream_raise_nothing(format: Format, data: bytes) -> None:
    for spelled in (data, b"data: " + data + b"\n\n"):
        stream = fed(format, spelled)
        stream.end()
        assert stream.answer() is None
        assert stream.broken
        assert stream.usage is None


def test_deltas_of_anthropic_that_are_not_text() -> None:
    events: list[Any] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "", "citations": None},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": {"n": 1}},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "web", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"q": 1.'},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "0}"},
        },
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "compaction", "content": None},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "compaction_delta", "content": "Earlier."},
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 4},
            "context_management": {"applied_edits": []},
        },
        {"type": "message_stop"},
    ]
    answer = fed(
        "anthropic", *(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    ).answer()
    assert answer is not None
    assert b'{"q": 1.0}' in answer, "as the model wrote it"
    said = json.loads(answer)
    assert said["content"] == [
        {"type": "text", "text": "a", "citations": [{"n": 1}]},
        {"type": "server_tool_use", "id": "s", "name": "web", "input": {"q": 1.0}},
        {"type": "compaction", "content": "Earlier."},
    ]
    assert (said["stop_reason"], said["usage"], said["context_management"]) == (
        "end_turn",
        {"output_tokens": 4},
        {"applied_edits": []},
    )


def test_chat_chunks_as_compatible_servers_write_them() -> None:
    """No index on calls, whole calls in one chunk, reasoning beside the content, no end mark."""
    chunks: list[Any] = [
        {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "reasoning_content": "h"}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "m", "content": None}}]},
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "tool_calls": [
                            {
                                "id": "a",
                                "function": {"name": "f", "arguments": "{}"},
                                "extra_content": {"google": {"thought_signature": "AA"}},
                            },
                            {"id": "b", "function": {"name": "g", "arguments": '{"x":'}},
                        ]
                    },
                }
            ]
        },
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"function": {"arguments": "1}"}}]}}]},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 3},
        },
    ]
    stream = fed("openai_chat", *(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks))
    assert not stream.is_done
    stream.end()
    answer = stream.answer()
    assert answer is not None
    message = json.loads(answer)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == (None, "hm")
    assert message["tool_calls"] == [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "f", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "AA"}},
        },
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"x":1}'}},
    ]
    assert stream.usage == Usage(uncached=3)


def test_a_backend_that_leaves_the_output_out_of_its_last_event() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
    events: list[Any] = [
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_text.delta", "delta": "Hi."},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {"id": "r", "output": [], "usage": {"input_tokens": 5, "output_tokens": 2}},
        },
    ]
    stream = fed("openai_responses", *(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))
    answer = stream.answer()
    assert answer is not None
    assert json.loads(answer)["output"] == [item]
    assert stream.usage == Usage(uncached=5, output=2)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ("[]", Usage(uncached=9, output=1)),
        ('"x"', Usage(uncached=9, output=1)),
        ("5", Usage(uncached=9, output=1)),
        ("null", Usage(uncached=9, output=1)),
        ('{"output_tokens": 1e999}', None),
        ('{"output_tokens": 7, "more": 1e999}', Usage(uncached=9, output=7)),
    ],
)
@pytest.mark.parametrize("begins", [False, True], ids=["at its end", "at its beginning too"])
def test_an_answer_of_anthropic_is_not_lost_for_its_usage(
    usage: str, counted: Usage | None, begins: bool
) -> None:
    odd = ', "odd": 1e999' if begins else ""
    events = [
        '{"type": "message_start", "message": {"role": "assistant", "content": [],'
        f' "usage": {{"input_tokens": 9, "output_tokens": 1{odd}}}}}}}',
        '{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "odd": 1e999}}',
        '{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "paid for"}}',
        f'{{"type": "message_delta", "delta": {{"stop_reason": "end_turn"}}, "usage": {usage}}}',
        '{"type": "message_stop"}',
    ]
    stream = fed("anthropic", *(f"data: {event}\n\n".encode() for event in events))
    answer = stream.answer()
    assert (stream.broken, answer is None) == ("", False)
    assert stream.usage == counted
    response = decode_response(answer or b"")
    assert (str(response.message.parts[0].text), response.usage) == ("paid for", counted)  # type: ignore[union-attr]


@pytest.mark.parametrize("usage", ["[]", "5", '{"prompt_tokens": 1e999}'])
def test_an_answer_of_a_chat_is_not_lost_for_a_number(usage: str) -> None:
    choice = '{"index": 0, "delta": {"content": "paid for", "odd": 1e999}, "finish_reason": "stop"}'
    stream = fed(
        "openai_chat", f'data: {{"choices": [{choice}], "usage": {usage}}}\n\ndata: [DONE]\n\n'.encode()
    )
    assert (stream.broken, stream.usage) == ("", None)
    assert decode_response(stream.answer() or b"").message.parts[0].text == "paid for"  # type: ignore[union-attr]


@pytest.mark.parametrize("usage", ["[]", "5", '{"input_tokens": 1e999}'])
def test_an_answer_of_responses_is_not_lost_for_a_number(usage: str) -> None:
    item = (
        '{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "paid for"}]}'
    )
    response = f'{{"status": "completed", "output": [{item}], "usage": {usage}, "odd": 1e999}}'
    stream = fed(
        "openai_responses",
        f'data: {{"type": "response.completed", "odd": 1e999, "response": {response}}}\n\n'.encode(),
    )
    assert (stream.broken, stream.usage) == ("", None)
    assert decode_response(stream.answer() or b"").message.parts[0].text == "paid for"  # type: ignore[union-attr]
