"""Hermes' state.db becomes recordings: lineages put together, sub-agents and branches, what compactions left."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Image
from lowwater.logs.hermes import Hermes
from lowwater.logs.importers import Skipped, recordings
from lowwater.logs.recording import Recording

HERMES = Path(__file__).parents[2] / "bench" / ".envs" / "hermes" / "bin" / "python"
MAKER = Path(__file__).with_name("write_hermes_state.py")
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
  parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, api_call_count INTEGER,
  input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content, tool_call_id TEXT,
  tool_calls TEXT, tool_name TEXT, timestamp REAL, reasoning_content TEXT, active INTEGER DEFAULT 1,
  compacted INTEGER DEFAULT 0);
"""
START = 1_767_225_600.0
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted: the goal."


class State:
    """A database in the making."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.path = path
        self.connection = sqlite3.connect(path)
        self.connection.executescript("PRAGMA synchronous = OFF;" + SCHEMA)

    def session(self, id: str, texts: Sequence[str], **fields: object) -> None:
        """Add a session whose texts are by turns the user's and the model's, unless they begin with a role."""
        told = {"id": id, "model": "m", "started_at": START, **fields}
        names, marks = ", ".join(told), ", ".join("?" * len(told))
        self.connection.execute(f"INSERT INTO sessions ({names}) VALUES ({marks})", tuple(told.values()))
        for at, text in enumerate(texts):
            role = ("user", "assistant")[at % 2]
            self.message(id, role=role, content=text, timestamp=START + at)

    def message(self, session: str, **fields: object) -> None:
        told = {"session_id": session, **fields}
        names, marks = ", ".join(told), ", ".join("?" * len(told))
        self.connection.execute(f"INSERT INTO messages ({names}) VALUES ({marks})", tuple(told.values()))

    def read(self) -> dict[str, Recording]:
        self.connection.commit()
        self.connection.close()
        found = recordings([self.path], formats=(Hermes(),))
        return {recording.id: recording for recording in found}


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "any.name")


def kinds(recording: Recording) -> list[str]:
    return [one.kind for one in recording.messages]


def test_a_session_has_its_messages_times_and_system_prompt(state: State) -> None:
    state.session("s", ["hello", "hi"], system_prompt="Be kind.")
    recording = state.read()["s"]
    assert [(one.message.text, one.at) for one in recording.messages] == [("hello", START), ("hi", START + 1)]
    assert (recording.system, recording.model, recording.started_at) == (b'"Be kind."', "m", START)


def test_tool_calls_thoughts_and_pictures_can_be_sent_again(state: State) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    state.session("s", [])
    state.message("s", role="user", content="\x00json:" + json.dumps(picture))
    state.message("s", role="assistant", content="", tool_calls=json.dumps([call]), reasoning_content="hm")
    state.message("s", role="tool", content="out", tool_call_id="c", tool_name="terminal")
    user, answer, result = (one.message for one in state.read()["s"].messages)
    assert isinstance(user.parts[0], Image)
    assert (answer.thinking[0].text, answer.calls[0].id) == ("hm", "c")
    assert result.results[0].text == "out"


def test_a_session_that_a_compaction_split_is_one(state: State) -> None:
    state.session("a", ["one", "two", "three", "four"], end_reason="compression", input_tokens=10)
    state.session(
        "b", ["one", SUMMARY, "three", "four", "five", "six"], parent_session_id="a", input_tokens=5
    )
    found = state.read()
    assert list(found) == ["a"]
    left = "compact_summary"
    assert kinds(found["a"]) == ["", "", "", "", left, left, left, left, "", ""]
    assert [one.index for one in found["a"].compactions] == [4]
    assert sum(one.call is not None for one in found["a"].messages) == 3
    assert found["a"].usage == Usage(uncached=15)


def test_a_compaction_in_place_is_found_by_what_it_left(state: State) -> None:
    state.session("a", ["one", "two", "three", "four", "one", SUMMARY, "three", "four", "one", "six"])
    recording = state.read()["a"]
    left = "compact_summary"
    assert kinds(recording) == ["", "", "", "", left, left, left, left, "", ""]
    assert [one.index for one in recording.compactions] == [4]


def test_children_are_sub_agents_and_branches_forks_that_share_their_beginning(state: State) -> None:
    state.session("p", ["one", "two", "three", "four"])
    state.session("sub", ["task", "done"], parent_session_id="p", model_config='{"_delegate_from": "p"}')
    state.session(
        "fork", ["one", "two", "other", "way"], parent_session_id="p", model_config='{"_branched_from": "p"}'
    )
    found = state.read()
    assert (found["sub"].parent, found["sub"].relation) == ("p", "subagent")
    assert (found["fork"].parent, found["fork"].relation, found["fork"].shared) == ("p", "fork", 2)
    assert [one.call is not None for one in found["fork"].messages] == [False, False, False, True]


def test_a_parent_that_a_compaction_split_is_named_by_its_first_part(state: State) -> None:
    state.session("a", ["one", "two"], end_reason="compression")
    state.session("b", [SUMMARY, "four"], parent_session_id="a")
    state.session("sub", ["task", "done"], parent_session_id="b", model_config='{"_delegate_from": "b"}')
    found = state.read()
    assert found.keys() == {"a", "sub"}
    assert found["sub"].parent == "a"


def test_the_sum_of_a_single_call_is_its_usage(state: State) -> None:
    state.session("s", ["a", "b"], api_call_count=1, input_tokens=4, cache_read_tokens=6, output_tokens=2)
    recording = state.read()["s"]
    call = recording.messages[1].call
    assert call is not None
    assert call.usage == Usage(uncached=4, cache_read=6, output=2)
    assert recording.usage is None


def test_what_the_user_took_back_is_left_out(state: State) -> None:
    state.session("s", ["a", "b"])
    state.message("s", role="user", content="oops", active=0, compacted=0)
    assert len(state.read()["s"].messages) == 2


def test_a_broken_row_is_counted_and_the_others_stay(state: State) -> None:
    state.session("s", ["a"])
    state.message("s", role="assistant", content="x", tool_calls="[{")
    state.message("s", role="jester", content="x")
    state.message("s", role="assistant", content=b"\xff\xfe")
    recording = state.read()["s"]
    assert [one.place.rpartition(":")[2] for one in recording.broken] == ["message 2", "message 3"]
    assert len(recording.messages) == 2


def test_parents_in_a_circle_do_not_stop_the_run(state: State) -> None:
    state.session("a", ["one", "two"], parent_session_id="b", end_reason="compression")
    state.session("b", ["three", "four"], parent_session_id="a", end_reason="compression")
    found = state.read()
    assert sum(len(one.messages) for one in found.values()) == 4


def test_reading_leaves_nothing_behind_and_sees_what_is_not_yet_in_the_file(tmp_path: Path) -> None:
    state = State(tmp_path / "state.db")
    state.connection.execute("PRAGMA journal_mode = WAL")
    state.session("s", ["hello", "hi"])
    state.connection.commit()
    (open_now,) = recordings([state.path], formats=(Hermes(),))
    assert len(open_now.messages) == 2
    state.read()
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]


VALUES = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=6) | st.binary(max_size=6)
)
COLUMNS = ("role", "content", "tool_calls", "tool_call_id", "timestamp", "reasoning_content", "active")
SESSION = (
    "model",
    "model_config",
    "parent_session_id",
    "started_at",
    "end_reason",
    "input_tokens",
    "api_call_count",
)


@settings(max_examples=25)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(COLUMNS), VALUES | st.sampled_from(["user", "tool", SUMMARY])),
        max_size=6,
    ),
    st.dictionaries(st.sampled_from(SESSION), VALUES | st.sampled_from(["s", "compression"])),
)
def test_no_row_stops_the_run(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], session: dict[str, object]
) -> None:
    state = State(tmp_path_factory.getbasetemp() / "state.db")
    state.session("s", ["hello", "hi"], **session)
    for row in rows:
        state.message("s", **row)
    assert len(state.read()["s"].messages) >= 2


@settings(max_examples=25)
@given(st.integers(0, 24_000), st.binary(min_size=1, max_size=300))
def test_no_damage_to_the_file_stops_the_run(
    tmp_path_factory: pytest.TempPathFactory, at: int, damage: bytes
) -> None:
    state = State(tmp_path_factory.getbasetemp() / "state.db")
    for name in "abcdef":
        state.session(name, ["hello " * 100, "hi " * 100])
    state.connection.commit()
    state.connection.close()
    whole = state.path.read_bytes()
    for content in (whole[:at] + damage + whole[at + len(damage) :], whole[:at]):
        state.path.write_bytes(content)
        skipped: list[Skipped] = []
        list(recordings([state.path], formats=(Hermes(),), on_skipped=skipped.append))


@pytest.mark.full
@pytest.mark.skipif(not HERMES.exists(), reason="Hermes is not installed: python -m bench.hermes does it")
def test_a_database_that_hermes_wrote_is_read_as_it_was_written(tmp_path: Path) -> None:
    script = shutil.copy(MAKER, tmp_path)
    path = tmp_path / "state.db"
    made = subprocess.run([HERMES, script, path], capture_output=True, check=True, cwd=tmp_path)
    told = json.loads(made.stdout)
    skipped: list[Skipped] = []
    found = {one.id: one for one in recordings([path], formats=(Hermes(),), on_skipped=skipped.append)}
    assert not skipped
    assert found.keys() == {"split", "in-place", "plain", "child", "branch", "rewound"}
    for name, figures in told.items():
        by_kind = kinds(found[name])
        assert (by_kind.count(""), by_kind.count("compact_summary")) == (figures["history"], figures["left"])
        assert [one.index for one in found[name].compactions] == figures["at"]
    call = found["plain"].messages[1].call
    assert call is not None
    assert call.usage == Usage(uncached=100, cache_read=50, cache_write=3, output=7)
    assert (found["child"].parent, found["child"].relation) == ("plain", "subagent")
    assert (found["branch"].relation, found["branch"].shared) == ("fork", 5)
    assert len(found["rewound"].messages) == 2
