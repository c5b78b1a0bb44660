"""Models that bind thinking to what stood before it get none back behind a change (invariant 4)."""

from typing import Any

import pytest
from msgspec.structs import replace

from lowwater.core.events import TurnRecord
from lowwater.observe.measures import THINKING_OFF, measured_turn
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider import Call, CallTools, Say, Think

TOOLS = [{"name": "bash", "input_schema": {"type": "object"}}]
SYSTEM = "You are a careful engineer."
OUTPUT = "\n".join(f"src/part_{line}.py: value_{line} = {line * 31}" for line in range(120))


def open_session(model: str = "claude-opus-5-5") -> Session:
    """A session that is compacted only by hand, in a window that makes this worth while."""
    session = Lowwater(model=model, policy="never").session()
    session.learn_context_length(120_000)
    return session


def ask(session: Session, claude: Any, text: str, **fields: Any) -> None:
    """One question, two rounds of tools and an answer, every step with thinking."""
    session.append({"role": "user", "content": text})
    for step in range(2):
        calls = CallTools((Call("bash", {"command": f"grep {text} {step}"}),), "Looking.")
        response = claude.answer(prepared(session), Think(f"Thinking of {text}.", calls), **fields)
        session.record(response)
        call = next(block for block in response["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{text} {step}\n{OUTPUT}"}
        session.append({"role": "user", "content": [result]})
    session.record(claude.answer(prepared(session), Think("That is it.", Say(f"Done with {text}."))))


def prepared(session: Session, **options: Any) -> Any:
    return session.prepare(system=SYSTEM, tools=TOOLS, **options)


def thinking_in(request: Any) -> int:
    return sum(len(message.thinking) for message in request.messages)


@pytest.fixture
def session(claude: Any) -> Session:
    session = open_session()
    for number in range(12):
        ask(session, claude, f"question {number}")
    return session


def test_without_a_change_all_thinking_goes_back(session: Session, claude: Any) -> None:
    session.append({"role": "user", "content": "And now?"})
    request = prepared(session)
    assert thinking_in(request) == 36
    assert claude.refuses(request) == ""


def test_after_a_compaction_none_stands_behind_the_change(session: Session, claude: Any) -> None:
    event = session.compress()
    assert event is not None
    ask(session, claude, "one more")
    thoughts = [at for at, item in enumerate(internals(session).ledger.view.items) if item.message.thinking]
    assert thoughts == [1, *thoughts[1:]], "what stands before the change keeps its thinking"
    assert len(thoughts) == 1 + 3, "behind it only what was thought since"


def test_the_provider_would_refuse_it_otherwise(session: Session, claude: Any) -> None:
    before = prepared(session).messages
    session.compress()
    session.append({"role": "user", "content": "And now?"})
    request = prepared(session)
    kept = {message.digest for message in before}
    assert any(message.digest in kept for message in request.messages)
    originals = [
        next((old for old in before if old.calls and old.calls == message.calls), message)
        for message in request.messages
    ]
    assert claude.refuses(replace(request, messages=tuple(originals))) == "thinking_bound"


def test_undoing_a_compaction_brings_back_what_is_bound_to_the_old_prefix_only(
    session: Session, claude: Any
) -> None:
    session.compress()
    ask(session, claude, "in between")
    session.rewind("before-compaction-1")
    session.append({"role": "user", "content": "And now?"})
    request = prepared(session)
    assert claude.refuses(request) == ""
    assert thinking_in(request) == 36, "the thinking of before, and not that of in between"


@pytest.mark.parametrize("changed", ["system", "tools"])
def test_a_change_of_system_or_tools_takes_all_thinking_away(
    session: Session, claude: Any, changed: str
) -> None:
    session.append({"role": "user", "content": "And now?"})
    tools = [*TOOLS, {"name": "look", "input_schema": {"type": "object"}}]
    request = session.prepare(
        system="Be quick." if changed == "system" else SYSTEM, tools=tools if changed == "tools" else TOOLS
    )
    assert claude.refuses(request) == ""
    assert thinking_in(request) == 0
    assert len(session.history()) == len(internals(session).ledger.messages)


def test_a_compaction_under_another_model_in_between_counts_too(session: Session, claude: Any) -> None:
    session.use("claude-haiku-4-5")
    session.compress()
    session.use("claude-opus-5-5")
    session.append({"role": "user", "content": "And now?"})
    assert claude.refuses(prepared(session)) == ""


def test_a_model_that_does_not_bind_keeps_the_thinking_of_its_tail(claude: Any) -> None:
    claude.model = "claude-opus-4-8"
    session = open_session("claude-opus-4-8")
    for number in range(12):
        ask(session, claude, f"question {number}")
    session.compress()
    session.append({"role": "user", "content": "And now?"})
    request = prepared(session)
    assert claude.refuses(request) == ""
    assert thinking_in(request) > 10


def test_a_thinking_budget_is_left_out_of_a_call_that_would_be_refused_for_it(
    claude: Any, caplog: pytest.LogCaptureFixture
) -> None:
    session = open_session()
    budget = {"type": "enabled", "budget_tokens": 2_000}
    ask(session, claude, "a warning")
    session.append({"role": "user", "content": "Look into everything."})
    for step in range(30):
        request = prepared(session, thinking=budget)
        assert request.as_anthropic()["thinking"] == budget
        calls = CallTools((Call("bash", {"command": f"cat {step}"}),))
        response = claude.answer(request, Think("Plan.", calls) if step == 0 else calls)
        session.record(response)
        call = next(block for block in response["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{step}\n{OUTPUT}"}
        session.append({"role": "user", "content": [result]})
    assert session.compress() is not None
    with caplog.at_level("WARNING", "lowwater"):
        compacted = prepared(session, thinking=budget)
        prepared(session, thinking=budget)
    assert sum("thinking is disabled until the user says something" in line for line in caplog.messages) == 1
    assert claude.refuses(compacted) == ""
    assert compacted.as_anthropic()["thinking"] == {"type": "disabled"}
    assert claude.refuses(compacted, thinking=budget) == "thinking_opens_tool_loop"
    session.record(claude.answer(compacted, Say("All looked into.")))
    session.append({"role": "user", "content": "And now?"})
    assert "thinking was disabled in 1 call" in str(session.status())
    later = prepared(session, thinking=budget)
    assert later.as_anthropic()["thinking"] == budget
    assert claude.refuses(later) == ""


@pytest.mark.parametrize("policy", ["threshold", "runway", "rent-or-buy"])
def test_an_answer_that_comes_to_open_a_tool_loop_gets_its_thinking_back(claude: Any, policy: str) -> None:
    """Thinking stands between all calls of one long loop, and goes where it is old; what is left then has to begin with some."""
    claude.model = "claude-opus-4-8"
    sink = RecordingSink()
    quiet = Settings(output=OutputSettings(quiet=True))
    library = Lowwater(model="claude-opus-4-8", policy=policy, store="memory:", sinks=[sink], settings=quiet)
    session = library.session("s")
    session.learn_context_length(48_000)
    budget = {"type": "enabled", "budget_tokens": 2_000}
    session.append({"role": "user", "content": "Look into everything."})
    for step in range(60):
        request = prepared(session, thinking=budget)
        assert request.as_anthropic()["thinking"] == budget, f"at step {step}"
        assert claude.refuses(request, thinking=budget) == ""
        calls = CallTools((Call("bash", {"command": f"cat {step}"}),))
        response = claude.answer(request, Think(f"Thinking of {step}. " * 20, calls))
        session.record(response)
        call = next(block for block in response["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{step}\n{OUTPUT}"}
        session.append({"role": "user", "content": [result]})
        if step % 20 == 19:
            session.compress()
    assert len(sink.compactions) >= 3
    assert session.status().totals.thinking_off == 0


def test_calls_without_thinking_are_in_the_accounts_and_the_metrics() -> None:
    record = TurnRecord(at=1.0, model="m", thinking_off=True)
    assert [each.value for each in measured_turn(record) if each.measure is THINKING_OFF] == [1]
    assert not [each for each in measured_turn(TurnRecord(at=1.0, model="m")) if each.measure is THINKING_OFF]
