"""Which family a model's name belongs to when it is counted."""

import pytest

from lowwater.core.tokens.counting import CHAT, CLAUDE, RULES, rules_for


@pytest.mark.parametrize(
    ("model", "scale", "thinking"),
    [
        ("claude-opus-4-5-20251101", 1.18, "kept"),
        ("anthropic/claude-opus-4.6", 1.18, "kept"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 1.18, "turn"),
        ("claude-haiku-4-5", 1.18, "turn"),
        ("claude-3-5-sonnet-20241022", 1.18, "turn"),
        ("claude-opus-4-20250514", 1.18, "turn"),
        ("claude-opus-4.8", 1.9, "kept"),
        ("claude-opus-5-5", 1.9, "kept"),
        ("claude-fable-5-1", 1.9, "kept"),
    ],
)
def test_claude_is_counted_by_generation(model, scale, thinking):
    rules = rules_for(model)
    assert (rules.framing, rules.scale, rules.thinking) == (CLAUDE, scale, thinking)


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "qwen3.8-max", "who-knows", "", "claudette"])
def test_every_other_model_is_framed_as_chat(model):
    assert rules_for(model).framing == CHAT


def test_every_row_can_be_reached_and_says_where_it_comes_from():
    assert all(rules_for(rules.prefix) is rules for rules in RULES)
    assert all(rules.source for rules in RULES)
