"""Real recordings: every file is recognised, and what is read of it agrees with its canonical form."""

import json
from functools import cache
from pathlib import Path

import pytest

from lowwater.core.api_calls import together
from lowwater.logs.importers import Skipped, recordings

REAL = Path(__file__).parents[3] / "shared" / "transcripts"
FOLDERS = ("claude-code", "codex", "copilot-cli", "gemini-cli", "canonical")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not REAL.exists(), reason="the real recordings are not here"),
]


@cache
def read(folder):
    skipped: list[Skipped] = []
    return list(recordings([REAL / folder], on_skipped=skipped.append)), skipped


def whole(folder):
    return {Path(one.path).stem[-8:]: one for one in read(folder)[0] if not one.relation}


def canonical():
    return {one.id[:8]: one for one in read("canonical")[0]}


def pairs(folder):
    ours, theirs = whole(folder), canonical()
    return [(ours[name], theirs[name]) for name in ours if name in theirs]


def usages(recording):
    return [said.call.usage for said in recording.messages if said.call and said.call.usage]


def tools(recording):
    return [(call.id, call.name) for said in recording.messages for call in said.message.calls]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_is_recognised_and_nothing_in_it_is_broken(folder):
    found, skipped = read(folder)
    files = [path for path in (REAL / folder).rglob("*") if path.is_file()]
    assert skipped == []
    assert {one.path for one in found} == {str(path) for path in files}
    assert not any(one.broken for one in found)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_call_of_a_tool_has_one_result_behind_it(folder):
    for one in read(folder)[0]:
        waiting: list[str] = []
        for said in one.messages:
            results = [result.call_id for result in said.message.results]
            assert all(result in waiting for result in results)
            waiting = [call for call in waiting if call not in results]
            if said.message.calls:
                assert waiting == []
                waiting = [call.id for call in said.message.calls]
        assert waiting == []


def test_claude_code_agrees_with_the_index_but_for_answers_that_no_model_gave():
    index = {
        Path(it["file"]).stem[-8:]: it
        for it in json.loads((REAL / "index.json").read_text())
        if "calls" in it
    }
    for name, one in whole("claude-code").items():
        synthetic = sum(
            said.kind == "synthetic" and said.message.role == "assistant" for said in one.messages
        )
        # The index counts such answers for the older sources, and for git-sync it does not.
        assert index[name]["calls"] - len(usages(one)) in (0, synthetic)
        assert len(one.compactions) == index[name]["compactions"]
        assert max(usage.prompt for usage in usages(one)) == index[name]["max_context"]


@pytest.mark.parametrize("folder", ["claude-code", "codex", "copilot-cli"])
def test_tool_calls_and_compactions_agree_with_the_canonical_form(folder):
    assert pairs(folder)
    for one, other in pairs(folder):
        assert tools(one) == tools(other)
        kept = [said.kind for said in one.messages].count("compact_summary")
        assert kept == len(one.compactions) == len(other.compactions)
        assert all(one.messages[it.index].kind == "compact_summary" for it in one.compactions)


def test_claude_code_is_billed_as_in_the_canonical_form():
    for one, other in pairs("claude-code"):
        assert usages(one) == usages(other)


def totals(path):
    """Yield the totals that a rollout counts up."""
    for line in Path(path).read_text().splitlines():
        payload = json.loads(line)["payload"]
        if payload.get("type") == "token_count" and payload["info"]:
            yield payload["info"]["total_token_usage"]


def test_codex_is_billed_as_in_the_canonical_form_and_for_what_its_totals_tell_besides():
    for one, other in pairs("codex"):
        besides = [usage for usage in usages(one) if usage not in usages(other)]
        assert [usage for usage in usages(one) if usage not in besides] == usages(other)
        *_, total = totals(one.path)
        told = together(usages(one))
        assert (told.prompt, told.output) == (total["input_tokens"], total["output_tokens"])


def test_sub_agents_that_sessions_echo_are_counted():
    echoed = set()
    for path in (REAL / "claude-code").iterdir():
        for line in path.read_text().splitlines():
            data = json.loads(line).get("data", {})
            if data.get("type") == "agent_progress" and data["message"]["type"] == "assistant":
                echoed.add((data["agentId"], data["message"]["message"]["id"]))
    agents = [one for one in read("claude-code")[0] if one.relation == "subagent"]
    assert {one.id.rpartition("/")[2] for one in agents} == {agent for agent, _ in echoed}
    assert sum(len(usages(agent)) for agent in agents) == len(echoed) > 0
