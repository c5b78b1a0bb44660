"""Copilot CLI's events become recordings."""

import json

import pytest

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings


class Events:
    def __init__(self):
        self.lines = []

    def add(self, type, *, agent=None, **data):
        id = f"e{len(self.lines) + 1}"
        at = f"2026-07-01T10:00:{len(self.lines):02}Z"
        envelope = {"agentId": agent} if agent else {}
        self.lines.append(
            {"type": type, "data": data, "id": id, "timestamp": at, "parentId": None, **envelope}
        )
        return id

    def answer(self, id, text, *calls, **fields):
        requests = [{"toolCallId": call, "name": "bash", "arguments": {"command": "ls"}} for call in calls]
        said = {"messageId": f"m-{id}", "apiCallId": id, "content": text, "toolRequests": requests}
        return self.add("assistant.message", **{"model": "claude-sonnet-4.6", **said, **fields})

    def result(self, call, text="files", **fields):
        done = {"toolCallId": call, "success": True, "result": {"content": text}}
        return self.add("tool.execution_complete", **{**done, **fields})


@pytest.fixture
def events():
    events = Events()
    events.add("session.start", sessionId="s1", startTime="2026-07-01T09:59:59Z", selectedModel="gpt-x")
    events.add("system.message", role="system", content="Be brief.")
    events.add("user.message", content="look", transformedContent="<now/>look")
    return events


@pytest.fixture
def read(tmp_path):
    def read(events):
        path = tmp_path / "events.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in events.lines))
        return list(recordings([path]))

    return read


def test_a_session_is_read(events, read):
    events.answer("k1", "I look", "t1", "t2", reasoningText="hm")
    events.result("t2", "two")
    events.result("t1", success=False, result=None, error={"message": "no such file", "code": "x"})
    events.add("system.notification", content="a shell ended")
    events.answer("k2", "done")
    (session,) = read(events)
    assert (session.id, session.agent, session.model) == ("s1", "copilot-cli", "claude-sonnet-4.6")
    assert session.system == b'"Be brief."'
    roles = [said.message.role for said in session.messages]
    assert roles == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert session.messages[0].message.text == "<now/>look"
    results = [result for said in session.messages for result in said.message.results]
    assert [(result.text, result.is_error) for result in results] == [("no such file", True), ("two", False)]
    assert session.messages[4].kind == "meta"
    assert session.messages[1].message.thinking[0].text == "hm"


def test_messages_of_one_call_are_one_answer(events, read):
    events.answer("k1", "first I say")
    events.answer("k1", "then I look", "t1")
    events.result("t1")
    (session,) = read(events)
    assert sum(said.call is not None for said in session.messages) == 1
    assert session.messages[1].message.text == "first I say\n\nthen I look"


def metrics(count):
    usage = {"inputTokens": 1000, "outputTokens": 30, "cacheReadTokens": 900, "cacheWriteTokens": 60}
    return {"gpt-x": {"requests": {"count": count}, "usage": usage}}


def test_the_counts_of_a_session_with_one_call_are_that_calls(events, read):
    events.answer("k1", "done")
    events.add("session.shutdown", modelMetrics=metrics(1))
    (session,) = read(events)
    assert session.messages[1].call.usage == Usage(uncached=40, cache_read=900, cache_write=60, output=30)


def test_the_counts_of_several_calls_are_not_divided(events, read):
    events.answer("k1", "one")
    events.answer("k2", "two")
    events.add("session.shutdown", modelMetrics=metrics(2))
    (session,) = read(events)
    assert [said.call.usage for said in session.messages[1:]] == [None, None]


def test_a_compaction_is_told_with_its_summary_and_its_call(events, read):
    events.answer("k1", "one")
    used = {"input": 500, "output": 20, "cachedInput": 400}
    events.add("session.compaction_complete", success=False)
    events.add(
        "session.compaction_complete",
        success=True, preCompactionTokens=9000, summaryContent="In short.", compactionTokensUsed=used,
    )  # fmt: skip
    events.answer("k2", "two")
    (session,) = read(events)
    assert [(it.index, it.before) for it in session.compactions] == [(2, 9000)]
    assert [said.kind for said in session.messages] == ["", "", "compact_summary", ""]
    assert session.messages[3].call.others == (Usage(uncached=100, cache_read=400, output=20),)


def test_a_rewind_leaves_a_fork(events, read):
    events.answer("k1", "one")
    back = events.add("user.message", content="this way")
    events.answer("k2", "two")
    events.add("session.snapshot_rewind", upToEventId=back, eventsRemoved=2)
    events.add("user.message", content="that way")
    events.answer("k3", "three")
    session, fork = read(events)
    assert [said.message.text for said in session.messages[1:]] == ["one", "that way", "three"]
    assert [said.message.text for said in fork.messages[1:]] == ["one", "this way", "two"]
    assert (fork.parent, fork.relation, fork.shared) == ("s1", "fork", 2)


@pytest.mark.parametrize("named", ["agentId", "parentToolCallId"])
def test_a_sub_agent_is_a_session_of_its_own(named, events, read):
    events.answer("k1", "I ask", "t1")
    if named == "agentId":
        events.add("assistant.message", agent="a1", apiCallId="k2", content="found")
    else:
        events.add("assistant.message", parentToolCallId="a1", apiCallId="k2", content="found")
    events.result("t1")
    session, agent = read(events)
    assert (agent.id, agent.parent, agent.relation) == ("s1/a1", "s1", "subagent")
    assert len(agent.messages) == 1
    assert len(session.messages) == 3


def test_several_sessions_in_one_file_are_told_apart(events, read):
    events.answer("k1", "one")
    events.add("session.start", sessionId="s2")
    events.answer("k2", "two")
    assert [session.id for session in read(events)] == ["s1", "s2"]


def test_events_of_no_concern_may_have_any_shape(events, read):
    events.add("hook.start", content=[1], model={"a": 1}, success="maybe")
    events.answer("k1", "done")
    (session,) = read(events)
    assert session.broken == ()
