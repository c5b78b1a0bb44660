"""The Messages rules about size."""

from typing import Any

import pytest

BROKEN = [
    ("prompt_fits", lambda r: r.put("messages.4.content", "x" * 200_000), "prompt is too long: 50078 tokens"),
    ("output_fits", lambda r: r.put("max_tokens", 49_921), "input length and `max_tokens` exceed context"),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_what_does_not_fit_is_refused(
    rule: str, change: Any, says: str, messages_draft: Any, refused: Any
) -> None:
    change(messages_draft)
    assert refused(messages_draft, rule, says)["type"] == "invalid_request_error"


def test_a_prompt_of_any_size_can_be_counted(messages_draft: Any, send_draft: Any) -> None:
    messages_draft.path = "/v1/messages/count_tokens"
    messages_draft.drop("max_tokens")
    messages_draft.put("messages.4.content", "x" * 200_000)
    assert send_draft(messages_draft).body == {"input_tokens": 50_078}
