"""Codex rollouts become recordings: items joined into answers, results behind them, compactions in place."""

import json

import pytest

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings
from lowwater.logs.recording import NativeCompaction
from tests.logs.codex_lines import MODEL, START, call, calls, count, item, line, meta, output, said


@pytest.fixture
def read(tmp_path):
    def read(*lines, name="rollout.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(one) + "\n" for one in lines))
        return list(recordings([path]))

    return read


def test_items_of_one_response_are_one_answer_with_its_results_behind_it(read):
    (session,) = read(
        meta(),
        MODEL,
        said("user", "look"),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        said("assistant", "I look"),
        call("c1"),
        item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2"),
        output("c1", "one"),
        item("custom_tool_call_output", call_id="c2", output="two"),
        count((100, 60, 5), (100, 60, 5)),
        said("assistant", "done"),
        count((120, 100, 7), (220, 160, 12)),
    )
    assert (session.id, session.agent, session.model) == ("s1", "codex", "gpt-5.5")
    assert session.system == b'"Be brief."'
    roles = [message.message.role for message in session.messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    answer = session.messages[1].message
    assert [thought.text for thought in answer.thinking] == ["hm"]
    assert [(one.id, one.name, one.arguments) for one in answer.calls] == [
        ("c1", "exec", '{"cmd":"ls"}'),
        ("c2", "apply_patch", "*** Begin"),
    ]
    assert [one.usage for one in calls(session)] == [
        Usage(uncached=40, cache_read=60, output=5),
        Usage(uncached=20, cache_read=100, output=7),
    ]


@pytest.mark.parametrize(
    ("payload", "left"),
    [
        ({"message": "In short."}, "In short."),
        (
            {
                "message": "",
                "replacement_history": [
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]},
                    {"type": "compaction", "encrypted_content": "x"},
                ],
            },
            "kept",
        ),
    ],
    ids=["summary", "history"],
)
def test_a_compaction_is_told_with_what_it_left(payload, left, read):
    (session,) = read(
        meta(),
        said("user", "look"),
        said("assistant", "one"),
        count((100, 0, 5), (100, 0, 5)),
        line("compacted", payload),
        said("assistant", "two"),
    )
    at = session.messages[0].at
    assert session.compactions == (NativeCompaction(index=2, at=at, before=100),)
    assert (session.messages[2].kind, session.messages[2].message.text) == ("compact_summary", left)


def test_what_codex_says_in_the_users_name_is_meta(read):
    (session,) = read(
        meta(),
        said("developer", "rules"),
        said("user", "<environment_context>here</environment_context>"),
        said("user", "look"),
        said("assistant", "done"),
    )
    assert [message.kind for message in session.messages] == ["meta", "meta", "", ""]
    assert session.messages[0].message.role == "developer"


def test_a_missing_result_gets_a_stub_and_an_answer_of_nothing_is_left_out(read):
    (session,) = read(
        meta(), call("c1"), said("user", "stop"), item("reasoning", summary=[]), said("user", "go")
    )
    assert [(message.message.role, message.kind) for message in session.messages] == [
        ("assistant", ""),
        ("tool", "synthetic"),
        ("user", ""),
        ("user", ""),
    ]


@pytest.mark.parametrize(
    ("recorded", "read_as"),
    [
        ("text", "text"),
        ([{"type": "input_text", "text": "part"}], "part"),
        ({"content": "inside", "success": True}, "inside"),
        ({"other": 1}, '{"other": 1}'),
    ],
    ids=["text", "parts", "object", "unknown"],
)
def test_outputs_of_every_form_are_read(recorded, read_as, read):
    (session,) = read(meta(), call("c1"), item("function_call_output", call_id="c1", output=recorded))
    assert session.messages[1].message.results[0].text == read_as


def test_other_calls_have_names_and_arguments(read):
    (session,) = read(
        meta(),
        item("local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls"]}),
        item("tool_search_call", call_id="c2", arguments={"query": "x"}),
        item("tool_search_output", call_id="c2", tools=[{"name": "t"}]),
    )
    names = [(one.name, json.loads(one.arguments)) for one in session.messages[0].message.calls]
    assert names == [("local_shell", {"type": "exec", "command": ["ls"]}), ("tool_search", {"query": "x"})]
    assert session.messages[2].message.results[0].text == '[{"name": "t"}]'


def test_rollouts_without_an_envelope_are_read(read):
    (session,) = read(
        {"id": "old", "timestamp": START, "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"record_type": "state"},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "files"},
    )
    assert (session.id, len(session.messages)) == ("old", 3)


def test_items_and_events_of_no_concern_may_have_any_shape(read):
    (session,) = read(
        meta(),
        said("user", "look"),
        item("web_search_call", action={"query": "x"}, content={"a": 1}),
        item("ghost_snapshot", content=7, arguments=[1]),
        line("event_msg", {"type": "mcp_tool_call_end", "info": [1]}),
        line("world_state", [1, 2]),
        said("assistant", "done"),
    )
    assert session.broken == ()
    assert len(session.messages) == 2


def test_a_call_id_that_is_used_again_has_each_time_its_own_result(read):
    (session,) = read(
        meta(),
        call("c0"),
        output("c0", "one"),
        count((10, 0, 1), (10, 0, 1)),
        call("c0"),
        output("c0", "two"),
        count((12, 0, 1), (22, 0, 2)),
    )
    results = [result.text for message in session.messages for result in message.message.results]
    assert results == ["one", "two"]


def test_a_result_without_its_call_is_counted_as_broken(read):
    (session,) = read(meta(), said("user", "look"), output("lost"))
    assert [broken.place.rpartition(":")[2] for broken in session.broken] == ["3"]
