"""What branches in Claude Code's files: forks, sub-agents, resumed sessions."""

import json
import shutil

import pytest

from lowwater.logs.importers import Skipped, recordings
from tests.logs.claude_lines import ClaudeLines


def calls(recording):
    return sum(said.call is not None for said in recording.messages)


def texts(recording):
    return [said.message.text for said in recording.messages]


@pytest.fixture
def forked():
    lines = ClaudeLines()
    lines.user("start")
    lines.text("m1", "begun")
    back = lines.last
    lines.user("this way")
    lines.text("m2", "a dead end")
    lines.at(back).user("that way")
    lines.text("m3", "the goal")
    return lines


def test_the_newest_branch_is_the_session_and_the_one_that_was_left_a_fork(forked, tmp_path):
    session, fork = recordings([forked.write(tmp_path / "s.jsonl")])
    assert texts(session) == ["start", "begun", "that way", "the goal"]
    assert (session.relation, session.shared, calls(session)) == ("", 0, 2)
    assert texts(fork) == ["start", "begun", "this way", "a dead end"]
    assert (fork.parent, fork.relation, fork.shared, calls(fork)) == ("s1", "fork", 2, 1)
    assert fork.id != session.id


def test_a_branch_without_a_call_is_no_fork(tmp_path):
    lines = ClaudeLines()
    first = lines.user("start")
    lines.user("never answered")
    lines.at(first).text("m1", "begun")
    (session,) = recordings([lines.write(tmp_path / "s.jsonl")])
    assert texts(session) == ["start", "begun"]


def test_an_answer_that_was_tried_again_is_a_fork(tmp_path):
    lines = ClaudeLines()
    first = lines.user("start")
    lines.text("m1", "cut off")
    lines.at(first).text("m2", "whole")
    session, fork = recordings([lines.write(tmp_path / "s.jsonl")])
    assert texts(session) == ["start", "whole"]
    assert texts(fork) == ["start", "cut off"]


def test_progress_between_a_call_and_its_result_does_not_branch(tmp_path):
    lines = ClaudeLines()
    lines.user("start")
    call = lines.tool("m1", "t1")
    lines.add("progress", data={"type": "hook_progress"})
    lines.at(call).result("t1")
    lines.text("m2", "done")
    (session,) = recordings([lines.write(tmp_path / "s.jsonl")])
    assert len(session.messages) == 4


def test_lines_of_sidechains_are_sessions_of_their_own(tmp_path):
    main = ClaudeLines()
    main.user("start")
    main.tool("m1", "t1")
    one = ClaudeLines(isSidechain=True, prefix="a")
    one.user("search")
    one.text("m2", "found")
    other = ClaudeLines(isSidechain=True, prefix="b", agentId="beta")
    other.user("count")
    other.text("m3", "seven")
    main.result("t1")
    main.lines += one.lines + other.lines
    session, *agents = recordings([main.write(tmp_path / "s.jsonl")])
    assert (calls(session), session.relation) == (1, "")
    assert [(agent.parent, agent.relation, calls(agent)) for agent in agents] == [("s1", "subagent", 1)] * 2
    assert [agent.id for agent in agents] == ["s1/a1", "s1/beta"]


def test_a_sub_agent_that_is_only_echoed_is_a_session_and_one_with_a_file_is_told_once(tmp_path):
    agent = ClaudeLines(isSidechain=True, agentId="alpha", prefix="a")
    agent.user("search")
    agent.tool("m5", "t5")
    agent.result("t5")
    agent.text("m6", "found")
    main = ClaudeLines()
    main.user("start")
    main.tool("m1", "t1")
    for line in agent.lines:
        kept = {
            name: line[name] for name in ("type", "uuid", "timestamp", "message", "requestId") if name in line
        }
        main.add("progress", data={"type": "agent_progress", "agentId": "alpha", "message": kept})
    main.result("t1")
    path = main.write(tmp_path / "s1.jsonl")
    session, echoed = recordings([path])
    assert (calls(session), calls(echoed)) == (1, 2)
    assert (echoed.id, echoed.parent, echoed.relation) == ("s1/alpha", "s1", "subagent")
    (tmp_path / "s1" / "subagents").mkdir(parents=True)
    agent.write(tmp_path / "s1" / "subagents" / "agent-alpha.jsonl")
    both = list(recordings([tmp_path]))
    assert sum(map(calls, both)) == 3
    assert len(both) == 2


def test_a_resumed_session_counts_what_it_copied_only_once(tmp_path):
    lines = ClaudeLines()
    lines.user("start")
    lines.text("m1", "begun")
    lines.write(tmp_path / "a.jsonl")
    for line in lines.lines:
        line["sessionId"] = "s2"
    lines.user("go on", sessionId="s2")
    lines.text("m2", "gone on", sessionId="s2")
    lines.write(tmp_path / "b.jsonl")
    first, resumed = recordings([tmp_path])
    assert (calls(first), calls(resumed)) == (1, 1)
    assert (resumed.id, resumed.parent, resumed.relation, resumed.shared) == ("s2", "s1", "fork", 2)
    assert texts(resumed) == ["start", "begun", "go on", "gone on"]


def test_copied_lines_that_keep_the_older_session_make_one_session(tmp_path):
    lines = ClaudeLines()
    lines.user("start")
    lines.text("m1", "begun")
    lines.user("go on", sessionId="s2")
    lines.text("m2", "gone on", sessionId="s2")
    (session,) = recordings([lines.write(tmp_path / "b.jsonl")])
    assert (session.id, calls(session)) == ("s2", 2)


def test_a_copy_of_a_file_is_told_once(forked, tmp_path):
    forked.write(tmp_path / "a.jsonl")
    shutil.copy(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    skipped: list[Skipped] = []
    told = list(recordings([tmp_path], on_skipped=skipped.append))
    assert sum(map(calls, told)) == 3
    assert [one.path for one in skipped] == [str(tmp_path / "b.jsonl")]


def test_sessions_in_one_file_are_told_apart(tmp_path):
    one, two = ClaudeLines("one"), ClaudeLines("two", prefix="v")
    for lines, message in ((one, "m1"), (two, "m2")):
        lines.user("start")
        lines.text(message, "done")
    mixed = [line for pair in zip(one.lines, two.lines, strict=True) for line in pair]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, mixed)))
    assert [session.id for session in recordings([path])] == ["one", "two"]


@pytest.mark.parametrize("parent", ["u2", "u1", "later", "u3"], ids=["itself", "earlier", "unknown", "later"])
def test_any_parent_leaves_a_session(parent, tmp_path):
    lines = ClaudeLines()
    lines.user("start")
    lines.text("m1", "begun", parentUuid=parent)
    lines.text("m2", "done")
    told = list(recordings([lines.write(tmp_path / "s.jsonl")]))
    assert sum(map(calls, told)) == 2


def test_answers_that_a_proxy_gave_the_same_id_are_told_apart_by_their_requests(tmp_path):
    lines = ClaudeLines()
    lines.user("start")
    lines.text("m", "one", requestId="r1")
    lines.user("on")
    lines.text("m", "two", requestId="r2")
    (session,) = recordings([lines.write(tmp_path / "s.jsonl")])
    assert texts(session) == ["start", "one", "on", "two"]
    assert calls(session) == 2
