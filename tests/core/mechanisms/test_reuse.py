"""What a result is worth keeping for: its kind first, then its age and length."""

from itertools import pairwise
from math import log

import pytest
from hypothesis import given
from hypothesis.strategies import floats, from_type
from msgspec.structs import replace

from lowwater.core.mechanisms.reuse import (
    Experience,
    ResultFacts,
    chance_of_later_use,
    chance_of_use,
    chances_of_use,
    facts_of,
    worth_per_token,
)
from lowwater.core.messages import Message, Text, ToolCall, ToolResult
from lowwater.core.tools import ToolClass
from lowwater.core.view import Original

KINDS: list[ToolClass] = ["write", "shell", "search", "read", "agent"]


def test_the_kind_of_tool_orders_the_chance_of_use() -> None:
    chances = [chance_of_use(kind, 3_000, 10) for kind in KINDS]
    assert chances == sorted(chances)
    assert all(low < high for low, high in pairwise(chances))


@pytest.mark.parametrize(
    ("kind", "chars", "measured"),
    [
        ("read", 1_200, 0.092),
        ("read", 3_500, 0.199),
        ("read", 35_000, 0.714),
        ("shell", 1_200, 0.027),
        ("shell", 10_000, 0.110),
        ("search", 3_500, 0.144),
        ("search", 10_000, 0.294),
    ],
)
def test_the_chance_is_near_what_was_measured_five_calls_later(
    kind: ToolClass, chars: int, measured: float
) -> None:
    assert chance_of_use(kind, chars, 5) == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize("kind", KINDS)
def test_it_falls_with_age_and_rises_with_length(kind: ToolClass) -> None:
    ages = [chance_of_use(kind, 3_000, age) for age in (5, 20, 80, 400)]
    assert ages == sorted(ages, reverse=True)
    lengths = [chance_of_use(kind, chars, 20) for chars in (0, 600, 6_000, 60_000, 10**9)]
    assert lengths == sorted(lengths)
    assert 0 <= lengths[0] <= lengths[-1] <= 1


def test_per_token_a_long_result_is_not_worth_more_than_two_half_as_long() -> None:
    whole, half = (worth_per_token("read", chars, chars // 4, 20) for chars in (20_000, 10_000))
    assert whole < half


def test_a_result_without_tokens_is_no_division_by_zero() -> None:
    assert worth_per_token("other", 0, 0, 0) == 0


def test_the_model_knows_what_was_changed_since_and_how_long_the_session_is() -> None:
    facts = ResultFacts(tool="read", chars=3_000, calls_ago=10, calls=40)
    assert chance_of_later_use(replace(facts, changed=True)) < chance_of_later_use(facts)
    assert chance_of_later_use(replace(facts, calls=400)) < chance_of_later_use(facts)
    assert chance_of_later_use(replace(facts, calls_ago=80)) < chance_of_later_use(facts)


def test_more_uses_than_expected_raise_the_chances_and_fewer_lower_them() -> None:
    facts = ResultFacts(tool="read", chars=3_000, calls_ago=10, calls=40)
    often, rarely = Experience(expected=5, observed=20), Experience(expected=20, observed=2)
    chances = [chance_of_later_use(facts, log(each.factor)) for each in (rarely, Experience(), often)]
    assert chances[1] == chance_of_later_use(facts)
    assert all(low < high for low, high in pairwise(chances))
    assert (
        Experience(expected=5, observed=5, before=2.0).factor > 1
    )  # what other sessions showed still counts


def test_facts_are_read_from_the_view() -> None:
    messages = [
        Message(role="user", parts=(Text(text="Go on."),)),
        *_call("1", "read_file", '{"path": "./src/a.py"}'),
        *_call("2", "bash", '{"command": "ls"}'),
        *_call("3", "edit_file", '{"path": "src/a.py", "old": "a", "new": "b"}'),
        Message(role="assistant", parts=(Text(text="Done."),)),
    ]
    items = [Original(number=at, message=each, tokens=500) for at, each in enumerate(messages, start=1)]
    facts = facts_of(items)
    assert [each and (each.tool, each.calls_ago, each.changed) for each in facts if each] == [
        ("read", 3, True),
        ("shell", 2, False),
        ("write", 1, False),
    ]
    assert {each.calls for each in facts if each} == {4}
    assert len(chances_of_use(items)) == len(items)
    assert chances_of_use([]) == []


@given(facts=from_type(ResultFacts), experience=floats(-5, 5))
def test_a_chance_is_a_chance_whatever_the_facts(facts: ResultFacts, experience: float) -> None:
    small = replace(
        facts,
        chars=abs(facts.chars) % 10**9,
        calls_ago=abs(facts.calls_ago) % 10**6,
        calls=abs(facts.calls) % 10**6,
    )
    assert 0 < chance_of_later_use(small, experience) < 1


def _call(key: str, tool: str, arguments: str) -> list[Message]:
    return [
        Message(role="assistant", parts=(ToolCall(id=key, name=tool, arguments=arguments),)),
        Message(role="tool", parts=(ToolResult(call_id=key, parts=(Text(text="x" * 2_000),)),)),
    ]
