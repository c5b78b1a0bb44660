"""Claude Code sessions become recordings: blocks are joined, calls counted once, kinds and compactions told."""

import pytest

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import encode_messages
from lowwater.core.messages import Text, Thinking, ToolCall, ToolResult
from lowwater.logs.importers import recordings
from lowwater.logs.recording import NativeCompaction
from tests.logs.claude_lines import START, USAGE, ClaudeLines


@pytest.fixture
def read(tmp_path):
    def read(lines):
        return list(recordings([lines.write(tmp_path / "s.jsonl")]))

    return read


def roles(recording):
    return [said.message.role for said in recording.messages]


def test_the_blocks_of_one_answer_are_one_message(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.block("m1", {"type": "thinking", "thinking": "hm", "signature": "sig"})
    lines.text("m1", "I look")
    lines.tool("m1", "t1")
    lines.result("t1")
    (session,) = read(lines)
    assert (session.id, session.agent, session.model) == ("s1", "claude-code", "claude-opus-5-5")
    assert roles(session) == ["user", "assistant", "user"]
    assert [type(part) for part in session.messages[1].message.parts] == [Thinking, Text, ToolCall]
    assert session.messages[1].at == START + 1
    assert session.started_at == START


def test_usage_is_counted_once_however_many_blocks_repeat_it(read):
    lines = ClaudeLines()
    lines.user("look")
    for text in "abc":
        lines.text("m1", text)
    (session,) = read(lines)
    (call,) = [said.call for said in session.messages if said.call]
    assert call.usage == Usage(uncached=3, cache_read=9000, cache_write=500, cache_write_long=200, output=40)
    assert call.model == "claude-opus-5-5"
    assert call.list_price


def test_the_usage_that_knows_most_of_the_output_counts(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "a", usage={**USAGE, "output_tokens": 1})
    lines.text("m1", "b", usage={**USAGE, "output_tokens": 99})
    lines.text("m1", "c", usage={**USAGE, "output_tokens": 7})
    (session,) = read(lines)
    assert session.messages[1].call.usage.output == 99


def test_a_priority_tier_is_not_the_list_price(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "a", usage={**USAGE, "service_tier": "priority"})
    (session,) = read(lines)
    assert not session.messages[1].call.list_price


def test_compaction_by_the_provider_is_told_beside_the_call(read):
    own = {"type": "message", "input_tokens": 3, "output_tokens": 40}
    compaction = {"type": "compaction", "input_tokens": 5000, "output_tokens": 300}
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "a", usage={"input_tokens": 3, "output_tokens": 40, "iterations": [compaction, own]})
    (session,) = read(lines)
    assert session.messages[1].call.others == (Usage(uncached=5000, output=300),)


def test_parallel_results_follow_their_answer_in_the_order_of_its_calls(read):
    lines = ClaudeLines()
    lines.user("look")
    first = lines.tool("m1", "t1")
    second = lines.tool("m1", "t2")
    lines.at(second).result("t2", "two")
    lines.at(first).result("t1", "one")
    lines.text("m2", "done")
    (session,) = read(lines)
    assert roles(session) == ["user", "assistant", "user", "assistant"]
    assert [result.text for result in session.messages[2].message.results] == ["one", "two"]
    assert session.relation == ""


