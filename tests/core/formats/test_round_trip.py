"""Decode then encode: nothing is lost, and what nobody touched leaves byte for byte."""

import json

import pytest
from hypothesis import given
from msgspec.structs import replace

from lowwater.core.formats.codec import (
    decode_messages,
    decode_request,
    encode_messages,
    encode_request,
    messages_in,
)
from lowwater.core.messages import Format, Opaque, Text, Thinking, ToolCall, ToolResult
from lowwater.testing.strategies import transcripts

FORMATS: list[Format] = ["openai_chat", "anthropic", "openai_responses"]


@pytest.mark.parametrize("format", FORMATS)
def test_generated_transcripts_leave_byte_for_byte(format: Format) -> None:
    @given(transcripts(format=format))
    def check(raws: list[bytes]) -> None:
        assert encode_messages(decode_messages(raws, format), format) == raws

    check()


@pytest.mark.parametrize("format", FORMATS)
def test_a_rebuilt_message_says_the_same_and_keeps_unknown_fields(format: Format) -> None:
    """An edit that changes nothing forces the encoder to build the message from its parts."""

    @given(transcripts(format=format))
    def check(raws: list[bytes]) -> None:
        for message, raw in zip(decode_messages(raws, format), messages_in(raws, format), strict=True):
            rebuilt = encode_messages([message.with_parts(message.parts)], format)
            assert decode_messages(rebuilt, format) == [message]
            [joined] = messages_in(rebuilt, format)
            assert _unknown(json.loads(joined)) == _unknown(json.loads(raw))

    check()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
def test_what_was_said_survives_the_other_format(format: Format, other: Format) -> None:
    @given(transcripts(format=format))
    def check(raws: list[bytes]) -> None:
        messages = [m for m in decode_messages(raws, format) if m.role not in {"system", "developer"}]
        neutral = [type(m)(role=m.role, parts=m.parts, name=m.name) for m in messages]
        crossed = decode_messages(encode_messages(neutral, other), other)
        calls = {call.id: call for message in crossed for call in message.calls}
        results = {result.call_id: result for message in crossed for result in message.results}
        for message in messages:
            for call in message.calls:
                assert calls[call.id].name == call.name
                assert not _is_json_object(call) or calls[call.id] == call
            for result in message.results:
                assert result.text in results[result.call_id].text
            said = (
                [part.text for part in message.parts if isinstance(part, Text)]
                if message.role == "user"
                else []
            )
            for text in said:
                assert any(text in other.text for other in crossed if other.role == "user")

    check()


def _is_json_object(call: ToolCall) -> bool:
    try:
        return isinstance(json.loads(call.arguments), dict)
    except ValueError:
        return False


def _unknown(value: object) -> object:
    """Reduce a message to the keys that no decoder knows."""
    known = {
        "role",
        "content",
        "type",
        "text",
        "id",
        "name",
        "input",
        "tool_calls",
        "function",
        "arguments",
        "custom",
    }
    known |= {
        "thinking",
        "signature",
        "data",
        "source",
        "media_type",
        "url",
        "title",
        "is_error",
        "tool_use_id",
    }
    known |= {
        "tool_call_id",
        "image_url",
        "detail",
        "file",
        "file_id",
        "file_data",
        "filename",
        "reasoning_content",
        "output",
        "call_id",
    }
    if isinstance(value, dict):
        nested = {"content", "tool_calls", "output"}
        deeper = {key: _unknown(item) for key, item in value.items() if key in nested}
        unknown = {key: item for key, item in value.items() if key not in known}
        return unknown | {key: found for key, found in deeper.items() if found}
    return [found for item in value if (found := _unknown(item))] if isinstance(value, list) else None


CHAT_REQUEST = b"""{
  "model": "gpt-6.1-sol", "temperature": 1.0, "x_new_field": {"deep": [1e5, 12345678901234567890123]},
  "messages": [
    {"role":"developer","content":"Be brief.","x":1},
    {"role":"user","content":[{"type":"text","text":"look","note":"\\u00e9"},{"type":"hologram","beam":3}],"ts":7},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","index":0,
      "function":{"name":"ls","arguments":"{\\"p\\": \\".\\"}"}, "extra_content":{"google":{"sig":"AA"}}}],
      "reasoning_content":"hm", "provider_specific":{"a":[null,true]}},
    {"role":"tool","tool_call_id":"c1","content":"a.txt","name":"ls"}],
  "tools": [{"type":"function","function":{"name":"ls","parameters":{"type":"object"}}}], "service_tier":"flex"}"""

ANTHROPIC_REQUEST = b"""{"model":"claude-opus-5-5","max_tokens":8000, "betas":["x-2026"],
  "context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},
  "system":[{"type":"text","text":"You are careful.","cache_control":{"type":"ephemeral"}}],
  "messages":[
    {"role":"user","content":"go", "future": 2.50},
    {"role":"assistant","content":[
      {"type":"thinking","thinking":"t","signature":"c2ln","binding":{"v":2}},
      {"type":"server_tool_use","id":"srv_1","name":"web","input":{"q":"x"}},
      {"type":"web_search_tool_result","tool_use_id":"srv_1","content":[{"url":"https://e.org","n":1.0}]},
      {"type":"tool_use","id":"t1","name":"read","input":{"path":"a","n":1.0},"caller":{"type":"direct"}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"A"},{"type":"search_result","x":1}],
       "cache_control":{"type":"ephemeral","ttl":"1h"}},
      {"type":"text","text":"and?","citations":null}]}]}"""

