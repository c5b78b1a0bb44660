"""The chat rules about calls and the messages that answer them."""

from typing import Any

import pytest

BROKEN = [
    (
        "call_ids_unique",
        lambda r: r.put("messages.2.tool_calls.1.id", "call_1"),
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'call_1', in messages[2].",
        "messages.[2].tool_calls",
    ),
    ("calls_answered", lambda r: r.drop("messages.4"), "The following tool_call_ids", "messages.[3].role"),
    (
        "calls_answered",
        lambda r: r.insert("messages.4", {"role": "user", "content": "Wait."}),
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        "messages.[3].role",
    ),
    (
        "calls_answered",
        lambda r: r.put("messages", r.at("messages")[:3]),
        "did not have response messages: call_1, call_2",
        "messages.[3].role",
    ),
    ("answers_called", lambda r: r.drop("messages.2"), "messages with role 'tool' must", "messages.[2].role"),
    (
        "answers_called",
        lambda r: r.insert("messages.5", {"role": "tool", "tool_call_id": "call_9", "content": "x"}),
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "messages.[5].role",
    ),
    (
        "one_answer_per_call",
        lambda r: r.insert("messages.4", r.at("messages.3")),
        "Duplicate value for 'tool_call_id' of 'call_1', in messages[3] and messages[4].",
        "messages.[4].tool_call_id",
    ),
]


@pytest.mark.parametrize(("rule", "change", "says", "param"), BROKEN)
def test_an_illegal_conversation_is_refused(
    rule: str, change: Any, says: str, param: str, *, chat_draft: Any, refused: Any
) -> None:
    change(chat_draft)
    assert refused(chat_draft, rule, says)["param"] == param
