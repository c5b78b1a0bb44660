"""The chat rules about a request's form."""

from typing import Any

import pytest

BROKEN = [
    ("readable_json", lambda r: setattr(r, "raw", b'{"model'), "could not parse", None),
    ("model_given", lambda r: r.drop("model"), "you must provide a model parameter", None),
    ("messages_given", lambda r: r.drop("messages"), "Missing required", "missing_required_parameter"),
    ("messages_given", lambda r: r.put("messages", []), "Invalid 'messages': empty array.", "empty_array"),
    ("messages_given", lambda r: r.put("messages", "hi"), "Invalid type for 'messages':", "invalid_type"),
    ("message_shape", lambda r: r.put("messages.1", "hi"), "Invalid type for 'messages[1]':", "invalid_type"),
    ("message_shape", lambda r: r.drop("messages.1.role"), "Missing required", "missing_required_parameter"),
    ("known_roles", lambda r: r.put("messages.1.role", "human"), "Invalid value: 'human'.", "invalid_value"),
    ("content_given", lambda r: r.put("messages.6.content", None), "Invalid value for 'content':", None),
    ("content_given", lambda r: r.drop("messages.5.content"), "expected a string, got null", None),
    ("content_shape", lambda r: r.put("messages.6.content", 3), "Invalid type for", "invalid_type"),
    ("content_shape", lambda r: r.put("messages.1.content.0.text", None), "Invalid type for", "invalid_type"),
    ("content_shape", lambda r: r.put("messages.1.content", []), "empty array", "empty_array"),
    (
        "tool_calls_not_empty",
        lambda r: r.put("messages.5.tool_calls", []),
        "Invalid 'messages[5].tool_calls': empty array.",
        "empty_array",
    ),
    (
        "tool_call_shape",
        lambda r: r.put("messages.2.tool_calls.0.function.arguments", {"command": "ls"}),
        "Invalid type for 'messages[2].tool_calls[0].function.arguments': expected a string, but got an object",
        "invalid_type",
    ),
    ("tool_call_shape", lambda r: r.drop("messages.2.tool_calls.1.id"), "Invalid type for", "invalid_type"),
    (
        "tool_call_shape",
        lambda r: r.drop("messages.2.tool_calls.1.function"),
        "Invalid type for 'messages[2].tool_calls[1].function'",
        "invalid_type",
    ),
    ("tool_message_shape", lambda r: r.drop("messages.3.tool_call_id"), "Missing parameter", None),
    ("tools_not_empty", lambda r: r.put("tools", []), "Invalid 'tools': empty array.", "empty_array"),
    (
        "tool_names",
        lambda r: r.put("tools.0.function.name", "mcp.bash"),
        "Invalid 'tools[0].function.name': string does not match pattern.",
        "invalid_value",
    ),
    (
        "tool_names",
        lambda r: r.put("tools.0.function.name", "b" * 65),
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
        "string_above_max_length",
    ),
    (
        "tool_names",
        lambda r: r.put("messages.2.tool_calls.1.function.name", ""),
        "Invalid 'messages[2].tool_calls[1].function.name': string does not match pattern.",
        "invalid_value",
    ),
]


@pytest.mark.parametrize(("rule", "change", "says", "code"), BROKEN)
def test_a_malformed_request_is_refused(
    rule: str, change: Any, says: str, code: str | None, *, chat_draft: Any, refused: Any
) -> None:
    change(chat_draft)
    error = refused(chat_draft, rule, says)
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["type"], error["code"]) == ("invalid_request_error", code)


def test_a_request_without_a_key_is_refused(chat_draft: Any, refused: Any) -> None:
    chat_draft.headers.clear()
    refused(chat_draft, "api_key", "You didn't provide an API key.", status=401)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda r: None, id="as it stands"),
        pytest.param(lambda r: r.put("messages.0.role", "developer"), id="developer"),
        pytest.param(lambda r: r.put("messages.2.content", "Looking."), id="calls with words"),
        pytest.param(lambda r: r.put("messages.5", {"role": "assistant", "refusal": "No."}), id="a refusal"),
        pytest.param(lambda r: r.put("messages.6.content", ""), id="empty content"),
        pytest.param(lambda r: r.drop("messages.0"), id="no system message"),
        pytest.param(lambda r: r.drop("messages.6"), id="assistant last"),
        pytest.param(lambda r: r.put("unheard_of", 1), id="unknown field"),
    ],
)
def test_a_well_formed_request_is_answered(change: Any, chat_draft: Any, send_draft: Any) -> None:
    change(chat_draft)
    assert send_draft(chat_draft).body["object"] == "chat.completion"