def test_a_call_without_a_recorded_result_gets_a_stub(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.tool("m1", "t1")
    lines.tool("m1", "t2")
    lines.result("t2", "two")
    lines.tool("m2", "t3")
    (session,) = read(lines)
    assert [result.call_id for said in session.messages for result in said.message.results] == [
        "t1",
        "t2",
        "t3",
    ]
    assert [said.kind for said in session.messages] == ["", "", "", "", "synthetic"]


def test_a_result_without_its_call_is_counted_as_broken(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.result("lost")
    lines.text("m1", "done")
    (session,) = read(lines)
    assert roles(session) == ["user", "assistant"]
    (broken,) = session.broken
    assert broken.place.endswith("s.jsonl:2")


def test_text_beside_results_stands_behind_them(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.tool("m1", "t1")
    text = {"type": "text", "text": "and hurry"}
    lines.user([text, {"type": "tool_result", "tool_use_id": "t1", "content": "one"}])
    (session,) = read(lines)
    assert [type(part) for part in session.messages[2].message.parts] == [ToolResult, Text]


def test_a_compaction_is_told_with_its_summary(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "done")
    boundary = {"parentUuid": None, "logicalParentUuid": lines.last, "subtype": "compact_boundary"}
    lines.add("system", **boundary, compactMetadata={"trigger": "auto", "preTokens": 155_000})
    lines.user("In short: done.", isCompactSummary=True)
    lines.text("m2", "on we go")
    (session,) = read(lines)
    assert session.compactions == (NativeCompaction(index=2, at=START + 2, trigger="auto", before=155_000),)
    assert [said.kind for said in session.messages] == ["", "", "compact_summary", ""]


def test_a_microcompaction_is_told_as_a_prune_and_breaks_no_chain(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.tool("m1", "t1")
    lines.result("t1")
    told = {"trigger": "auto", "preTokens": 90_000, "tokensSaved": 21_000, "compactedToolIds": ["t1"]}
    lines.add("system", subtype="microcompact_boundary", microcompactMetadata=told)
    lines.text("m2", "on we go")
    (session,) = read(lines)
    (prune,) = session.compactions
    assert (prune.kind, prune.index, prune.trigger) == ("prune", 3, "auto")
    assert (prune.before, prune.removed, prune.cleared) == (90_000, 21_000, ("t1",))
    assert [said.message.role for said in session.messages] == ["user", "assistant", "user", "assistant"]


def test_a_summary_without_a_boundary_is_a_compaction_too(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "done")
    lines.user("In short: done.", isCompactSummary=True)
    (session,) = read(lines)
    assert [compaction.index for compaction in session.compactions] == [2]


def test_a_boundary_whose_parent_was_not_written_goes_on_where_the_file_was(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "done")
    lines.add("system", parentUuid=None, logicalParentUuid="gone", subtype="compact_boundary")
    lines.user("In short: done.", isCompactSummary=True)
    (session,) = read(lines)
    assert len(session.messages) == 3


def test_what_the_harness_says_has_a_kind(read):
    lines = ClaudeLines()
    lines.user("Caveat", isMeta=True)
    lines.add("attachment", attachment={"type": "todo", "content": "a reminder"})
    lines.add("attachment", attachment={"type": "queued_command", "prompt": "also this"})
    lines.add("attachment", attachment={"type": "diagnostics", "files": [1, 2]})
    lines.text("m1", "no answer", model="<synthetic>")
    lines.text("m2", "an answer")
    (session,) = read(lines)
    assert [said.kind for said in session.messages] == [
        "meta",
        "attachment",
        "",
        "attachment",
        "synthetic",
        "",
    ]
    assert session.messages[1].message.text == "<system-reminder>\na reminder\n</system-reminder>"
    assert session.messages[2].message.text == "also this"
    assert [said.call is not None for said in session.messages] == [False] * 5 + [True]


def test_an_error_of_the_service_is_no_call(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "API Error", isApiErrorMessage=True)
    (session,) = read(lines)
    assert [said.call for said in session.messages] == [None, None]


def test_messages_can_be_sent_again(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.tool("m1", "t1")
    lines.result("t1")
    lines.text("m2", "done")
    (session,) = read(lines)
    messages = [said.message for said in session.messages]
    assert all(said.wire.format == "anthropic" and said.wire.exact for said in messages)
    assert encode_messages(messages, "anthropic") == [said.wire.raw for said in messages]


def test_half_characters_are_mended(tmp_path):
    lines = ClaudeLines()
    lines.user("cut \ud83d")
    lines.text("m1", "whole 😀")
    (session,) = recordings([lines.write(tmp_path / "s.jsonl")])
    assert [said.message.text for said in session.messages] == ["cut \ufffd", "whole 😀"]
    assert session.broken == ()


def test_a_block_of_the_wrong_shape_takes_only_its_line_along(read):
    lines = ClaudeLines()
    lines.user("look")
    lines.text("m1", "one")
    lines.block("m1", {"type": "text", "text": 7})
    lines.text("m1", "two")
    (session,) = read(lines)
    assert session.messages[1].message.text == "one\ntwo"
    assert [broken.place.rpartition(":")[2] for broken in session.broken] == ["3"]
