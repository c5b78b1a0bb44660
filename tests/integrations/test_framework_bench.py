"""The bench of frameworks: its own parts, and the whole session with Lowwater in every framework of this environment."""

from typing import Any

import msgspec
import pytest

from bench.frameworks import __main__ as command
from bench.frameworks.billing import Biller, moved_prefixes
from bench.frameworks.roster import FRAMEWORKS
from bench.frameworks.running import play
from bench.frameworks.scripted import ScriptedModel
from bench.frameworks.table import table
from bench.frameworks.task import TOOL, days_of, fact_of, facts_until, log_of, question, service_of
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.testing.provider import CallTools, Say, Seen

NAMES = ("LangChain", "OpenAI Agents", "OpenAI Agents, Responses", "pydantic-ai")
OURS = {framework.name: framework for framework in FRAMEWORKS if framework.name in NAMES}
TOOLS = [{"type": "function", "function": {"name": TOOL, "parameters": {}}}]
COUNT = tokenizer_for("o200k").count


def seen(messages: list[Any], *, tools: Any = TOOLS, answer: Any = None) -> Seen:
    body = {"model": "gpt-5.5", "messages": messages, **({"tools": tools} if tools else {})}
    return Seen(
        method="POST",
        path="/v1/chat/completions",
        headers={},
        raw=msgspec.json.encode(body),
        body=body,
        answer=answer,
    )


def user(step: int) -> Any:
    return {"role": "user", "content": question(step)}


def test_a_log_is_always_the_same_and_holds_its_fact_once() -> None:
    assert log_of("mail", 7) == log_of("mail", 7) != log_of("mail", 8)
    assert log_of("mail", 7).count(fact_of("mail", 7)) == 1
    assert 1_500 < COUNT(log_of("mail", 7)) < 2_200
    assert len(set(facts_until(60))) == 96


def test_the_scripted_model_reads_what_the_task_says_and_then_answers() -> None:
    model = ScriptedModel()
    first = model(seen([user(15)]))
    assert isinstance(first, CallTools)
    assert [call.arguments["day"] for call in first.calls] == list(days_of(15, 1)) == [153, 154]
    assert isinstance(model(seen([user(15), {"role": "tool", "content": "x"}])), CallTools)
    assert model(seen([{"role": "tool", "content": "x"}])) == Say(
        f"In step 15 {service_of(15)} refused connections and dropped batches."
    )


def test_a_request_without_the_tool_is_one_for_a_summary() -> None:
    model = ScriptedModel()
    assert isinstance(model(seen([user(3)], tools=None)), Say)
    assert model.step == 0


def test_prefixes_are_compared_without_marks_and_without_summary_calls() -> None:
    said = {"role": "assistant", "content": "Yes."}
    marked = {"role": "user", "content": [{"type": "text", "text": question(1), "cache_control": {"type": "ephemeral"}}]}  # fmt: skip
    requests = [
        seen([user(1)], answer=Say("Yes.")),
        seen([{"role": "user", "content": "Sum up."}], tools=None, answer=Say("x")),
        seen([marked, said, user(2)], answer=Say("Yes.")),
    ]
    assert moved_prefixes(requests) == 0
    assert moved_prefixes([*requests, seen([said, user(2)], answer=Say("Yes."))]) == 1


def test_a_request_that_was_refused_costs_nothing() -> None:
    biller = Biller(COUNT, 64_000)
    assert biller.usage_of(seen([user(1)])) is None
    billed = biller.usage_of(seen([user(1)], answer=Say("Yes.")))
    assert billed is not None
    assert billed.prompt > COUNT(question(1))


def test_the_command_tells_when_nothing_compacts_and_the_window_is_full(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = play(OURS["OpenAI Agents"], "none", turns=12, model="gpt-5.5", window=16_000)
    (row,) = table([outcome], turns=12)[2:]
    assert outcome.refused in {"prompt_fits", "output_fits"}
    assert f"{outcome.turns}, overflow at turn {outcome.turns + 1}" in row
    assert command.missed([outcome], 12) == []


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-opus-5-5"])
def test_sixty_turns_beyond_the_window_with_lowwater(name: str, model: str) -> None:
    framework = OURS[name]
    if model.startswith("claude") and not framework.speaks_anthropic:
        pytest.skip(f"{name} does not speak to {model} by itself")
    outcome = play(framework, "lowwater", turns=60, model=model, window=64_000)
    assert outcome.told.error == ""
    assert (outcome.turns, outcome.refusals) == (60, 0)
    assert outcome.told.kept == outcome.facts == 96
    assert outcome.bill.calls == 132
    assert 0 < outcome.moved == outcome.told.compactions
    recorded = outcome.told.recorded
    assert recorded == {
        name: value for name, value in msgspec.to_builtins(outcome.bill.usage).items() if value
    }
