"""The Messages rules about a request's form."""

from typing import Any

import pytest

BROKEN = [
    ("version_header", lambda r: r.headers.pop("anthropic-version"), "anthropic-version: header is required"),
    ("readable_json", lambda r: setattr(r, "raw", b'{"model": "c'), "not valid JSON"),
    ("readable_json", lambda r: setattr(r, "raw", b'{"model": "\xff"}'), "not valid JSON"),
    ("readable_json", lambda r: setattr(r, "raw", b"[" * 2_000), "not valid JSON"),
    ("readable_json", lambda r: setattr(r, "raw", b"[]"), "not valid JSON"),
    ("required_fields", lambda r: r.drop("model"), "model: Field required"),
    ("required_fields", lambda r: r.drop("messages"), "messages: Field required"),
    ("required_fields", lambda r: r.drop("max_tokens"), "max_tokens: Field required"),
    ("required_fields", lambda r: r.put("max_tokens", True), "max_tokens: Input should be a valid integer"),
    ("max_tokens_positive", lambda r: r.put("max_tokens", 0), "max_tokens: Input should be greater than or"),
    ("messages_given", lambda r: r.put("messages", []), "at least one message is required"),
    ("message_shape", lambda r: r.put("messages.1", "x"), "messages.1: Input should be a valid dictionary"),
    ("message_shape", lambda r: r.drop("messages.1.role"), "messages.1.role: Field required"),
    ("message_shape", lambda r: r.drop("messages.1.content"), "messages.1.content: Field required"),
    ("message_shape", lambda r: r.put("messages.0.content", None), "messages.0.content: Input should be a"),
    ("message_shape", lambda r: r.drop("messages.1.content.0.type"), "messages.1.content.0.type: Field"),
    ("block_shape", lambda r: r.drop("messages.1.content.1.input"), "messages.1.content.1.tool_use.input:"),
    (
        "block_shape",
        lambda r: r.put("messages.2.content.0.content", 1),
        "messages.2.content.0.tool_result.content: Input should be a valid list",
    ),
    (
        "block_shape",
        lambda r: r.put("messages.2.content.1.content.0.text", None),
        "messages.2.content.1.tool_result.content.0.text.text: Input should be a valid string",
    ),
    ("system_shape", lambda r: r.put("system", 3), "system: Input should be a valid list"),
    ("system_shape", lambda r: r.drop("system.0.text"), "system.0.text.text: Field required"),
    ("tool_shape", lambda r: r.drop("tools.1.input_schema"), "tools.1.custom.input_schema: Field required"),
    ("tool_shape", lambda r: r.put("tools", {}), "tools: Input should be a valid list"),
    ("tool_name_pattern", lambda r: r.put("tools.0.name", "ba sh"), "tools.0.custom.name: String should"),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_a_malformed_request_is_refused(
    rule: str, change: Any, says: str, messages_draft: Any, refused: Any
) -> None:
    change(messages_draft)
    assert refused(messages_draft, rule, says)["type"] == "invalid_request_error"


def test_a_request_without_a_key_is_refused(messages_draft: Any, refused: Any) -> None:
    messages_draft.headers.pop("x-api-key")
    error = refused(messages_draft, "api_key", "x-api-key header is required", status=401)
    assert error["type"] == "authentication_error"


def test_a_bearer_token_is_a_key(messages_draft: Any, send_draft: Any) -> None:
    messages_draft.headers.pop("x-api-key")
    messages_draft.headers["authorization"] = "Bearer token"
    assert send_draft(messages_draft).status == 200


def test_a_body_above_32_megabytes_is_refused(messages_draft: Any, refused: Any) -> None:
    messages_draft.raw = b" " * (32 * 1024 * 1024 + 1)
    error = refused(messages_draft, "body_size", "Request exceeds the maximum size", status=413)
    assert error["type"] == "request_too_large"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda r: None, id="as it stands"),
        pytest.param(lambda r: r.drop("system"), id="no system prompt"),
        pytest.param(lambda r: r.put("system", "Be brief."), id="system a string"),
        pytest.param(
            lambda r: r.insert("messages.2.content.3", {"type": "hologram"}), id="unknown block type"
        ),
        pytest.param(
            lambda r: r.insert("tools.2", {"type": "bash_20250124", "name": "shell"}),
            id="the provider's own tool",
        ),
        pytest.param(lambda r: r.put("an_unheard_of_field", {"x": 1}), id="unknown field"),
        pytest.param(lambda r: r.put("model", "anthropic/claude-sonnet-4-5"), id="a router's model name"),
    ],
)
def test_a_well_formed_request_is_answered(change: Any, messages_draft: Any, send_draft: Any) -> None:
    change(messages_draft)
    assert send_draft(messages_draft).body["type"] == "message"
