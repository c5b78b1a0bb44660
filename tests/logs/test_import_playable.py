"""What agents write down and no provider takes is mended when it is read, so that one session never stops a report."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lowwater.cli.app import app
from lowwater.core.messages import Message, Text
from lowwater.core.summary.activity import own_words
from lowwater.errors import defect
from lowwater.lab.replay.script import NEUTRAL
from lowwater.lab.replay.session import ReplayOptions, ReplayTask, replay_session
from lowwater.logs.importers import Skipped, recordings
from lowwater.logs.recording import NativeCompaction, RecordedMessage, Recording
from lowwater.logs.recording_builder import is_empty, playable
from tests.logs.claude_lines import ClaudeLines
from tests.logs.opencode_storage import Storage, as_exports, finish, text, tool

PLAYED = ReplayOptions(policies=("rent-or-buy",), arms=(NEUTRAL,), full=("rent-or-buy",))


def hooked(folder: Path) -> Path:
    """Return a log of Claude Code 2.1.x: a hook that said nothing, a reminder, a notification, two questions."""
    lines = ClaudeLines()
    lines.add("attachment", attachment={"type": "hook_success", "hookName": "SessionStart", "content": ""})
    lines.user("Why does the login test fail on Tuesdays?")
    lines.text("m1", "Because the token expires.")
    lines.add("attachment", attachment={"type": "task_reminder", "content": [], "itemCount": 0})
    lines.user("Then make the token last a week and never touch the session store.")
    lines.text("m2", "It lasts a week now.")
    notified = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    queued = {"type": "queued_command", "prompt": notified, "commandMode": "task-notification"}
    lines.add("attachment", attachment=queued)
    lines.add("attachment", attachment={"type": "edited_text_file", "filename": "a.py", "snippet": "1 x"})
    lines.text("m3", "Noted.")
    return lines.write(folder / "hooked.jsonl")


def run(*args: object) -> dict[str, Any]:
    done = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_hook_that_said_nothing_is_no_message(tmp_path):
    log = hooked(tmp_path)
    (session,) = recordings([log])
    assert not any(is_empty(each.message) for each in session.messages)
    result = replay_session(ReplayTask(recording=session, options=PLAYED))
    assert (result.skipped, result.calls) == ("", 3)


@pytest.mark.parametrize("command", ["inspect", "inspect --explain", "compress"])
def test_commands_on_a_log_with_empty_attachments_say_what_they_opened(tmp_path, command):
    told = run(*command.split(), hooked(tmp_path), "--json")
    assert (told["session"], told["sessions"], told["left_out"]) == ("s1", 1, [])
    if command == "compress":
        assert all(message["content"] for message in told["conversation"])


@pytest.mark.parametrize("command", ["inspect", "inspect --explain", "compress"])
def test_lines_that_cannot_be_used_are_named(tmp_path, command):
    log = hooked(tmp_path)
    log.write_text(log.read_text() + '{"type": "user", "uuid": "cut')
    (left,) = run(*command.split(), log, "--json")["left_out"]
    assert left["place"] == f"{log}:{len(log.read_text().splitlines())}"
    assert left["why"]
    page = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, [*command.split(), str(log)])
    assert "1 line left out, the first at" in page.output


def test_what_the_harness_says_is_not_the_users_ask(tmp_path):
    (session,) = recordings([hooked(tmp_path)])
    asked = [own_words(each.message) for each in session.messages if each.message.role == "user"]
    assert [words for words in asked if words] == [
        "Why does the login test fail on Tuesdays?",
        "Then make the token last a week and never touch the session store.",
    ]


def test_a_result_may_stand_before_its_call(tmp_path):
    """Claude Code writes down streams and tools side by side."""
    lines = ClaudeLines()
    lines.user("Look.")
    lines.block("m1", {"type": "text", "text": "Looking."})
    call = lines.block("m1", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}})
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "files"}
    lines.user([result], parentUuid=call)
    lines.text("m2", "Seen.")
    lines.lines[2], lines.lines[3] = lines.lines[3], lines.lines[2]
    (session,) = recordings([lines.write(tmp_path / "swapped.jsonl")])
    assert session.broken == ()
    assert [part.text for each in session.messages for part in each.message.results] == ["files"]
    assert len([each for each in session.messages if each.call]) == 2


def test_calls_of_one_session_with_one_id_are_told_apart(tmp_path):
    """Some of the providers that OpenCode talks to number the calls of each answer from the start."""
    storage = Storage()
    storage.session("ses_1")
    storage.message("ses_1", "msg_1", "user", text("Read both."))
    for number in (2, 3):
        tools = (tool("call_0", output=f"{number} first"), tool("call_0", output=f"{number} second"))
        storage.message("ses_1", f"msg_{number}", "assistant", *tools, finish(), modelID="claude-opus-5-5")
    (session,) = recordings([as_exports(storage, tmp_path)])
    calls = [call.id for each in session.messages for call in each.message.calls]
    results = {part.call_id: part.text for each in session.messages for part in each.message.results}
    assert len(set(calls)) == 4
    assert [results[call] for call in calls] == ["2 first", "2 second", "3 first", "3 second"]
    assert replay_session(ReplayTask(recording=session, options=PLAYED)).skipped == ""


def test_places_are_counted_without_what_was_empty():
    nothing = RecordedMessage(message=Message(role="user", parts=(Text(text=" \n"),)))
    word = RecordedMessage(message=Message(role="user", parts=(Text(text="word"),)))
    recording = Recording(
        id="s",
        agent="a",
        path="p",
        messages=(nothing, word, nothing, word, nothing),
        shared=2,
        compactions=(NativeCompaction(index=3), NativeCompaction(index=5)),
    )
    mended = playable(recording)
    assert mended.messages == (word, word)
    assert mended.shared == 1
    assert [each.index for each in mended.compactions] == [1, 2]


class Faulty:
    """A format whose reader has a defect."""

    name = "faulty"
    order = 0

    def recognises(self, head, path):
        return True

    def read(self, file):
        if file.path.name == "2":
            raise KeyError("a defect of ours")
        yield Recording(
            id=file.path.name,
            agent="a",
            path=str(file.path),
            messages=(RecordedMessage(message=Message(role="user", parts=(Text(text="word"),))),),
        )


def test_a_defect_in_one_file_is_named_and_the_others_are_read(tmp_path):
    for name in ("1", "2", "3"):
        (tmp_path / name).write_text("{}")
    skipped: list[Skipped] = []
    found = list(recordings([tmp_path], formats=[Faulty()], on_skipped=skipped.append))
    assert [each.id for each in found] == ["1", "3"]
    assert [(Path(each.path).name, each.why) for each in skipped] == [
        ("2", defect(KeyError("a defect of ours")))
    ]
