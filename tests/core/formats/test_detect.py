"""The format is told from what only one of them says."""

import pytest

from lowwater.core.formats.codec import decode_request
from lowwater.core.formats.files import decode_conversation
from lowwater.core.messages import Format


@pytest.mark.parametrize(
    ("data", "format", "shape"),
    [
        (
            b'[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":""}]',
            "openai_chat",
            "array",
        ),
        (b'[{"role":"system","content":"a"}]', "openai_chat", "array"),
        (b'[{"role":"assistant","content":null,"tool_calls":[]}]', "openai_chat", "array"),
        (
            b'[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]',
            "openai_chat",
            "array",
        ),
        (b'[{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]}]', "anthropic", "array"),
        (b'[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]', "anthropic", "array"),
        (b'[{"role":"user","content":"plain"}]', "openai_chat", "array"),
        (b'{"messages":[{"role":"user","content":"a"}],"system":"s"}', "anthropic", "request"),
        (
            b'{"messages":[{"role":"user","content":"a"}],"tools":[{"name":"t","input_schema":{}}]}',
            "anthropic",
            "request",
        ),
        (b'{"messages":[{"role":"user","content":"a"}],"max_completion_tokens":5}', "openai_chat", "request"),
        (
            b'{"id":"h"}\n{"role":"user","content":"a"}\n{"role":"system","content":"b"}\n',
            "openai_chat",
            "lines",
        ),
        (b'{"role":"user","content":"a"}', "openai_chat", "lines"),
        (b'\xef\xbb\xbf [{"role":"user","content":"a"}] ', "openai_chat", "array"),
        (
            b'[{"role":"developer","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":""}]',
            "openai_responses",
            "array",
        ),
        (b'[{"role":"user","content":[{"type":"input_text","text":"a"}]}]', "openai_responses", "array"),
        (b'[{"type":"message","role":"user","content":"a"}]', "openai_responses", "array"),
        (
            b'[{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}]',
            "openai_chat",
            "array",
        ),
        (
            b'[{"role":"developer","content":"a"},{"role":"user","content":[{"type":"text","text":"a"}]}]',
            "openai_chat",
            "array",
        ),
        (b'{"input":"hi","instructions":"s"}', "openai_responses", "request"),
        (b'{"input":[{"role":"user","content":"a"}]}', "openai_responses", "request"),
        (
            b'{"role":"user","content":"a"}\n{"type":"reasoning","id":"r","summary":[]}\n',
            "openai_responses",
            "lines",
        ),
    ],
)
def test_format_and_shape_are_told_apart(data: bytes, format: Format, shape: str) -> None:
    conversation = decode_conversation(data)
    assert (conversation.format, conversation.shape) == (format, shape)


def test_what_the_request_says_about_itself_is_read() -> None:
    request = decode_request(b'{"model":"m","max_tokens":9,"messages":[],"system":"s","tools":[{"a":1}]}')
    assert (request.model, request.max_tokens) == ("m", 9)
    assert (request.system, request.tools) == (b'"s"', b'[{"a":1}]')


def test_a_named_format_is_not_second_guessed() -> None:
    assert decode_request(b'{"messages":[{"role":"user","content":"a"}]}', "anthropic").format == "anthropic"
