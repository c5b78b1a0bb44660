"""docs/chat.md tells of every command and tool there is, shows the loop as it is, and its picture needs nothing from elsewhere."""

import re
from pathlib import Path

from lowwater.chat.chat import Chat
from lowwater.cli.chat import COMMANDS
from lowwater.session.internals import internals
from tests.chat.chat_harness import Watched, chat_with

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "chat.md").read_text()


def tools(chat: Chat) -> set[str]:
    """The names of all tools that the model is offered."""
    chat.say("hello")
    return set(re.findall(r'"name":"(\w+)"', internals(chat.session).ledger.view.tools.decode()))


def test_every_command_is_in_the_table_with_what_it_takes() -> None:
    told = re.findall(r"^\| `/(\w+)", PAGE, re.MULTILINE)
    assert told == list(COMMANDS)
    for name, command in COMMANDS.items():
        assert f"`/{name} {command.takes.split('|')[0]}".rstrip() in PAGE


def test_every_tool_is_in_the_table(tmp_path: Path) -> None:
    section = PAGE.split("## Tools")[1].split("\n##")[0]
    told = {
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("(")[0])
    }
    assert told == tools(chat_with(tmp_path, Watched()))


def test_the_loop_is_shown_as_it_is_and_can_be_read_in_one_sitting() -> None:
    source = (ROOT / "src" / "lowwater" / "chat" / "loop.py").read_text()
    assert len(source.partition("\nclass Agent:")[2].splitlines()) <= 150
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.split("  #")[0].strip() for line in shown.splitlines()]
    real = [line.strip() for line in source.splitlines()]
    at = real.index(lines[0])
    assert real[at : at + len(lines)] == lines


def test_the_picture_is_there_and_fetches_nothing() -> None:
    picture = (ROOT / "docs" / "pictures" / "chat.svg").read_text()
    assert "lowwater&#160;chat" in picture or "lowwater chat" in picture
    assert "url(http" not in picture
    assert "@import" not in picture