RESPONSES_REQUEST = b"""{"model":"gpt-6", "store":false, "include":["reasoning.encrypted_content"],
  "instructions":"Be careful.", "prompt_cache_key":"k", "max_output_tokens": 8000, "x_new": [1e5, 2.50],
  "input":[
    {"role":"developer","content":"Be brief."},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"go", "note":"\\u00e9"},
      {"type":"hologram","beam":3}], "future": 2.50},
    {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA","x":1e5},
    {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},
    {"type":"message","id":"msg_1","role":"assistant","phase":"commentary",
      "content":[{"type":"output_text","text":"Looking.","annotations":[],"logprobs":[]}]},
    {"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{\\"p\\": 1.0}","status":"completed"},
    {"type":"custom_tool_call","id":"ctc_1","call_id":"c2","name":"patch","input":"*** Begin"},
    {"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a.txt"},{"type":"x","y":1}]},
    {"type":"custom_tool_call_output", "call_id":"c2","output":"done","status":"completed"},
    {"type":"something_new", "n": 1.0}],
  "tools":[{"type":"function","name":"ls","parameters":{"type":"object"}},{"type":"web_search"}]}"""

BODIES = pytest.mark.parametrize(
    ("body", "format"),
    [
        (CHAT_REQUEST, "openai_chat"),
        (ANTHROPIC_REQUEST, "anthropic"),
        (RESPONSES_REQUEST, "openai_responses"),
    ],
    ids=["openai_chat", "anthropic", "openai_responses"],
)


@BODIES
def test_a_request_with_fields_never_heard_of_leaves_untouched(body: bytes, format: Format) -> None:
    request = decode_request(body)
    assert request.format == format
    assert encode_request(request) == body


@BODIES
def test_dropping_one_message_leaves_every_other_byte(body: bytes, format: Format) -> None:
    request = decode_request(body)
    sent = encode_request(replace(request, messages=request.messages[:-1]))
    expected = json.loads(body)
    del expected["input" if format == "openai_responses" else "messages"][-1]
    assert json.loads(sent) == expected
    for raw in encode_messages(request.messages[:-1], format):
        assert raw in sent
        assert raw in body


def test_the_parts_of_an_anthropic_message_are_named() -> None:
    request = decode_request(ANTHROPIC_REQUEST)
    kinds = [type(part) for part in request.messages[1].parts]
    assert kinds == [Thinking, Opaque, Opaque, ToolCall]
    result, text = request.messages[2].parts
    assert isinstance(result, ToolResult)
    assert [type(part) for part in result.parts] == [Text, Opaque]
    assert text == Text(text="and?")


def test_the_parts_of_a_chat_message_are_named() -> None:
    request = decode_request(CHAT_REQUEST)
    assert [message.role for message in request.messages] == ["developer", "user", "assistant", "tool"]
    thought, call = request.messages[2].parts
    assert thought == Thinking(text="hm")
    assert call == ToolCall(id="c1", name="ls", arguments='{"p":"."}')
    assert request.messages[3].results[0].text == "a.txt"


def test_the_items_of_an_answer_are_one_message() -> None:
    request = decode_request(RESPONSES_REQUEST)
    assert [message.role for message in request.messages] == [
        "developer",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    thought, search, said, call, custom = request.messages[2].parts
    assert thought == Thinking(text="", signature="gAAA", redacted=True)
    assert isinstance(search, Opaque)
    assert said == Text(text="Looking.")
    assert call == ToolCall(id="c1", name="ls", arguments='{"p":1.0}')
    assert custom == ToolCall(id="c2", name="patch", arguments="*** Begin")
    assert request.messages[3].results[0].text == "a.txt"
    assert (request.system, request.model, request.max_tokens) == (b'"Be careful."', "gpt-6", 8_000)


def test_a_text_instead_of_items_is_what_the_user_says() -> None:
    body = b'{"model":"gpt-6","input" : "H\\u00e9llo"}'
    request = decode_request(body)
    assert [(message.role, message.text) for message in request.messages] == [("user", "Héllo")]
    assert encode_request(request) == body
    changed = json.loads(encode_request(replace(request, messages=request.messages * 2)))
    assert changed["input"] == [{"role": "user", "content": "Héllo"}] * 2


def test_what_has_no_form_in_the_other_format_leaves_a_note_and_keeps_the_order() -> None:
    audio = b'{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}'
    refusal = b'{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}'
    chat = decode_messages([audio, refusal, b'{"role":"user","content":"go on"}'], "openai_chat")
    crossed = [json.loads(raw) for raw in encode_messages(chat, "anthropic")]
    assert [message["role"] for message in crossed] == ["user", "assistant", "user"]
    assert "input_audio" in crossed[0]["content"]
    assert crossed[1]["content"] == "no"


def test_marks_and_unknown_blocks_of_one_format_do_not_reach_the_other() -> None:
    block = b'{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"container_upload","file_id":"f"}'
    [crossed] = encode_messages(
        decode_messages([b'{"role":"user","content":[' + block + b"]}"], "anthropic"), "openai_chat"
    )
    assert b"cache_control" not in crossed
    assert b'"type":"container_upload"' not in crossed
    assert b"[container_upload: left out" in crossed
