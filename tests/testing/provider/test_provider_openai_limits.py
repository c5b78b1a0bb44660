"""The chat rules about size, cache breakpoints and streaming options."""

from typing import Any

import pytest


def breakpoints(draft: Any, number: int, model: str = "gpt-5.6-sol") -> None:
    part = {"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}
    draft.put("model", model)
    draft.put("messages.1.content", [part] * number)


def lifetime(draft: Any, ttl: str, model: str = "gpt-5.6-sol") -> None:
    draft.put("model", model)
    draft.put("prompt_cache_options", {"ttl": ttl})


BROKEN = [
    (
        "output_limit_positive",
        lambda r: r.put("max_completion_tokens", 0),
        "Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
        "integer_below_min_value",
    ),
    ("output_limit_positive", lambda r: r.put("max_tokens", "9"), "Invalid type for", "invalid_type"),
    (
        "stream_options_need_stream",
        lambda r: (r.put("stream", True), r.put("stream_options", True)),
        "Invalid type for 'stream_options': expected an object, but got a boolean instead.",
        "invalid_type",
    ),
    (
        "stream_options_need_stream",
        lambda r: r.put("stream_options", {"include_usage": True}),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        None,
    ),
    (
        "breakpoints_supported",
        lambda r: breakpoints(r, 1, "gpt-5.5"),
        "prompt_cache_breakpoint is not supported on this model",
        "invalid_parameter",
    ),
    ("at_most_four_breakpoints", lambda r: breakpoints(r, 5), "A maximum of 4", "invalid_value"),
    ("lifetime_sold", lambda r: lifetime(r, "12h"), "Invalid value: '12h'. Supported", "invalid_value"),
    ("lifetime_sold", lambda r: r.put("prompt_cache_options", "30m"), "Invalid type for", "invalid_type"),
    (
        "prompt_fits",
        lambda r: r.put("messages.6.content", "x" * 200_000),
        "This model's maximum context length is 50000 tokens. However, your messages resulted in 50080 tokens.",
        "context_length_exceeded",
    ),
    (
        "output_fits",
        lambda r: r.put("max_completion_tokens", 49_919),
        "However, you requested 50001 tokens (82 in the messages, 49919 in the completion).",
        "context_length_exceeded",
    ),
]


@pytest.mark.parametrize(("rule", "change", "says", "code"), BROKEN)
def test_what_goes_beyond_a_limit_is_refused(
    rule: str, change: Any, says: str, code: str | None, *, chat_draft: Any, refused: Any
) -> None:
    change(chat_draft)
    assert refused(chat_draft, rule, says)["code"] == code


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda r: r.put("max_completion_tokens", 49_918), id="just fitting"),
        pytest.param(lambda r: breakpoints(r, 4), id="four breakpoints"),
        pytest.param(lambda r: breakpoints(r, 1, "gpt-6"), id="a breakpoint on a later model"),
        pytest.param(lambda r: lifetime(r, "30m"), id="the lifetime sold here"),
        pytest.param(lambda r: lifetime(r, "1h", "kimi-k3"), id="another provider's lifetime"),
    ],
)
def test_what_keeps_the_limits_is_answered(change: Any, chat_draft: Any, send_draft: Any) -> None:
    change(chat_draft)
    assert send_draft(chat_draft).status == 200
