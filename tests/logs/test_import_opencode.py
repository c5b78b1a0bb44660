"""OpenCode's sessions become recordings, from its folder of files, its database and its exports alike."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.api_calls import Usage
from lowwater.core.messages import Image
from lowwater.logs.importers import Skipped, recordings
from lowwater.logs.opencode import OpenCodeDatabase, OpenCodeFiles
from lowwater.logs.recording import Recording
from tests.logs.opencode_storage import (
    START,
    Fields,
    Storage,
    Way,
    as_database,
    as_exports,
    as_files,
    conversation,
    finish,
    text,
    tool,
)

FORMATS = (OpenCodeFiles(), OpenCodeDatabase())


@pytest.fixture(params=[as_files, as_database, as_exports])
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


def read(path: Path) -> dict[str, Recording]:
    return {one.id: one for one in recordings([path], formats=FORMATS)}


def test_a_session_has_its_messages_calls_and_times(way: Way, tmp_path: Path) -> None:
    recording = read(way(conversation(), tmp_path))["ses_1"]
    assert [one.message.role for one in recording.messages] == ["user", "assistant", "tool", "assistant"]
    user, answer, result, last = recording.messages
    assert (answer.message.thinking[0].text, answer.message.calls[0].id) == ("I should read it.", "c1")
    assert json.loads(answer.message.calls[0].arguments) == {"path": "a"}
    assert (result.message.results[0].text, result.at) == ("text of a", (START + 2500) / 1000)
    assert answer.call is not None
    assert answer.call.usage == Usage(uncached=10, cache_read=80, cache_write=7, output=5)
    assert (answer.call.asked_at, answer.at) == ((START + 1000) / 1000, (START + 1500) / 1000)
    assert (user.at, last.at) == (START / 1000, (START + 2700) / 1000)
    assert (recording.model, recording.system, recording.started_at) == ("m", b'"Be brief."', START / 1000)


def test_a_sub_agent_names_its_parent(way: Way, tmp_path: Path) -> None:
    storage = conversation()
    storage.session("ses_2", parentID="ses_1")
    storage.message("ses_2", "msg_9", "user", text("Look."))
    recording = read(way(storage, tmp_path))["ses_2"]
    assert (recording.parent, recording.relation) == ("ses_1", "subagent")


def test_steps_in_one_message_are_calls_of_their_own(tmp_path: Path) -> None:
    storage = Storage()
    storage.session("ses_1")
    begin = {"type": "step-start"}
    parts = (
        begin,
        tool("c1"),
        finish(input=1),
        begin,
        tool("c2"),
        finish(input=2),
        begin,
        text("Done."),
        finish(input=3),
    )
    storage.message("ses_1", "msg_1", "assistant", *parts, tokens={"input": 3, "output": 1})
    recording = read(as_files(storage, tmp_path))["ses_1"]
    calls = [one.call for one in recording.messages if one.call is not None]
    assert [call.usage.uncached for call in calls if call.usage] == [1, 2, 3]
    roles = [one.message.role for one in recording.messages]
    assert roles == ["assistant", "tool", "assistant", "tool", "assistant"]


def test_a_compaction_begins_where_the_summary_was_asked_for(way: Way, tmp_path: Path) -> None:
    storage = conversation()
    storage.message("ses_1", "msg_4", "user", {"type": "compaction", "auto": True})
    summary = {"summary": True, "parentID": "msg_4", "modelID": "m", "finish": "stop"}
    storage.message("ses_1", "msg_5", "assistant", text("The goal."), finish(), **summary)
    storage.message("ses_1", "msg_6", "user", text("Go on."))
    recording = read(way(storage, tmp_path))["ses_1"]
    (compaction,) = recording.compactions
    assert (compaction.index, compaction.trigger, compaction.before) == (4, "auto", 97)
    assert [one.kind for one in recording.messages[4:]] == ["compact_summary", "compact_summary", ""]


def test_results_whose_output_was_cleared_are_a_prune_for_each_time(way: Way, tmp_path: Path) -> None:
    storage = Storage()
    storage.session("ses_1")
    storage.message("ses_1", "msg_1", "user", text("Read all."))
    times = {"a": START + 90_000, "b": START + 90_020, "c": START + 300_000}
    for number, (call, cleared) in enumerate(times.items()):
        ran = tool(call, time={"start": START + number, "end": START + number + 1, "compacted": cleared})
        storage.message("ses_1", f"msg_{number + 2}", "assistant", ran, finish(), modelID="m")
    storage.message("ses_1", "msg_9", "user", text("Go on."), time={"created": START + 100_000})
    first, second = read(way(storage, tmp_path))["ses_1"].compactions
    assert (first.kind, first.index, first.cleared, first.before) == ("prune", 7, ("a", "b"), 97)
    assert (second.kind, second.index, second.cleared) == ("prune", 8, ("c",))


def test_a_summary_without_a_request_is_a_compaction_of_older_versions(tmp_path: Path) -> None:
    storage = conversation()
    storage.message("ses_1", "msg_4", "assistant", text("The goal."), summary=True)
    assert [one.index for one in read(as_files(storage, tmp_path))["ses_1"].compactions] == [4]


def test_a_summary_that_failed_is_no_compaction(tmp_path: Path) -> None:
    storage = conversation()
    storage.message("ses_1", "msg_4", "user", {"type": "compaction", "auto": False})
    failed = {"summary": True, "parentID": "msg_4", "error": {"name": "APIError"}}
    storage.message("ses_1", "msg_5", "assistant", text("Half"), **failed)
    recording = read(as_files(storage, tmp_path))["ses_1"]
    assert not recording.compactions
    assert len(recording.messages) == 5


@pytest.mark.parametrize(
    ("told", "output"),
    [
        pytest.param({"reasoning": 40}, 5, id="part of the output before totals"),
        pytest.param({"reasoning": 40, "total": 142}, 45, id="beside it since"),
        pytest.param({"reasoning": 4, "total": 102}, 5, id="part of it, and a total"),
    ],
)
def test_reasoning_is_billed_once(tmp_path: Path, told: Fields, output: int) -> None:
    storage = Storage()
    storage.session("ses_1")
    storage.message("ses_1", "msg_1", "assistant", text("Done."), finish(**told))
    call = read(as_files(storage, tmp_path))["ses_1"].messages[0].call
    assert call is not None
    assert call.usage is not None
    assert call.usage.output == output


def test_a_call_that_was_interrupted_has_a_result_and_pictures_stay_pictures(tmp_path: Path) -> None:
    storage = Storage()
    storage.session("ses_1")
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"}
    storage.message("ses_1", "msg_1", "user", text("Look."), picture)
    storage.message("ses_1", "msg_2", "assistant", tool("c1", status="running", output=None))
    user, _, result = read(as_files(storage, tmp_path))["ses_1"].messages
    assert isinstance(user.message.parts[1], Image)
    assert (result.message.results[0].is_error, result.kind) == (True, "synthetic")


def test_a_session_in_files_and_database_is_told_once(tmp_path: Path) -> None:
    as_files(conversation(), tmp_path)
    as_database(conversation(), tmp_path)
    assert len(list(recordings([tmp_path], formats=FORMATS))) == 1


def test_a_broken_piece_is_counted_with_its_place_and_the_others_stay(tmp_path: Path) -> None:
    root = as_files(conversation(), tmp_path)
    (root / "message" / "ses_1" / "msg_3.json").write_text('{"id": "msg_3", "role"')
    next((root / "part" / "msg_2").iterdir()).parent.joinpath("prt_z.json").write_text("[]")
    recording = read(root)["ses_1"]
    assert len(recording.messages) == 3
    assert [one.place.rpartition(":")[2] for one in recording.broken] == [
        "msg_2/prt_z.json",
        "ses_1/msg_3.json",
    ]


def test_messages_and_parts_are_no_sessions_of_their_own(tmp_path: Path) -> None:
    skipped: list[Skipped] = []
    root = as_files(conversation(), tmp_path)
    assert len(list(recordings([root], formats=FORMATS, on_skipped=skipped.append))) == 1
    assert {one.why for one in skipped} == {"a message or part, which is read with its session"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["start", "end", "created", "status", "input", "read", "cache"]), inner
        )
    ),
    max_leaves=3,
)
TYPES = st.sampled_from(
    ["text", "tool", "reasoning", "step-start", "step-finish", "file", "compaction", "subtask"]
)
PARTS = st.dictionaries(
    st.sampled_from(["text", "state", "tokens", "time", "mime", "url", "callID", "tool", "auto", "ignored"]),
    VALUES,
)
INFOS = st.dictionaries(
    st.sampled_from(["time", "tokens", "summary", "error", "modelID", "parentID"]), VALUES
)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant", "x"]), INFOS, st.lists(st.tuples(TYPES, PARTS), max_size=3)
        )
    )
)
def test_nothing_in_a_message_stops_the_run(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[str, Fields, list[tuple[str, Fields]]]]
) -> None:
    storage = conversation()
    for at, (role, fields, parts) in enumerate(told):
        each = [{"type": type} | part for type, part in parts]
        storage.message("ses_1", f"msg_x{at}", role, *each, **fields)
    recording = read(as_exports(storage, tmp_path_factory.getbasetemp()))["ses_1"]
    assert len(recording.messages) >= 4
