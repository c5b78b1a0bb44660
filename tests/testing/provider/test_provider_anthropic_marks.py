"""The Messages rules about cache marks."""

from typing import Any

import pytest

BROKEN = [
    (
        "mark_shape",
        lambda r: r.mark("messages.1.content.0", type="persistent"),
        "messages.1.content.0.cache_control: Input tag",
    ),
    ("mark_shape", lambda r: r.mark("system.0", ttl="2h"), "system.0.cache_control.ephemeral.ttl: Input"),
    (
        "at_most_four_marks",
        lambda r: r.mark("tools.0", "tools.1", "system.0", "messages.2.content.0", "messages.2.content.1"),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        "at_most_four_marks",
        lambda r: r.mark("tools.0", "tools.1", "system.0", "messages.2.content.1.content.0", ""),
        "Found 5.",
    ),
    (
        "no_mark_on_thinking",
        lambda r: (r.think(), r.mark("messages.1.content.0")),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    (
        "no_mark_on_empty_text",
        lambda r: (r.put("messages.1.content.0.text", ""), r.mark("messages.1.content.0")),
        "messages.1.content.0.text: cache_control cannot be set for empty text blocks",
    ),
    (
        "long_marks_first",
        lambda r: (r.mark("tools.1"), r.mark("system.0", ttl="1h")),
        "system.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.",
    ),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_an_illegal_mark_is_refused(
    rule: str, change: Any, says: str, messages_draft: Any, refused: Any
) -> None:
    change(messages_draft)
    assert refused(messages_draft, rule, says)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda r: r.mark("tools.1", "system.0", "messages.1.content.2", "messages.2.content.2"), id="four"
        ),
        pytest.param(
            lambda r: (r.mark("tools.1", ttl="1h"), r.mark("system.0")), id="an hour before five minutes"
        ),
        pytest.param(
            lambda r: (r.mark("tools.1", ttl="1h"), r.mark("system.0", ttl="1h")), id="two of an hour"
        ),
        pytest.param(lambda r: r.put("messages.2.content.0.cache_control", None), id="null is no mark"),
        pytest.param(lambda r: r.mark(""), id="on the request"),
    ],
)
def test_a_legal_mark_is_accepted(change: Any, messages_draft: Any, send_draft: Any) -> None:
    change(messages_draft)
    assert send_draft(messages_draft).body["type"] == "message"
