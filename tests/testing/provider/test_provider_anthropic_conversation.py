"""The Messages rules about roles, content, calls and results."""

from typing import Any

import pytest

NEW = "claude-opus-5-5"


def results_one_turn_late(draft: Any) -> None:
    draft.insert("messages.2", {"role": "user", "content": "Wait."})
    draft.insert("messages.3", {"role": "assistant", "content": "Yes?"})


def system_message(draft: Any, at: int) -> None:
    draft.put("model", NEW)
    draft.insert(f"messages.{at}", {"role": "system", "content": "Mind the budget."})


def prefill(draft: Any, text: str, model: str = "claude-sonnet-4-5") -> None:
    draft.put("model", model)
    draft.drop("messages.4")
    draft.put("messages.3.content", text)


BROKEN = [
    ("known_roles", lambda r: r.put("messages.2.role", "tool"), "messages.2.role: Input should be 'user' or"),
    ("known_roles", lambda r: r.insert("messages.5", {"role": "system", "content": "x"}), "messages.5: role"),
    ("first_message_is_user", lambda r: r.drop("messages.0"), 'messages: first message must use the "user"'),
    ("system_message_follows_user", lambda r: system_message(r, 4), "messages.4: a 'system' message must"),
    (
        "blocks_fit_roles",
        lambda r: r.insert("messages.2.content.3", r.at("messages.1.content.1")),
        "messages.2.content.3: `tool_use` blocks can only be in `assistant` messages",
    ),
    (
        "blocks_fit_roles",
        lambda r: r.insert("messages.1.content.3", r.at("messages.2.content.0")),
        "messages.1.content.3: `tool_result` blocks can only be in `user` messages",
    ),
    ("prefill_supported", lambda r: prefill(r, "There are", model="claude-opus-4-6"), "This model does not"),
    ("content_not_empty", lambda r: r.put("messages.4.content", ""), "messages.4: all messages must have"),
    ("content_not_empty", lambda r: r.put("messages.3.content", []), "messages.3: all messages must have"),
    ("text_not_empty", lambda r: r.put("messages.1.content.0.text", ""), "messages: text content blocks"),
    ("text_not_blank", lambda r: r.put("messages.4.content", " \n"), "messages: text content blocks must"),
    ("system_text_not_empty", lambda r: r.put("system.0.text", ""), "system: text content blocks must be"),
    ("no_trailing_whitespace", lambda r: prefill(r, "There are "), "messages: final assistant content"),
    ("tools_defined", lambda r: r.drop("tools"), "Requests which include `tool_use` or `tool_result` blocks"),
    ("tool_names_unique", lambda r: r.put("tools.1.name", "bash"), "tools: Tool names must be unique."),
    (
        "tool_use_id_pattern",
        lambda r: r.put("messages.1.content.1.id", "functions.bash:0"),
        "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (
        "tool_use_id_pattern",
        lambda r: r.put("messages.2.content.0.tool_use_id", ""),
        "messages.2.content.0.tool_result.tool_use_id: String should match pattern",
    ),
    ("tool_use_ids_unique", lambda r: r.put("messages.1.content.2.id", "toolu_1"), "messages.1.content.2:"),
    ("calls_answered", lambda r: r.drop("messages.2.content.1"), "messages.1: `tool_use` ids were found"),
    ("calls_answered", results_one_turn_late, "messages.1: `tool_use` ids were found without `tool_result`"),
    ("calls_answered", lambda r: r.put("messages", r.at("messages")[:2]), "messages.1: `tool_use` ids were"),
    (
        "results_first",
        lambda r: r.insert("messages.2.content.0", r.drop("messages.2.content.2")),
        "messages.2: Did not find 2 `tool_result` block(s) at the beginning of this message.",
    ),
    ("results_called", lambda r: r.drop("messages.1.content.1"), "messages.2.content.0: unexpected"),
    ("results_called", lambda r: r.put("messages", r.at("messages")[2:]), "messages.0.content.0: unexpected"),
    (
        "one_result_per_call",
        lambda r: r.insert("messages.2.content.1", r.at("messages.2.content.0")),
        "messages.2.content.1: each tool_use must have a single result.",
    ),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_an_illegal_conversation_is_refused(
    rule: str, change: Any, says: str, messages_draft: Any, refused: Any
) -> None:
    change(messages_draft)
    assert refused(messages_draft, rule, says)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda r: r.insert("messages.5", {"role": "user", "content": "Really."}),
            id="two user messages in a row",
        ),
        pytest.param(
            lambda r: r.insert("messages.2", {"role": "user", "content": [r.drop("messages.2.content.0")]}),
            id="results in two messages in a row",
        ),
        pytest.param(lambda r: r.drop("messages.2.content.0.content"), id="result without content"),
        pytest.param(lambda r: r.put("messages.2.content.0.content", ""), id="result of an empty string"),
        pytest.param(lambda r: r.put("messages.2.content.1.content.0.text", ""), id="result of empty text"),
        pytest.param(lambda r: r.put("messages.1.content.0.text", "\n\n"), id="blank text beside a call"),
        pytest.param(lambda r: prefill(r, "There are"), id="prefill on an older model"),
        pytest.param(lambda r: prefill(r, ""), id="empty prefill"),
        pytest.param(lambda r: r.put("system", ""), id="empty system prompt"),
        pytest.param(lambda r: system_message(r, 5), id="system message behind the user on a newer model"),
    ],
)
def test_a_legal_conversation_is_answered(change: Any, messages_draft: Any, send_draft: Any) -> None:
    change(messages_draft)
    assert send_draft(messages_draft).body["type"] == "message"
