"""Sessions in the canonical form become recordings."""

import gzip
import json
from typing import Any

import pytest

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings
from lowwater.logs.recording import NativeCompaction

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
COMPACTION = {"ts": "2026-02-11T15:00:00Z", "trigger": "auto", "pre_tokens": 9000, "index": 4}
HEADER = {"id": "s1", "agent": "codex 0.140.0", "model": "gpt-x", "native_compactions": [COMPACTION]}
USAGE = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 5}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "rules", "kind": "developer"},
    {"role": "user", "content": "look", "ts": "2026-02-11T14:00:00Z"},
    {"role": "assistant", "content": "", "tool_calls": [CALL], "usage": USAGE, "model": "gpt-y"},
    {"role": "tool", "tool_call_id": "c1", "content": "oops", "is_error": True},
    {"role": "user", "content": "In short.", "kind": "compact_summary"},
    {"role": "user", "content": "a reminder", "kind": "attachment:todo"},
    {"role": "user", "content": "also", "kind": "queued"},
    {"role": "assistant", "content": "done", "reasoning_content": "hm"},
]


@pytest.fixture
def read(tmp_path):
    def read(*lines):
        path = tmp_path / "s.jsonl.gz"
        path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
        return list(recordings([path]))

    return read


def test_a_session_is_read(read):
    (session,) = read(HEADER, *MESSAGES)
    assert (session.id, session.agent, session.model) == ("s1", "codex", "gpt-y")
    assert [said.message.role for said in session.messages] == [said["role"] for said in MESSAGES]
    assert [said.kind for said in session.messages] == [
        "meta", "", "", "", "compact_summary", "attachment", "", "",
    ]  # fmt: skip
    assert session.messages[2].call.usage == Usage(uncached=40, cache_read=60, output=5)
    assert session.messages[7].call.usage is None
    assert session.messages[7].call.model == "gpt-x"
    assert session.messages[3].message.results[0].is_error
    assert session.messages[7].message.thinking[0].text == "hm"
    (compaction,) = session.compactions
    assert (compaction.index, compaction.trigger, compaction.before) == (4, "auto", 9000)
    assert compaction.version == "0.140.0"


def test_what_stands_beside_a_message_is_not_sent_again(read):
    (session,) = read(HEADER, *MESSAGES)
    assert json.loads(session.messages[2].message.wire.raw) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [CALL],
    }


def test_a_compaction_keeps_its_place_when_a_line_before_it_is_broken(read):
    (session,) = read(HEADER, MESSAGES[0], {"role": "nobody"}, *MESSAGES[2:])
    assert [it.index for it in session.compactions] == [3]
    assert session.messages[3].kind == "compact_summary"
    assert len(session.broken) == 1


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        (
            {"input_tokens": 3, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 7},
            Usage(uncached=3, cache_read=50, cache_write=7),
        ),
        (
            {"input": 3, "output": 2, "cacheRead": 50, "cacheWrite": 7},
            Usage(uncached=3, cache_read=50, cache_write=7, output=2),
        ),
        ({"output_tokens": 9}, None),
        (None, None),
    ],
    ids=["anthropic", "pi", "only output", "none"],
)
def test_usage_of_every_agent_is_taken_apart(told, usage, read):
    (session,) = read(HEADER, {"role": "assistant", "content": "done", "usage": told})
    assert session.messages[0].call.usage == usage


def test_a_header_begins_another_session(read):
    sessions = read(HEADER, MESSAGES[1], {**HEADER, "id": "s2", "native_compactions": []}, MESSAGES[7])
    assert [(session.id, len(session.messages)) for session in sessions] == [("s1", 1), ("s2", 1)]
    assert sessions[1].compactions == ()
    assert isinstance(sessions[0].compactions[0], NativeCompaction)
