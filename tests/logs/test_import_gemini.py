"""Gemini CLI's sessions become recordings, whether one object or lines that change what came before."""

import json

import pytest

from lowwater.core.api_calls import Usage
from lowwater.logs.importers import recordings

ABOUT = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-02-01T10:00:00Z"}
TOKENS = {"input": 1000, "output": 30, "cached": 200, "thoughts": 50, "tool": 7, "total": 1087}


def user(id, text):
    return {"id": id, "timestamp": "2026-02-01T10:00:01Z", "type": "user", "content": text}


def gemini(id, text, **fields):
    return {"id": id, "type": "gemini", "content": text, "model": "gemini-x", "tokens": TOKENS, **fields}


def tool_call(id, output="files"):
    response = {"functionResponse": {"id": id, "name": "ls", "response": {"output": output}}}
    return {"id": id, "name": "ls", "args": {"dir": "."}, "result": [response], "status": "success"}


@pytest.fixture
def read(tmp_path):
    def read(*lines, indent=None, name="session.json"):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(line, indent=indent) for line in lines))
        return list(recordings([path]))

    return read


def texts(recording):
    return [said.message.text for said in recording.messages]


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "pretty"])
def test_a_whole_session_is_read(indent, read):
    thoughts = [{"subject": "Plan", "description": "list files"}]
    answer = gemini("b", "I look", toolCalls=[tool_call("t1")], thoughts=thoughts)
    notice = {"id": "c", "type": "info", "content": "only for the screen"}
    (session,) = read({**ABOUT, "messages": [user("a", "look"), answer, notice]}, indent=indent)
    assert (session.id, session.agent, session.model) == ("s1", "gemini-cli", "gemini-x")
    assert [said.message.role for said in session.messages] == ["user", "assistant", "tool"]
    assert session.messages[1].message.thinking[0].text == "Plan: list files"
    assert json.loads(session.messages[1].message.calls[0].arguments) == {"dir": "."}
    assert session.messages[2].message.results[0].text == "files"


def test_counts_are_taken_apart_and_thoughts_are_output(read):
    (session,) = read({**ABOUT, "messages": [gemini("b", "done")]})
    assert session.messages[0].call.usage == Usage(uncached=807, cache_read=200, output=80)


def test_a_call_whose_counts_are_all_nought_has_none(read):
    (session,) = read({**ABOUT, "messages": [gemini("b", "cut", tokens=dict.fromkeys(TOKENS, 0))]})
    assert session.messages[0].call.usage is None


def test_content_of_parts_is_read(read):
    (session,) = read(
        {**ABOUT, "messages": [user("a", [{"text": "look"}, "here"]), gemini("b", {"text": "ok"})]}
    )
    assert texts(session) == ["look\nhere", "ok"]


def test_a_message_that_is_written_again_counts_once(read):
    (session,) = read(
        ABOUT,
        user("a", "look"),
        gemini("b", "I look", tokens=None),
        gemini("b", "I look", toolCalls=[{**tool_call("t1"), "result": None}]),
        gemini("b", "I look", toolCalls=[tool_call("t1")]),
        {"$set": {"lastUpdated": "2026-02-01T11:00:00Z"}},
        gemini("c", "done"),
    )
    assert [said.message.role for said in session.messages] == ["user", "assistant", "tool", "assistant"]
    assert sum(said.call is not None for said in session.messages) == 2
    assert session.messages[2].message.results[0].text == "files"


def test_what_was_rewound_is_a_fork(read):
    session, fork = read(
        ABOUT, user("a", "one"), gemini("b", "two"), user("c", "three"), gemini("d", "four"),
        {"$rewindTo": "c"}, user("e", "five"), gemini("f", "six"),
    )  # fmt: skip
    assert texts(session) == ["one", "two", "five", "six"]
    assert texts(fork) == ["one", "two", "three", "four"]
    assert (fork.relation, fork.parent, fork.shared) == ("fork", "s1", 2)


def test_a_list_that_begins_with_a_new_message_is_a_compaction(read):
    summary = user("x", "In short.")
    (session,) = read(
        {**ABOUT, "messages": []},
        user("a", "one"),
        gemini("b", "two"),
        {"$set": {"messages": [summary, gemini("b", "two")]}},
        gemini("d", "three"),
    )
    assert texts(session) == ["one", "two", "In short.", "three"]
    assert [compaction.index for compaction in session.compactions] == [2]
    assert session.messages[2].kind == "compact_summary"


def test_a_shorter_list_of_known_messages_goes_back(read):
    kept = user("a", "one")
    session, fork = read(
        ABOUT, kept, gemini("b", "two"), {"$set": {"messages": [kept]}}, gemini("c", "three")
    )
    assert texts(session) == ["one", "three"]
    assert texts(fork) == ["one", "two"]
    assert session.compactions == ()


def test_a_sub_agent_names_its_parent_by_its_folder(tmp_path):
    folder = tmp_path / "chats" / "s0"
    folder.mkdir(parents=True)
    lines = [{**ABOUT, "kind": "subagent"}, gemini("b", "done")]
    (folder / "s1.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (session,) = recordings([tmp_path])
    assert (session.parent, session.relation) == ("s0", "subagent")


def test_a_broken_message_is_counted_and_the_others_are_read(read):
    (session,) = read({**ABOUT, "messages": [user("a", "one"), {"id": 7, "type": []}, gemini("b", "two")]})
    assert texts(session) == ["one", "two"]
    assert len(session.broken) == 1


def test_messages_without_ids_all_stay(read):
    (session,) = read({**ABOUT, "messages": [user("", "one"), gemini("", "two"), user("", "three")]})
    assert texts(session) == ["one", "two", "three"]
