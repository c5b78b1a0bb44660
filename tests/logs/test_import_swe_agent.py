"""SWE-agent's and mini-swe-agent's trajectories become recordings."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings
from lowwater.logs.recording import Recording
from lowwater.logs.swe_agent import SweAgent

REAL = Path(__file__).parents[3] / "shared" / "transcripts" / "swe-agent"
FORMATS = (SweAgent(),)

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Fix it.", "agent": "main", "message_type": "system_prompt"},
    {"role": "user", "content": "The bug.", "agent": "main"},
    {"role": "assistant", "content": "I look.", "agent": "main", "thought": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "content": "a.py", "agent": "main", "tool_call_ids": ["c1"]},
]
STEP = {"action": "ls", "observation": "a.py", "response": "I look.", "state": {}, "thought": "I look."}
TRAJECTORY: dict[str, Any] = {
    "environment": "swe_main",
    "trajectory": [STEP],
    "history": HISTORY,
    "info": {"exit_status": "submitted", "model_stats": {"tokens_sent": 1200, "tokens_received": 30}},
    "replay_config": json.dumps({"agent": {"model": {"name": "gpt-4o"}}}),
}


def read(path: Path) -> list[Recording]:
    return list(recordings([path], formats=FORMATS))


def written(folder: Path, value: object, *, indent: int | None = None) -> Path:
    path = folder / "task.any"
    path.write_text(json.dumps(value, indent=indent))
    return path


@pytest.mark.parametrize("indent", [None, 2], ids=["on one line", "over lines"])
def test_the_history_is_the_session(tmp_path: Path, indent: int | None) -> None:
    (recording,) = read(written(tmp_path, TRAJECTORY, indent=indent))
    assert [one.message.role for one in recording.messages] == ["system", "user", "assistant", "tool"]
    assert recording.messages[3].message.results[0].call_id == "c1"
    assert [one.call is not None for one in recording.messages] == [False, False, True, False]
    assert (recording.id, recording.agent, recording.model) == ("task", "swe-agent", "gpt-4o")


def test_tokens_are_a_sum_of_all_calls(tmp_path: Path) -> None:
    (recording,) = read(written(tmp_path, TRAJECTORY))
    assert recording.usage == Usage(uncached=1200, output=30)
    assert all(one.call is None or one.call.usage is None for one in recording.messages)


def test_another_agent_in_the_history_is_a_sub_agent(tmp_path: Path) -> None:
    other = [message | {"agent": "reviewer"} for message in HISTORY[:3]]
    main, reviewer = read(written(tmp_path, TRAJECTORY | {"history": HISTORY + other}))
    assert (len(main.messages), len(reviewer.messages)) == (4, 3)
    assert (reviewer.parent, reviewer.relation) == (main.id, "subagent")


def test_without_a_history_the_steps_are_read(tmp_path: Path) -> None:
    (recording,) = read(written(tmp_path, {"trajectory": [STEP, STEP]}))
    assert [one.message.text for one in recording.messages] == ["I look.", "a.py"] * 2


def test_a_mini_trajectory_has_usage_and_times_of_its_answers(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 20}}
    response = {"model": "m", "created": 1767225600, "usage": usage}
    answer = {"role": "assistant", "content": "ls", "extra": {"response": response}}
    mini = {
        "info": {"mini_version": "1.0"},
        "messages": [HISTORY[1], answer],
        "trajectory_format": "mini-swe-agent-1",
    }
    (recording,) = read(written(tmp_path, mini))
    last = recording.messages[1]
    assert last.call is not None
    assert last.call.usage == Usage(uncached=30, cache_read=20, output=4)
    assert (last.at, recording.model, recording.agent) == (1767225600.0, "m", "mini-swe-agent")


def test_a_file_that_was_cut_gives_the_messages_before_the_cut(tmp_path: Path) -> None:
    path = written(tmp_path, {name: TRAJECTORY[name] for name in ("trajectory", "history")})
    path.write_bytes(path.read_bytes()[:-20])
    (recording,) = read(path)
    assert len(recording.messages) == 3
    assert [one.place for one in recording.broken] == [f"{path}:history[3]"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["response", "usage", "id"]), inner)
    ),
    max_leaves=3,
)
NAMES = st.sampled_from(["role", "content", "agent", "tool_calls", "tool_call_ids", "extra", "timestamp"])


@settings(max_examples=25)
@given(
    st.lists(st.dictionaries(NAMES, VALUES | st.sampled_from(["user", "assistant", "tool"])), max_size=4),
    st.dictionaries(st.sampled_from(["info", "replay_config", "environment"]), VALUES),
)
def test_nothing_in_a_history_stops_the_run(
    tmp_path_factory: pytest.TempPathFactory, history: list[object], fields: dict[str, object]
) -> None:
    told = TRAJECTORY | fields | {"history": [*HISTORY, *history]}
    first, *_ = read(written(tmp_path_factory.getbasetemp(), told))
    assert len(first.messages) >= 4


@pytest.mark.full
@pytest.mark.skipif(not REAL.exists(), reason="no recorded sessions on this machine")
def test_recorded_trajectories_are_read_whole_and_cut_ones_up_to_the_cut(tmp_path: Path) -> None:
    paths = sorted(REAL.glob("*.traj"))
    whole = [one for path in paths for one in read(path)]
    assert len(whole) == len(paths) == 7
    assert not any(one.broken for one in whole)
    cut = tmp_path / "cut.traj"
    for path, recording in zip(paths, whole, strict=True):
        data = path.read_bytes()
        for share in range(1, 10):
            cut.write_bytes(data[: len(data) * share // 10])
            for part in read(cut):
                assert len(part.messages) <= len(recording.messages) + 1
