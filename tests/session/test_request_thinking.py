"""What a client says about thinking reaches the provider, unless a compaction made it illegal."""

from typing import Any

import msgspec
import pytest

from lowwater.session.request import PreparedRequest
from lowwater.testing.views import Script

DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
BUDGET = {"type": "enabled", "budget_tokens": 2_000}


def thinking_sent(config: Any, *, thought: str) -> Any:
    """What is sent in a tool loop whose first answer begins with `thought`, if that is anything."""
    messages = Script("anthropic").user("go").calls("bash", {}, "ok", thinking=thought).messages()
    request = PreparedRequest(
        messages=tuple(messages), detected_format="anthropic", thinking=msgspec.json.encode(config)
    )
    return request.as_anthropic()["thinking"]


@pytest.mark.parametrize("thought", ["Hm.", ""], ids=["kept", "stripped"])
def test_a_wish_to_have_unbound_thinking_dropped_is_passed_on(thought: str) -> None:
    assert thinking_sent(DROP, thought=thought) == DROP


def test_a_budget_is_disabled_only_where_the_loop_no_longer_begins_with_thinking() -> None:
    assert thinking_sent(BUDGET, thought="Hm.") == BUDGET
    assert thinking_sent(BUDGET, thought="") == {"type": "disabled"}
