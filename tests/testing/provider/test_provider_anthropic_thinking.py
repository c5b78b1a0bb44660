"""The Messages rules about thinking and what it is bound to."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.testing.provider.anthropic import Signer

BUDGET = {"type": "enabled", "budget_tokens": 1_024}
BETA = "thinking-binding-controls-2026-08-01"


def open_loop(draft: Any) -> Any:
    """End with results, two calls deep into one assistant turn."""
    draft.put("thinking", BUDGET)
    draft.put("messages", draft.at("messages")[:3])
    draft.drop("messages.2.content.2")
    call = {"type": "tool_use", "id": "toolu_3", "name": "bash", "input": {}}
    draft.insert("messages.3", {"role": "assistant", "content": [call]})
    result = {"type": "tool_result", "tool_use_id": "toolu_3"}
    draft.insert("messages.4", {"role": "user", "content": [result]})
    return draft


def bound(*changes: Callable[[Any], object], model: str = "claude-opus-5-5") -> Callable[[Any], None]:
    """Keep thinking that the model binds, then change something."""

    def both(draft: Any) -> None:
        draft.put("model", model)
        draft.think()
        for change in changes:
            change(draft)

    return both


def dropping(draft: Any, kind: str = "adaptive", beta: str = BETA, behaviour: str = "drop_block") -> None:
    binding = {"prefix_mismatch_behavior": behaviour}
    draft.put("thinking", {"type": kind, "budget_tokens": 1_024, "block_binding": binding})
    draft.headers["anthropic-beta"] = beta


def rewritten(draft: Any) -> None:
    draft.put("messages.0.content", "List all files.")


BROKEN = [
    ("thinking_config", lambda r: r.put("thinking", {"type": "hard"}), "thinking: Input tag found"),
    (
        "thinking_config",
        lambda r: r.put("thinking", {"type": "enabled", "budget_tokens": 500}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    (
        "thinking_config",
        lambda r: r.put("thinking", {"type": "enabled", "budget_tokens": 2_000}),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    (
        "thinking_config",
        bound(lambda r: dropping(r, behaviour="ignore")),
        "thinking.adaptive.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'",
    ),
    (
        "binding_controls_need_beta",
        bound(lambda r: dropping(r, beta="other-2026-01-01")),
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
    ),
    (
        "thinking_leads_message",
        lambda r: (r.put("thinking", BUDGET), r.think("messages.1.content.1")),
        "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be",
    ),
    ("thinking_opens_tool_loop", open_loop, "messages.1.content.0.type: Expected `thinking` or"),
    (
        "thinking_unmodified",
        lambda r: (r.put("messages", r.at("messages")[:3]), r.think(thinking="H")),
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be",
    ),
    ("thinking_signed", lambda r: r.think(thinking="H"), "messages.1.content.0: Invalid `signature` in"),
    ("thinking_signed", lambda r: r.think(signature="bm90IG91cnM="), "messages.1.content.0: Invalid"),
    ("thinking_signed", lambda r: r.think(signature=""), "Invalid `signature`"),
    ("thinking_signed", lambda r: r.think(signature="é"), "Invalid `signature`"),
    (
        "thinking_signed",
        lambda r: r.think(signature=Signer(b"other").sign(r.body["model"], "Hm.", [])),
        "Invalid `signature` in `thinking` block",
    ),
    (
        "thinking_signed",
        lambda r: r.insert("messages.1.content.0", {"type": "redacted_thinking", "data": "x"}),
        "messages.1.content.0: Invalid `signature` in `redacted_thinking` block",
    ),
    ("thinking_bound", bound(rewritten), "messages.1.content.0: Invalid `signature` in `thinking` block."),
    ("thinking_bound", bound(lambda r: r.put("system", "Be very brief.")), "The `system` prompt differs"),
    (
        "thinking_bound",
        bound(lambda r: r.put("tools.0.description", "Runs a command.")),
        "The `tools` differ from those this block was created with.",
    ),
    ("thinking_bound", bound(rewritten, lambda r: dropping(r, kind="enabled")), "The block is bound to a"),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_illegal_thinking_is_refused(
    rule: str, change: Any, says: str, messages_draft: Any, refused: Any
) -> None:
    change(messages_draft)
    assert refused(messages_draft, rule, says)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda r: r.think(), id="genuine"),
        pytest.param(lambda r: open_loop(r).think(), id="at the head of an open loop"),
        pytest.param(lambda r: open_loop(r).put("thinking.type", "adaptive"), id="stripped, adaptive"),
        pytest.param(bound(), id="bound, prefix unchanged"),
        pytest.param(bound(lambda r: r.mark("system.0", "tools.1")), id="bound, marks moved"),
        pytest.param(
            bound(lambda r: r.put("messages.0.content", [{"type": "text", "text": "List the files."}])),
            id="bound, a string made a block",
        ),
        pytest.param(bound(lambda r: r.put("messages.4.content", "Other.")), id="bound, change behind it"),
        pytest.param(
            bound(rewritten, lambda r: r.drop("messages.1.content.0")), id="bound, prefix changed, stripped"
        ),
        pytest.param(
            bound(rewritten, model="claude-opus-4-8"), id="a model that binds nothing, prefix changed"
        ),
    ],
)
def test_legal_thinking_is_accepted(change: Any, messages_draft: Any, send_draft: Any) -> None:
    change(messages_draft)
    got = send_draft(messages_draft).body
    assert got["type"] == "message", got
    assert "input_transformations" not in got


def test_a_mismatched_block_is_dropped_when_asked_for(messages_draft: Any, send_draft: Any) -> None:
    bound(rewritten, dropping)(messages_draft)
    assert send_draft(messages_draft).body["input_transformations"] == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    ]
