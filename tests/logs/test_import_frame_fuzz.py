"""Whatever stands in a file, importing it ends, and every line of it is told or counted."""

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.logs.canonical import Canonical
from lowwater.logs.claude_code import ClaudeCode
from lowwater.logs.codex import Codex
from lowwater.logs.copilot_cli import CopilotCli
from lowwater.logs.gemini_cli import GeminiCli
from lowwater.logs.importers import recordings
from tests.logs.claude_lines import ClaudeLines

FORMATS = (ClaudeCode(), Codex(), CopilotCli(), GeminiCli(), Canonical())
NAMES = (
    "type uuid parentUuid sessionId message role content id model usage input_tokens output_tokens payload info "
    "last_token_usage total_token_usage call_id name arguments output summary text data toolRequests toolCallId result "
    "error messages tokens toolCalls $set $rewindTo native_compactions index kind agent isSidechain agentId subtype "
    "compactMetadata source subagent replacement_history num_turns modelMetrics startTime timestamp tool_use_id"
).split()
WORDS = (
    "user assistant system progress attachment agent_progress compact_boundary response_item session_meta event_msg "
    "token_count compacted thread_rolled_back message reasoning function_call function_call_output gemini tool "
    "assistant.message session.start tool.execution_complete session.shutdown session.snapshot_rewind tool_use "
    "tool_result thinking text u1 u2 m1 c1 2026-01-01T00:00:00Z"
).split()

names = st.sampled_from(NAMES)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6),
    max_leaves=12,
)
objects = st.dictionaries(names, values, max_size=8)


class Any:
    """Reads every file as one format, recognised or not."""

    name = "any"
    order = 0

    def __init__(self, format):
        self._format = format
        self.read = format.read

    def recognises(self, head, path):
        self._format.recognises(head, path)
        return True


def told(format, data: bytes):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fuzzed"
        path.write_bytes(data)
        return list(recordings([path], formats=(Any(format),)))


each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)


def effort(little, much):
    return pytest.mark.parametrize("effort", [little, pytest.param(much, marks=pytest.mark.full)])


@each_format
@effort(8, 200)
def test_lines_of_any_shape_are_read_to_the_end(format, effort):
    @settings(max_examples=effort)
    @given(lines=st.lists(objects, max_size=8))
    def run(lines):
        told(format, "\n".join(map(json.dumps, lines)).encode())

    run()


@each_format
@effort(10, 200)
def test_any_bytes_are_read_to_the_end(format, effort):
    @settings(max_examples=effort)
    @given(data=st.binary(max_size=200))
    def run(data):
        told(format, data)

    run()


def example(format):
    """Return a session in a format, with a bit of everything."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
    lines = ClaudeLines()
    match format.name:
        case "claude-code":
            lines.user("look")
            lines.tool("m1", "t1")
            lines.result("t1")
            lines.add(
                "system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9}
            )
            lines.user("short", isCompactSummary=True)
            lines.text("m2", "done")
            return lines.lines
        case "codex":
            info = {"last_token_usage": {"input_tokens": 9}, "total_token_usage": {"input_tokens": 9}}
            return [
                {"type": "session_meta", "payload": {"id": "s", "source": {"subagent": {}}}},
                {
                    "type": "response_item",
                    "payload": {"type": "function_call", "call_id": "c1", "name": "ls"},
                },
                {
                    "type": "response_item",
                    "payload": {"type": "function_call_output", "call_id": "c1", "output": []},
                },
                {"type": "event_msg", "payload": {"type": "token_count", "info": info}},
                {"type": "compacted", "payload": {"message": "short", "replacement_history": []}},
            ]
        case "copilot-cli":
            request = {"toolCallId": "c1", "name": "ls", "arguments": {}}
            return [
                {"type": "session.start", "data": {"sessionId": "s"}},
                {"type": "assistant.message", "data": {"content": "hm", "toolRequests": [request]}},
                {"type": "tool.execution_complete", "data": {"toolCallId": "c1", "result": {"content": "x"}}},
                {"type": "session.shutdown", "data": {"modelMetrics": {"m": {"requests": {"count": 1}}}}},
            ]
        case "gemini-cli":
            call = {"id": "c1", "name": "ls", "args": {}, "result": [{"functionResponse": {"response": {}}}]}
            return [
                {
                    "sessionId": "s",
                    "startTime": "x",
                    "messages": [{"id": "a", "type": "user", "content": "look"}],
                },
                {"id": "b", "type": "gemini", "content": "hm", "toolCalls": [call], "tokens": {"input": 3}},
                {"$set": {"messages": []}},
                {"$rewindTo": "a"},
            ]
        case _:
            return [
                {"id": "s", "agent": "x", "native_compactions": [{"index": 1}]},
                {"role": "assistant", "content": "hm", "tool_calls": calls, "usage": {"input_tokens": 3}},
                {"role": "tool", "tool_call_id": "c1", "content": "x", "ts": "2026-01-01"},
            ]


@each_format
@effort(2, 12)
def test_a_session_with_any_value_replaced_is_read_to_the_end(format, effort):
    deep: list[object] = []
    for _ in range(600):
        deep = [deep]
    wrong: tuple[object, ...] = ({"type": 7}, deep, None, True, -1, 10**30, 1.5, "", "x", [], [[]], {})
    plain = example(format)
    assert told(format, "\n".join(map(json.dumps, plain)).encode())
    for replaced in _replaced(plain, wrong[:effort]):
        told(format, "\n".join(map(json.dumps, replaced)).encode())


@each_format
@effort(20, 400)
def test_a_session_with_any_bytes_damaged_is_read_to_the_end(format, effort):
    plain = "\n".join(map(json.dumps, example(format))).encode()
    random = Random(6)
    for _ in range(effort):
        damaged = bytearray(plain)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(damaged))
            damaged[at : at + random.randint(0, 9)] = random.randbytes(random.randint(0, 5))
        told(format, bytes(damaged))
        told(format, plain[: random.randrange(len(plain))])


def _replaced(value, wrong):
    """Yield the value with each thing in it replaced by each wrong one."""
    if isinstance(value, dict):
        for name in value:
            yield from ({**value, name: other} for other in wrong)
            yield from ({**value, name: other} for other in _replaced(value[name], wrong))
    elif isinstance(value, list):
        for at in range(len(value)):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in wrong)
            yield from ([*value[:at], other, *value[at + 1 :]] for other in _replaced(value[at], wrong))
