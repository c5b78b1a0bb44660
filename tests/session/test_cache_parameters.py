"""The parameters of a request that a provider's cache depends on are given to `prepare`, and belong to the prefix."""

from typing import Any

import pytest

from lowwater.core.formats.codec import as_message
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.testing.fakes import ScriptedClock

LONG = "All of this stands in the prefix. " * 900


def answered(session: Session, **parameters: Any) -> None:
    session.append({"role": "user", "content": "go on"})
    session.prepare(system=LONG, **parameters)
    session.record(as_message([{"type": "text", "text": "yes"}], internals(session).expected_usage))


@pytest.mark.parametrize(
    ("first", "then", "warm"),
    [
        ({}, {}, True),
        ({"tool_choice": {"type": "auto"}}, {"tool_choice": {"type": "auto"}}, True),
        ({"tool_choice": {"type": "auto"}}, {"tool_choice": {"type": "none"}}, False),
        ({}, {"thinking": {"type": "enabled", "budget_tokens": 2_000}}, False),
    ],
    ids=["none", "same choice", "another choice", "thinking switched on"],
)
def test_a_changed_parameter_is_another_prefix(first: Any, then: Any, warm: bool) -> None:
    session = Lowwater(model="claude-haiku-4-5", clock=ScriptedClock()).session()
    answered(session, **first)
    session.append({"role": "user", "content": "more"})
    session.prepare(system=LONG, **then)
    assert (internals(session).expected_usage.cache_read > 0) is warm


def test_a_tool_choice_is_part_of_the_request() -> None:
    session = Lowwater(model="gpt-4o").session()
    session.append({"role": "user", "content": "hi"})
    request = session.prepare(tool_choice="none")
    assert request.as_openai()["tool_choice"] == "none"
    assert "tool_choice" not in session.prepare().as_openai()
