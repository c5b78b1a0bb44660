"""pi's sessions become recordings: branches, compactions, counts and images."""

import json

import pytest

from lowwater.core.api_calls import Usage
from lowwater.core.messages import ToolResult
from lowwater.logs.importers import recordings
from lowwater.logs.recording import NativeCompaction

HEADER = {
    "type": "session",
    "version": 3,
    "id": "0199-ab",
    "timestamp": "2026-07-01T10:00:00.000Z",
    "cwd": "/home/me/shop",
}
USAGE = {
    "input": 5,
    "output": 7,
    "cacheRead": 100,
    "cacheWrite": 20,
    "totalTokens": 132,
    "cost": {"total": 0.1},
}


class Lines:
    def __init__(self):
        self.lines, self.last = [HEADER], None

    def add(self, type, *, after="last", **fields):
        id = f"{len(self.lines):08x}"
        parent = self.last if after == "last" else after
        at = f"2026-07-01T10:00:{len(self.lines):02}.000Z"
        self.lines.append({"type": type, "id": id, "parentId": parent, "timestamp": at, **fields})
        self.last = id
        return id

    def user(self, content, **fields):
        return self.add("message", message={"role": "user", "content": content}, **fields)

    def answer(self, text, *calls, usage=USAGE, model="claude-opus-4-5", **fields):
        blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
        blocks += [
            {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": "ls"}} for call in calls
        ]
        said = {
            "role": "assistant",
            "content": blocks,
            "provider": "anthropic",
            "model": model,
            "usage": usage,
        }
        return self.add("message", message=said, **fields)

    def result(self, call, content, *, is_error=False):
        told = {
            "role": "toolResult",
            "toolCallId": call,
            "toolName": "bash",
            "content": content,
            "isError": is_error,
        }
        return self.add("message", message=told)


@pytest.fixture
def read(tmp_path):
    def read(lines):
        path = tmp_path / "2026-07-01T10-00-00_0199-ab.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines.lines))
        return list(recordings([path]))

    return read


def test_a_session_is_read_with_its_counts_and_errors(read):
    lines = Lines()
    lines.add("model_change", provider="anthropic", modelId="claude-opus-4-5")
    lines.user("look")
    lines.answer("I look", "t1")
    lines.result("t1", [{"type": "text", "text": "no such file"}], is_error=True)
    lines.add("custom", customType="state", data={})
    lines.answer("gone", usage={"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0})
    (session,) = read(lines)
    assert (session.id, session.agent, session.model, session.project) == (
        "0199-ab", "pi", "claude-opus-4-5", "/home/me/shop",
    )  # fmt: skip
    assert [each.message.role for each in session.messages] == ["user", "assistant", "tool", "assistant"]
    assert [each.call.usage for each in session.messages if each.call] == [
        Usage(uncached=5, cache_read=100, cache_write=20, output=7),
        None,
    ]
    (result,) = session.messages[2].message.parts
    assert isinstance(result, ToolResult)
    assert result.is_error


def test_a_line_that_cannot_be_read_loses_nothing_before_it(read):
    lines = Lines()
    lines.user("look")
    lines.answer("seen")
    lost = lines.user("and then?")
    lines.answer("then this")
    at = next(at for at, line in enumerate(lines.lines) if line["id"] == lost)
    lines.lines[at] = {"type": "message", "id": 7}
    (session,) = read(lines)
    assert [each.message.text for each in session.messages] == ["look", "seen", "then this"]


def test_a_branch_that_was_left_is_a_fork(read):
    lines = Lines()
    first = lines.user("look")
    lines.answer("one way")
    lines.user("another way", after=first)
    lines.answer("the other way")
    newest, left = read(lines)
    assert [each.message.text for each in newest.messages] == ["look", "another way", "the other way"]
    assert [each.message.text for each in left.messages] == ["look", "one way"]
    assert (left.parent, left.relation) == (newest.id, "fork")


def test_a_compaction_is_one_of_the_agent(read):
    lines = Lines()
    lines.user("look")
    kept = lines.answer("done")
    lines.add("compaction", summary="They looked.", firstKeptEntryId=kept, tokensBefore=155_000)
    lines.user("go on")
    lines.answer("gone on")
    (session,) = read(lines)
    assert session.compactions == (NativeCompaction(index=2, at=session.messages[2].at, before=155_000),)
    assert session.messages[2].kind == "compact_summary"
    assert "They looked." in session.messages[2].message.text


def test_commands_that_the_user_ran_are_sent_unless_they_were_kept_from_the_model(read):
    lines = Lines()
    lines.user([{"type": "text", "text": "see"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}])
    ran = {"role": "bashExecution", "command": "ls", "output": "a.py", "exitCode": 0}
    lines.add("message", message=ran)
    lines.add("message", message={**ran, "output": "secret", "excludeFromContext": True})
    lines.answer("seen")
    (session,) = read(lines)
    assert len(session.messages[0].message.parts) == 2
    assert "a.py" in session.messages[1].message.text
    assert session.messages[1].kind == "meta"
    assert len(session.messages) == 3
