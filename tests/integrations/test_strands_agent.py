"""The Strands conversation manager with the real `Agent` of strands-agents from PyPI, in an environment of its own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.frameworks.billing import bill_of, moved_prefixes, standing
from bench.frameworks.roster import Framework
from bench.frameworks.running import COMPACTIONS, Outcome, play
from bench.frameworks.scripted import ScriptedModel
from bench.peers.environment import python_with
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen
from tests.integrations.scripted_recall import ANSWERED, FACT, Recalling

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
SCENARIOS = Path(__file__).with_name("strands_scenarios.py")
COUNT = tokenizer_for("o200k").count
MODEL, CLAUDE = "gpt-6.1-sol", "claude-opus-5-5"


def strands_python(_: str = "") -> Path:
    return python_with("strands", "strands-agents[anthropic,openai]==1.62.0", lowwater=True)


STRANDS = Framework(
    name="Strands",
    worker="strands_agent.py",
    own="SlidingWindowConversationManager",
    python=strands_python,
)


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario printed, and what the provider saw of it."""

    facts: dict[str, Any]
    requests: tuple[Seen, ...]

    @property
    def refused(self) -> list[str]:
        return [seen.refusal.rule for seen in self.requests if seen.refusal is not None]


def run(scenario: str, script: Callable[[Seen], Answer] | None = None, *, window: int = 64_000) -> Played:
    with Provider(script or ScriptedModel(), count=COUNT, default_context=window, now=standing) as provider:
        done = subprocess.run(
            [strands_python(), SCENARIOS, scenario, provider.anthropic_base_url],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        return Played(
            facts=msgspec.json.decode(done.stdout.strip().splitlines()[-1]), requests=provider.requests
        )


def test_a_second_process_goes_on_with_the_agents_messages_and_the_session():
    played = run("kept_on_disk")
    first, second = played.facts["first"], played.facts["second"]
    assert not played.refused
    assert first["name"] == second["name"] == "talk/a"
    assert second["compactions"] >= 1
    assert second["rewound"] == 0
    assert second["facts"] == second["held"] == second["listed"], "both keep everything"
    assert moved_prefixes(played.requests) == second["compactions"], (
        "nothing but compactions moves the prefix"
    )
    assert second["cost"] == bill_of(played.requests, MODEL, count=COUNT, window=64_000).cost


def test_agents_that_share_a_manager_and_an_event_loop_have_sessions_of_their_own():
    played = run("streamed", _turns_of_two())
    assert not played.refused
    assert len(played.facts["said"]) == 2
    assert all(said for said in played.facts["said"])
    one, other = played.facts["facts"]
    assert one["name"] != other["name"]
    assert one["messages"] == other["messages"]


def _turns_of_two() -> Callable[[Seen], Answer]:
    """Two agents that talk at once need a script that remembers nothing between requests."""

    def answer(seen: Seen) -> Answer:
        model = ScriptedModel()
        asked = [message for message in seen.body["messages"] if message["role"] == "user"][-1]
        first = model(msgspec.structs.replace(seen, body={**seen.body, "messages": [asked]}))
        last = seen.body["messages"][-1]
        return first if last["role"] == "user" else model(seen)

    return answer


def test_the_window_is_learned_from_the_refusal():
    played = run("told_by_refusal", window=30_000)
    assert len(played.refused) == 1
    assert played.facts["context"] == 30_000
    assert played.facts["compactions"] >= 1
    assert played.facts["facts"] == played.facts["held"] == played.facts["listed"]


def test_the_model_recalls_what_was_compacted_and_another_model_goes_on():
    played = run("recall_and_switch", Recalling())
    assert not played.refused
    assert FACT in played.facts["told"]
    assert played.facts["answer"].strip() == ANSWERED
    assert played.facts["model"] == "gpt-6.1-terra"
    assert played.facts["facts"] == played.facts["held"]


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
def test_the_bill_is_compared_with_its_own_manager(model: str):
    outcomes: dict[str, Outcome] = {
        arm: play(STRANDS, arm, turns=30, model=model, window=64_000) for arm in COMPACTIONS
    }
    ours, own, none = outcomes["lowwater"], outcomes["own"], outcomes["none"]
    assert [ours.refusals, own.refusals] == [0, 0]
    assert ours.turns == own.turns == 30
    assert none.turns < 30
    assert ours.told.compactions
    assert ours.moved == ours.told.compactions
    assert ours.told.kept == ours.facts
    assert ours.bill.cost is not None
    assert own.bill.cost is not None
    assert ours.bill.cost < own.bill.cost


def test_the_example_runs_as_it_is_and_stands_on_the_page():
    example = ROOT / "examples" / "strands_agent.py"
    variables = {
        "PYTHONPATH": str(ROOT),
        "LOWWATER_STORE": "memory:",
        "OPENAI_API_KEY": "k",
        "MODEL": "gpt-5.5",
    }
    with Provider(_log_then_answer) as provider:
        done = subprocess.run(
            [strands_python(), example],
            env={**os.environ, **variables, "OPENAI_BASE_URL": provider.openai_base_url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        assert provider.refusals == ()
    assert "It was mail." in done.stdout
    assert "monday · gpt-5.5 · rent-or-buy" in done.stdout
    assert example.read_text() in (ROOT / "docs" / "integrations.md").read_text()


def _log_then_answer(seen: Seen) -> Answer:
    is_asked = seen.body["messages"][-1]["role"] == "user"
    return CallTools((Call("read_log", {"service": "mail"}),)) if is_asked else Say("It was mail.")
