"""What holds for all rules together."""

from collections.abc import Sequence
from typing import Any

import pytest

from lowwater.testing.provider.anthropic import MessagesDialect
from lowwater.testing.provider.openai import ChatDialect
from lowwater.testing.provider.prompt import Ids
from tests.testing.provider import test_provider_anthropic_compaction as anthropic_compaction
from tests.testing.provider import test_provider_anthropic_conversation as anthropic_conversation
from tests.testing.provider import test_provider_anthropic_limits as anthropic_limits
from tests.testing.provider import test_provider_anthropic_marks as anthropic_marks
from tests.testing.provider import test_provider_anthropic_shape as anthropic_shape
from tests.testing.provider import test_provider_anthropic_thinking as anthropic_thinking
from tests.testing.provider import test_provider_openai_conversation as openai_conversation
from tests.testing.provider import test_provider_openai_limits as openai_limits
from tests.testing.provider import test_provider_openai_shape as openai_shape

BROKEN = {
    "anthropic": (
        anthropic_shape,
        anthropic_conversation,
        anthropic_marks,
        anthropic_thinking,
        anthropic_limits,
        anthropic_compaction,
    ),
    "openai": (openai_shape, openai_conversation, openai_limits),
}
"""The tests that break the rules of a provider; each has a list of requests with the rule that refuses it."""
APART = {
    "api_key",
    "body_size",
    "at_most_four_chat_marks",
    "mark_not_on_message",
    "mark_on_text",
    "mark_where_router_looks",
}
"""Rules that are broken by tests of their own: those about headers and size here, those about routers in tests/spec."""


@pytest.mark.parametrize(
    ("provider", "rules"),
    [
        ("anthropic", MessagesDialect(ids=Ids(), key=b"").rules),
        ("openai", ChatDialect(ids=Ids()).rules),
    ],
)
def test_every_rule_has_a_request_that_breaks_it(provider: str, rules: Sequence[Any]) -> None:
    broken = {case[0] for module in BROKEN[provider] for case in module.BROKEN}
    assert broken == {rule.__name__ for rule in rules} - APART
