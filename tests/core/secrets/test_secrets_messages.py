"""A concealed message holds its secrets nowhere: not in its parts, not in its arguments, not in its bytes."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.messages import (
    Document,
    Format,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.core.secrets.redaction import conceal_json, conceal_message
from lowwater.testing.strategies import message_values

KEY = "sk-" + "ant-api03-a8F3kD92mNb4Qz71XyW5"
PASSWORD = "hunter2!x"

BODIES: dict[str, tuple[Format, dict[str, object]]] = {
    "text": ("openai_chat", {"role": "user", "content": f"use {KEY} please"}),
    "blocks": (
        "anthropic",
        {
            "role": "user",
            "content": [{"type": "text", "text": f"use {KEY}", "cache_control": {"type": "ephemeral"}}],
        },
    ),
    "tool result": (
        "anthropic",
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": f"KEY\n{KEY}\nend"}],
        },
    ),
    "tool message": ("openai_chat", {"role": "tool", "tool_call_id": "c1", "content": f"> {KEY}\n"}),
    "call": (
        "openai_chat",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "login", "arguments": json.dumps({"a": KEY, "n": [1.50, {}]})},
                }
            ],
        },
    ),
    "input": (
        "anthropic",
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "bash",
                    "input": {"command": f'curl -H "X: {KEY}"\n', "password": KEY},
                }
            ],
        },
    ),
    "thinking": (
        "anthropic",
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": f"the key is {KEY}", "signature": "c2ln"},
                {"type": "text", "text": "done"},
            ],
        },
    ),
    "reasoning": (
        "openai_chat",
        {"role": "assistant", "content": "done", "reasoning_content": f"the key is {KEY}"},
    ),
    "unknown field": ("openai_chat", {"role": "assistant", "content": "done", "trace": {"header": KEY}}),
    "unknown block": (
        "anthropic",
        {"role": "user", "content": [{"type": "novelty", "deep": [{"er": f"{KEY}\u2028é"}]}]},
    ),
}


def message_of(which: str) -> Message:
    format, body = BODIES[which]
    return decode_messages([json.dumps(body).encode()], format)[0]


@pytest.mark.parametrize("which", BODIES)
def test_nothing_of_a_secret_remains_and_the_message_can_still_be_sent(which: str) -> None:
    format, _ = BODIES[which]
    concealed = conceal_message(message_of(which))
    assert KEY[4:] not in repr(concealed)
    [raw] = encode_messages([concealed], format)
    assert KEY[4:].encode() not in raw
    assert b"[redacted: " in raw
    [again] = decode_messages([raw], format)
    assert again == concealed, "it comes back as what it says"
    assert conceal_message(concealed) is concealed


def test_fields_around_the_content_stay() -> None:
    body = {"role": "user", "content": f"use {KEY}", "name": "ada", "x": 1.50}
    [message] = decode_messages([json.dumps(body).encode()], "openai_chat")
    [raw] = encode_messages([conceal_message(message)], "openai_chat")
    assert json.loads(raw) == body | {"content": "use [redacted: Anthropic key]"}


def test_arguments_are_concealed_by_the_name_they_stand_under_and_stay_json() -> None:
    arguments = f'{{ "user": "ada", "password" : "{PASSWORD}", "max_tokens": 5 }}'
    call = ToolCall(id="1", name="login", arguments=arguments)
    [concealed] = conceal_message(Message(role="assistant", parts=(call,))).calls
    assert concealed.arguments == '{ "user": "ada", "password" : "[redacted: password]", "max_tokens": 5 }'


def test_a_name_counts_for_its_own_value_only() -> None:
    text = f'{{"password": ["{PASSWORD}"], "token": null, "label": "{PASSWORD}"}}'
    assert json.loads(conceal_json(text))["label"] == PASSWORD


def test_arguments_that_are_no_json_are_concealed_as_text() -> None:
    call = ToolCall(id="1", name="run", arguments=f"export A={KEY}\n{{")
    [concealed] = conceal_message(Message(role="assistant", parts=(call,))).calls
    assert concealed.arguments == "export A=[redacted: Anthropic key]\n{"


@given(st.recursive(st.text() | st.floats(allow_nan=False) | st.none(), st.lists, max_leaves=5))
def test_json_without_secrets_stays_byte_for_byte(value: object) -> None:
    text = json.dumps({"a": value, "b": [value]}, indent=1)
    assert conceal_json(text) == text


@given(st.text(), st.text())
def test_json_with_secrets_stays_json(before: str, after: str) -> None:
    text = json.dumps({"a": f"{before}\n{KEY}\n{after}", "b": 1})
    concealed = conceal_json(text)
    assert KEY not in json.loads(concealed)["a"]
    assert json.loads(concealed)["b"] == 1
    msgspec.json.decode(concealed.encode())


@given(message_values())
def test_a_message_without_secrets_is_the_same_object(message: Message) -> None:
    assert conceal_message(message) is message


def test_pictures_and_documents_stay_and_written_ones_are_concealed() -> None:
    picture = Image(source="base64", data="iVBORw0KGgo" * 40, media_type="image/png")
    paper = Document(source="text", data=f"key: {KEY}", title=f"{KEY}.txt")
    result = ToolResult(
        call_id="1", parts=(picture, Text(text=KEY), Opaque(block="b", body=f'{{"k":"{KEY}"}}'))
    )
    message = Message(role="user", parts=(picture, paper, result, Thinking(text="nothing", signature="s")))
    concealed = conceal_message(message)
    assert concealed.parts[0] is picture
    assert KEY not in repr(concealed)
    assert concealed.parts[3] is message.parts[3]
