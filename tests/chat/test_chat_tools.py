"""The tools: what they give, what they refuse, what they ask the user for."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lowwater.chat.chat import instructions
from lowwater.chat.tools import Memory, Tool, Toolbox, Workspace, read_file, search, shell, todo, write_file
from lowwater.core.messages import ToolCall
from lowwater.core.strict_json import write_json


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "here"
    directory.mkdir()
    return directory


def ran(tool: Tool, *, allowed: bool = True, **arguments: Any) -> str:
    """What the model is answered."""
    box = Toolbox([tool], allow=lambda _: allowed)
    return box.run(ToolCall(id="1", name=tool.name, arguments=write_json(arguments).decode())).text


def question(tool: Tool, **arguments: Any) -> str:
    return tool.question(arguments)


def test_read_file_gives_ranges_and_says_how_much_there_is(here: Path) -> None:
    (here / "a.txt").write_text("\n".join(str(number) for number in range(1, 11)))
    tool = read_file(Workspace(directory=here))
    assert ran(tool, path="a.txt", offset=3, limit=2) == "[a.txt, lines 3-4 of 10]\n3\n4"
    assert ran(tool, path="a.txt").startswith("[a.txt, lines 1-10 of 10]")
    assert "has only 10 lines" in ran(tool, path="a.txt", offset=11)
    assert "at least 1" in ran(tool, path="a.txt", offset=0)


def test_read_file_refuses_what_is_no_text(here: Path) -> None:
    (here / "picture").write_bytes(b"\x89PNG\0\0")
    (here / "empty").write_text("")
    tool = read_file(Workspace(directory=here))
    assert "no text file" in ran(tool, path="picture")
    assert "is a directory" in ran(tool, path=".")
    assert "is empty" in ran(tool, path="empty")


def test_reading_below_the_directory_needs_no_question_and_elsewhere_one(here: Path) -> None:
    (here.parent / "secret").write_text("x")
    (here / "link").symlink_to(here.parent / "secret")
    tool = read_file(Workspace(directory=here))
    assert question(tool, path="sub/file") == ""
    assert "outside" in question(tool, path="../secret")
    assert "outside" in question(tool, path="link")
    assert "declined" in ran(tool, allowed=False, path="../secret")


def test_write_file_is_asked_for_with_what_it_would_do(here: Path) -> None:
    tool = write_file(Workspace(directory=here))
    assert question(tool, path="new/a.txt", content="1\n2\n") == (
        "write new/a.txt, 2 lines, a new file\n      │ 1\n      │ 2"
    )
    assert ran(tool, path="new/a.txt", content="1\n2\n") == "Wrote 2 lines to new/a.txt."
    assert (here / "new" / "a.txt").read_text() == "1\n2\n"
    long = question(tool, path="new/a.txt", content="x\n" * 20)
    assert "replacing" in long
    assert long.endswith("│ … 12 more")


def test_shell_gives_exit_code_and_output_and_no_keys(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-hidden")
    monkeypatch.setenv("MY_KEY", "also-hidden")
    tool = shell(Workspace(directory=here), withheld=("MY_KEY",))
    assert question(tool, command="ls") == "run: ls"
    assert ran(tool, command="echo out; echo err >&2; exit 3") == "[exit code 3]\nout\nerr\n"
    assert "hidden" not in ran(tool, command="env")
    assert ran(tool, command="pwd").endswith(f"{here}\n")


def test_shell_stops_a_command_and_all_it_started_in_time(here: Path) -> None:
    tool = shell(Workspace(directory=here))
    said = ran(tool, command="sh -c 'echo $$ > pid; exec sleep 600' & echo begun; wait", timeout=1)
    assert said.startswith("[stopped after 1 s]")
    assert "begun" in said
    child = int((here / "pid").read_text())
    assert not _is_running(child)


def _is_running(process: int) -> bool:
    """Whether a process runs; one that was killed and that nobody has buried yet does not."""
    try:
        os.kill(process, 0)
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_shell_keeps_beginning_and_end_of_an_output_that_is_far_too_long(here: Path) -> None:
    said = ran(
        shell(Workspace(directory=here)), command="echo first; yes 12345678 | head -c 3000000; echo last"
    )
    assert len(said) < 401_000
    assert "first" in said
    assert said.endswith("last\n")
    assert "bytes left out" in said


@pytest.mark.parametrize("has_git", [True, False], ids=["in a repository", "without git"])
def test_search_leaves_out_what_is_ignored(here: Path, has_git: bool) -> None:
    (here / ".gitignore").write_text("*.log\nprivate/\n")
    (here / "a.py").write_text("import os\nneedle = 1\n")
    (here / "b.log").write_text("needle\n")
    (here / "private").mkdir()
    (here / "private" / "c.py").write_text("needle\n")
    (here / "d.bin").write_bytes(b"needle\0")
    if has_git:
        subprocess.run(["git", "init", "-q"], cwd=here, check=True)
    tool = search(Workspace(directory=here))
    assert ran(tool, pattern="needl[e]") == "[1 line]\na.py:2: needle = 1"
    assert ran(tool, glob="*.py") == "[1 file]\na.py"
    assert ran(tool, pattern="nowhere") == "No line."


def test_search_says_that_there_is_more(here: Path) -> None:
    (here / "many.txt").write_text("x\n" * 500)
    said = ran(search(Workspace(directory=here)), pattern="x", limit=10)
    assert said.startswith("[10 lines]")
    assert "more than 10" in said


def test_todo_writes_the_list_down() -> None:
    items = [{"text": "a", "state": "done"}, {"text": "b", "state": "doing"}, {"text": "c"}]
    assert ran(todo(), items=items) == "1 of 3 done\n[x] a\n[>] b\n[ ] c"
    assert "list of objects" in ran(todo(), items=[{"text": "a", "state": "maybe"}])


def test_memory_outlives_the_process_once_it_was_flushed_and_keeps_no_secrets(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "memory.md"
    memory = Memory(file)
    tool = memory.tool()
    ran(tool, action="add", note="The user  likes\ntabs.")
    ran(tool, action="add", note="key sk-ant-api03-Qm9vR2x1ZVphcDdYeTJLd1AzTnQ4VnM1Y0RmSGpM")
    assert not file.exists()
    memory.flush()
    assert Memory(file).notes[0] == "The user likes tabs."
    assert "Qm9vR2x1" not in file.read_text()
    assert "1 note" in ran(tool, action="remove", note="likes TABS")
    assert "no note has these words" in ran(tool, action="remove", note="likes tabs")
    assert "The user" in instructions(tmp_path, Memory(file).notes)


def test_every_tool_is_declared_as_both_providers_want_it(here: Path) -> None:
    place = Workspace(directory=here)
    tools = [
        shell(place),
        read_file(place),
        write_file(place),
        search(place),
        todo(),
        Memory(here / "m").tool(),
    ]
    names = [tool["name"] for tool in Toolbox(tools, allow=lambda _: True).declared()]
    assert names == ["shell", "read_file", "write_file", "search", "todo", "memory"]
