"""Head and tail are protected, and grow to whole groups (specification C2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.mechanisms.edits import newest_user
from lowwater.core.mechanisms.mechanism import find_zones, smallest_tail
from lowwater.core.mechanisms.spans import replace_span
from lowwater.core.messages import Message, Span, legal_cuts
from lowwater.core.view import Item, Original, Summary
from lowwater.testing.strategies import conversations
from lowwater.testing.views import PICTURE, Script, lines, making, size


def numbered(messages: list[Message]) -> list[Item]:
    return [Original(number=at, message=m, tokens=size(m)) for at, m in enumerate(messages, start=1)]


def loop(turns: int) -> Script:
    script = Script().user("Fix the tests.")
    for turn in range(turns):
        script.calls("bash", {"command": f"step {turn}"}, lines(10))
    return script


def test_c2_a_summary_is_never_head() -> None:
    items = loop(10).items()
    compacted = replace_span(items, Span(start=1, stop=9), "What was done.", making())
    assert isinstance(compacted[1], Summary)
    assert find_zones(compacted, first=5, last=2, tail_tokens=0).head == 1


def test_c2_at_the_wall_parallel_results_stay_with_their_calls() -> None:
    script = loop(5).asks(("bash", {}), ("bash", {})).answers("call_6").answers("call_7")
    items = script.items()
    zones = find_zones(items, first=1, last=20, tail_tokens=0)
    assert smallest_tail(items, zones).tail == len(items) - 3


def test_c2_at_the_wall_only_the_newest_message_stays_where_nobody_answered_yet() -> None:
    script = Script()
    for part in range(30):
        script.user(f"part {part}")
    items = script.items()
    zones = find_zones(items, first=1, last=20, tail_tokens=0)
    assert smallest_tail(items, zones).tail == 29
    assert smallest_tail([], find_zones([], first=1, last=1, tail_tokens=0)).tail == 0


@given(
    conversations(),
    st.integers(min_value=0, max_value=40),
    st.integers(min_value=0, max_value=40),
    st.integers(min_value=0, max_value=500),
)
def test_c2_zones_fall_between_groups_and_only_grow(
    messages: list[Message], first: int, last: int, tokens: int
) -> None:
    items = numbered(messages)
    zones = find_zones(items, first=first, last=last, tail_tokens=tokens)
    cuts = legal_cuts(messages)
    assert {zones.head, zones.tail} <= set(cuts)
    assert zones.head >= min(first, len(items))
    assert len(items) - zones.tail >= min(last, len(items) - zones.head)
    assert zones.head <= zones.tail
    wall = smallest_tail(items, zones)
    assert wall.tail in cuts
    assert wall.tail >= zones.tail


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "openai_responses"])
def test_the_newest_user_message_is_the_last_in_which_the_user_says_or_shows_something(format: str) -> None:
    script = Script(format)  # type: ignore[arg-type]  # the parameter's literals
    script.user("Fix it.").calls("bash", {}).user("", PICTURE).says("I see.").calls("bash", {})
    items = script.items()
    newest = newest_user(items)
    assert newest is not None
    assert any(part.kind == "image" for part in items[newest].message.parts)


def test_the_newest_user_message_is_no_summary_of_this_session_or_another() -> None:
    items = loop(10).items()
    compacted = replace_span(items, Span(start=0, stop=9), "What was done.", making())
    elsewhere = numbered([item.message for item in compacted])
    assert newest_user(compacted) == 1
    assert newest_user(elsewhere) == 1
    assert newest_user(elsewhere[:1]) is None


def test_a_user_who_quotes_a_summary_still_says_something() -> None:
    compacted = replace_span(loop(10).items(), Span(start=0, stop=9), "What was done.", making())
    quoted = f"What does this mean?\n{compacted[0].message.text}"
    assert newest_user(Script().user(quoted).items()) == 0
