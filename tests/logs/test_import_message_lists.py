"""Plain message lists and Lowwater's own exports become recordings."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater import Lowwater
from lowwater.core.api_calls import Usage
from lowwater.core.entries import Compacted
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.files import WholeSession, session_lines
from lowwater.logs.importers import recordings
from lowwater.logs.message_lists import MessageLists
from lowwater.logs.own_exports import OwnExports
from lowwater.logs.recording import Recording
from lowwater.stores.addresses import open_store

REAL = Path(__file__).parents[3] / "shared" / "transcripts" / "message-lists"
FORMATS = (OwnExports(), MessageLists())

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Read a."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "text of a"},
    {"role": "assistant", "content": "Done."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "Read a."},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text of a"}]},
]


def read(path: Path) -> list[Recording]:
    return list(recordings([path], formats=FORMATS))


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(json.dumps(CHAT).encode(), id="array"),
        pytest.param(json.dumps(CHAT, indent=2).encode(), id="array over lines"),
        pytest.param(lines(*CHAT), id="lines"),
        pytest.param(lines(CHAT), id="array on a line"),
        pytest.param(lines({"messages": CHAT}), id="object on a line"),
        pytest.param(json.dumps({"model": "m", "messages": CHAT}, indent=1).encode(), id="request body"),
        pytest.param(json.dumps([{"task_id": 1, "traj": CHAT}]).encode(), id="tau-bench"),
        pytest.param(gzip.compress(lines({"model": "m"}, *CHAT)), id="header and lines, packed"),
    ],
)
def test_a_list_in_any_shape_is_one_session_with_its_calls(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "list.data"
    path.write_bytes(content)
    (recording,) = read(path)
    assert [one.message.role for one in recording.messages] == [one["role"] for one in CHAT]
    assert [one.call is not None for one in recording.messages] == [False, False, True, False, True]
    assert recording.messages[3].message.results[0].text == "text of a"
    assert not recording.broken


def test_many_lists_are_many_sessions_of_their_own_format(tmp_path: Path) -> None:
    path = tmp_path / "lists.jsonl"
    path.write_bytes(
        lines({"id": "first", "messages": CHAT}, {"messages": ANTHROPIC, "system": "Be kind."}, {"x": 1})
    )
    first, second = read(path)
    assert (first.id, second.id) == ("first", "lists:2")
    assert second.system == b'"Be kind."'
    assert second.messages[2].message.results[0].call_id == "t1"
    assert len(encode_messages([one.message for one in second.messages], "anthropic")) == len(ANTHROPIC)


def test_what_stands_beside_a_message_is_read_and_not_sent_on(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
    said = CHAT[4] | {"ts": "2026-01-02T03:04:05Z", "usage": usage, "model": "m", "kind": "meta"}
    path = tmp_path / "list.jsonl"
    path.write_bytes(lines(*CHAT[:4], said))
    (recording,) = read(path)
    last = recording.messages[-1]
    assert last.call is not None
    assert last.call.usage == Usage(uncached=10, cache_read=90, output=5)
    assert (last.at, last.kind, recording.model) == (1767323045.0, "meta", "m")
    assert json.loads(encode_messages([last.message], "openai_chat")[0]) == CHAT[4]


def test_cached_tokens_of_openai_are_not_counted_twice(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens": 5}
    path = tmp_path / "list.jsonl"
    path.write_bytes(lines(CHAT[1], CHAT[4] | {"usage": usage}))
    (recording,) = read(path)
    call = recording.messages[1].call
    assert call is not None
    assert call.usage == Usage(uncached=40, cache_read=60, output=5)


def test_a_broken_message_is_counted_with_its_place_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_bytes(
        lines(*CHAT[:2])
        + b'{"role": "assistant", "content"\n'
        + lines({"role": "clown", "content": ""}, CHAT[4])
    )
    (recording,) = read(path)
    assert len(recording.messages) == 3
    assert [one.place for one in recording.broken] == [f"{path}:3", f"{path}:4"]


def test_an_array_that_was_cut_gives_what_came_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_bytes(json.dumps([{"traj": CHAT}, {"traj": CHAT}]).encode()[:-20])
    first, second = read(path)
    assert (len(first.messages), len(second.messages)) == (5, 4)
    assert len(second.broken) == 1


def test_a_whole_export_comes_back_with_its_calls_and_compactions(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'store.db'}"
    answer = {
        "model": "gpt-4o",
        "choices": [{"message": CHAT[4], "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 3},
    }
    lw = Lowwater(model="gpt-4o", store=address)
    session = lw.session("own")
    session.prepare(CHAT[:2])
    session.record(answer)
    lw.close()
    store = open_store(address)
    stored, account = store.read("own"), store.accounts(["own"])[0]
    store.close()
    compacted = Compacted(at=1767323045.0, mechanisms=("elide",), items=())
    whole = WholeSession(name="own", entries=(*stored.entries, compacted), records=account.records)
    path = tmp_path / "own.jsonl"
    path.write_bytes(b"\n".join(session_lines(whole)) + b"\n{broken\n")
    (recording,) = read(path)
    assert (recording.id, recording.agent, recording.model) == ("own", "lowwater", "gpt-4o")
    calls = [one.call for one in recording.messages if one.call is not None]
    assert [call.usage for call in calls] == [Usage(uncached=20, output=3)]
    assert [one.index for one in recording.compactions] == [len(recording.messages)]
    assert len(recording.broken) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*CHAT[2], "ts", "usage"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=25)
@given(
    st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "ts", "usage", "kind"]), JSON))
)
def test_no_list_stops_the_run(tmp_path_factory: pytest.TempPathFactory, messages: list[object]) -> None:
    path = tmp_path_factory.getbasetemp() / "list.jsonl"
    path.write_bytes(lines(CHAT[0], *messages))
    (recording,) = read(path)
    assert len(recording.messages) + len(recording.broken) >= 1


@pytest.mark.full
@pytest.mark.skipif(not REAL.exists(), reason="no recorded sessions on this machine")
def test_the_recorded_lists_are_read_whole() -> None:
    found = list(recordings([REAL], formats=FORMATS))
    assert len(found) == 200
    assert not any(one.broken for one in found)
    assert all(any(message.call for message in one.messages) for one in found)
