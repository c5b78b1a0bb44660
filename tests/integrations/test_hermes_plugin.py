"""The Hermes plugin with the real `AIAgent` of hermes-agent from PyPI, in an environment of its own."""

import os
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.frameworks.billing import bill_of, moved_prefixes, standing
from bench.frameworks.roster import Framework
from bench.frameworks.running import COMPACTIONS, Outcome, play
from bench.frameworks.scripted import ScriptedModel
from bench.peers.environment import python_with
from bench.peers.hermes import REQUIREMENT
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.errors import BadSetting
from lowwater.stores.addresses import open_store
from lowwater.testing.provider import Answer, Provider, Seen
from tests.integrations.scripted_recall import ANSWERED, FACT, Recalling

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
SCENARIOS = Path(__file__).with_name("hermes_scenarios.py")
MODEL, OTHER = "gpt-6.1-sol", "gpt-6.1-terra"
COUNT = tokenizer_for("o200k").count


def hermes_python(_: str = "") -> Path:
    return python_with("hermes", REQUIREMENT, lowwater=True)


HERMES = Framework(
    name="Hermes",
    worker="hermes_agent.py",
    own="ContextCompressor",
    python=hermes_python,
    speaks_anthropic=False,
)


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario printed, and what the provider saw of it."""

    facts: dict[str, Any]
    requests: tuple[Seen, ...]

    @property
    def refused(self) -> list[str]:
        return [seen.refusal.rule for seen in self.requests if seen.refusal is not None]


def run(
    scenario: str, script: Callable[[Seen], Answer] | None = None, *, windows: dict[str, int] | None = None
) -> Played:
    lengths = windows or {MODEL: 64_000, OTHER: 64_000}
    with Provider(script or ScriptedModel(), count=COUNT, context_lengths=lengths, now=standing) as provider:
        done = subprocess.run(
            [hermes_python(), SCENARIOS, scenario, provider.anthropic_base_url],
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


def test_without_hermes_one_sentence_says_what_to_install():
    with pytest.raises(BadSetting, match="Hermes is not installed"):
        from lowwater.integrations.hermes import LowwaterEngine  # noqa: F401


def test_a_long_session_keeps_its_id_and_its_history_and_the_next_agent_goes_on_with_it():
    played = run("in_place")
    before, after = played.facts["before"], played.facts["after"]
    assert not played.refused
    assert before["published"] >= 2
    assert before["compactions"] == before["published"]
    assert after["compactions"] > before["compactions"], "the second agent compacted too"
    assert after["rewound"] == 0, "every list was recognised as a view of the session"
    assert [after["name"], after["ids"]] == ["bench", ["bench"]]
    assert after["held"] == after["facts"], "nothing that a tool returned is lost"
    assert after["view"] == after["listed"], "Hermes' list is the view"
    assert after["ended"] == ["bench"] * after["compactions"], "session end fired at each compaction"
    assert moved_prefixes(played.requests) == after["compactions"], "nothing but compactions moves the prefix"
    bill = bill_of(played.requests, MODEL, count=COUNT, window=64_000)
    assert after["cost"] == bill.cost, "the session's own books are the provider's"


def test_a_session_whose_id_hermes_rotates_keeps_its_name():
    played = run("rotation")
    before, after = played.facts["before"], played.facts["after"]
    assert not played.refused
    assert before["published"] >= 2
    assert len(set(before["ended"])) == before["published"], "each compaction ended another of Hermes' ids"
    assert played.facts["last"] not in before["ended"]
    assert [before["name"], after["name"]] == ["bench", "bench"]
    assert after["held"] == after["facts"]
    assert after["rewound"] == 0


def test_the_engine_survives_a_deep_copy_and_shares_no_budget_with_it():
    facts = run("copies").facts
    assert facts["is_engine"]
    assert facts["is_copy"]
    assert facts["name"] == "lowwater"
    assert facts["window"] == [64_000, 100_000]
    assert facts["model"] == [MODEL, OTHER]
    assert facts["names"] == ["bench", "another"]
    assert facts["messages"][0] > 0
    assert facts["messages"][1] == 0


def test_after_a_switch_to_a_smaller_window_the_next_request_fits_it():
    played = run("switch", windows={MODEL: 128_000, OTHER: 64_000})
    facts = played.facts
    assert not played.refused
    assert [facts["route"], facts["context"], facts["shown"]] == [OTHER, 64_000, 64_000]
    assert facts["after"]["held"] == facts["after"]["facts"]
    assert facts["after"]["rewound"] == 0
    asked = [str(seen.body["model"]) for seen in played.requests if seen.answer is not None]
    assert sum(first != second for first, second in pairwise(asked)) == 1


def test_a_window_that_is_smaller_than_hermes_believes_is_learned_from_the_refusal():
    played = run("told_by_refusal", windows={MODEL: 40_000})
    assert len(played.refused) == 1
    assert played.facts["context"] == 40_000
    assert played.facts["published"] >= 1
    assert played.facts["held"] == played.facts["facts"]


def test_the_model_recalls_what_was_compacted_and_a_person_compacts_by_hand():
    played = run("recall", Recalling())
    facts = played.facts
    assert not played.refused
    assert facts["offered"] == ["lowwater_expand", "lowwater_pin", "lowwater_search"]
    assert FACT in facts["told"]["result"]
    assert facts["answer"] == ANSWERED
    assert facts["by_hand"]["listed"] < facts["by_hand"]["was"]
    assert facts["after"]["rewound"] == 0
    assert facts["after"]["held"] == facts["after"]["facts"]
    assert "error" in facts["unknown"]
    assert "rent-or-buy" in facts["status"]["lowwater"]
    name, messages, compactions = facts["fresh"]
    assert [name, compactions] == ["fresh", 0]
    assert 0 < messages < 10


def test_hermes_own_switch_holds_for_lowwater():
    facts = run("switched_off").facts
    assert facts["compactions"] == facts["published"] == 0
    assert facts["held"] == facts["facts"]


def test_without_the_middleware_hermes_own_count_decides():
    played = run("without_calls")
    assert not played.refused
    assert played.facts["published"] >= 1
    assert played.facts["held"] == played.facts["facts"]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {arm: play(HERMES, arm, turns=30, model=MODEL, window=64_000) for arm in COMPACTIONS}


def test_the_bill_is_compared_with_the_built_in_compressor(outcomes: dict[str, Outcome]):
    ours, own, none = outcomes["lowwater"], outcomes["own"], outcomes["none"]
    assert [ours.told.how, own.told.how] == ["LowwaterEngine", "ContextCompressor"]
    assert [ours.refusals, own.refusals] == [0, 0]
    assert ours.turns == own.turns == 30
    assert none.turns < 30, "without compaction the session ends at the window"
    assert ours.bill.summaries == 0
    assert own.bill.summaries > 0
    assert ours.told.kept == ours.facts, "all of it is still there"
    assert own.told.kept is not None
    assert own.told.kept < own.facts, "the built-in compressor loses what it compacts"
    assert ours.moved == ours.told.compactions
    assert ours.bill.cost is not None
    assert own.bill.cost is not None
    assert ours.bill.cost < 1.2 * own.bill.cost


def test_the_example_is_a_config_that_hermes_runs_with(tmp_path: Path):
    example = (ROOT / "examples" / "hermes_config.yaml").read_text()
    assert example in (ROOT / "docs" / "integrations.md").read_text()
    # The entry point as a package declares it, so that this holds whichever version of Lowwater was installed there.
    declared = tmp_path / "lowwater_plugin-0.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: lowwater-plugin\nVersion: 0\n")
    (declared / "entry_points.txt").write_text(
        "[hermes_agent.plugins]\nlowwater = lowwater.integrations.hermes\n"
    )
    with Provider(ScriptedModel(), count=COUNT, default_context=200_000) as provider:
        model = f"default: {MODEL}\n  provider: custom\n  base_url: {provider.openai_base_url}\n  api_key: k"
        (tmp_path / "config.yaml").write_text(f"{example}model:\n  {model}\n  max_tokens: 2000\n")
        environment = {**os.environ, "HERMES_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
        environment.pop("LOWWATER_STORE")
        done = subprocess.run(
            [hermes_python().with_name("hermes"), "--yolo", "-z", "Say hello."],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        asked = [seen for seen in provider.requests if seen.answer is not None]
    offered = {tool["function"]["name"] for tool in asked[0].body["tools"]}
    assert {"lowwater_search", "lowwater_expand"} <= offered
    store = open_store(f"sqlite:///{tmp_path / 'lowwater.db'}")
    (kept,) = store.sessions()
    store.close()
    assert [kept.model, kept.about.source, kept.turns] == [MODEL, "hermes", 1]
