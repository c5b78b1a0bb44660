"""The Messages rules about size."""

from typing import Any

import pytest

BROKEN = [
    pytest.param(
        "prompt_fits",
        lambda r: r.put("messages.4.content", "x" * 200_000),
        "prompt is too long: 50078 tokens > 50000 maximum",
        id="prompt alone",
    ),
    pytest.param(
        "output_fits",
        lambda r: r.put("max_tokens", 49_921),
        "input length and `max_tokens` exceed context limit: 80 + 49921 > 50000, decrease",
        id="prompt and output",
    ),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_what_does_not_fit_is_refused(
    rule: str, change: Any, says: str, messages_draft: Any, refused: Any
) -> None:
    change(messages_draft)
    assert refused(messages_draft, rule, says)["type"] == "invalid_request_error"


def test_what_just_fits_is_answered(messages_draft: Any, send_draft: Any) -> None:
    messages_draft.put("max_tokens", 49_920)
    assert send_draft(messages_draft).status == 200


def test_a_prompt_of_any_size_can_be_counted(messages_draft: Any, send_draft: Any) -> None:
    messages_draft.path = "/v1/messages/count_tokens"
    messages_draft.drop("max_tokens")
    messages_draft.put("messages.4.content", "x" * 200_000)
    assert send_draft(messages_draft).body == {"input_tokens": 50_078}


def test_counting_keeps_the_other_rules(messages_draft: Any, refused: Any) -> None:
    messages_draft.path = "/v1/messages/count_tokens"
    messages_draft.drop("messages.2.content.0")
    refused(messages_draft, "calls_answered", "messages.1: `tool_use` ids were found")
