"""`lowwater chat` in a real terminal (tmux), driven through every command as a user would."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowwater.cli.chat import COMMANDS
from tests.chat.terminal import Terminal

SCRIPT = str(Path(sys.executable).with_name("lowwater"))
MISSING = "tmux is not installed: `apt-get install tmux` or `brew install tmux`, and run this again"

pytestmark = pytest.mark.full


@pytest.fixture
def home(tmp_path: Path) -> Path:
    if not Terminal.is_here():
        if os.environ.get("TESTS_NEED_TMUX"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "README.md").write_text("# The harbour\nTODO: build it\n")
    return tmp_path


def started(home: Path, *args: str) -> Terminal:
    environment = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "TERM": "tmux-256color",
        "LANG": "C.UTF-8",
    }
    return Terminal(
        ["env", "-u", "LOWWATER_STORE", SCRIPT, "chat", *args], cwd=home / "work", env=environment, rows=60
    )


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    with started(home, "harbour") as opened:
        opened.wait_for("lowwater chat · claude-haiku-4-5 · harbour", "0% of 184K")
        yield opened


def at_prompt(terminal: Terminal, *texts: str) -> str:
    """Wait until something is shown and the next line can be typed: the load stands at the bottom again."""
    return terminal.wait_for(*texts, "as if · ")


def test_every_command(terminal: Terminal, home: Path) -> None:
    done: set[str] = set()

    def command(line: str, *texts: str) -> str:
        terminal.press("C-l")
        terminal.type(line)
        done.add(line[1:].split(maxsplit=1)[0])
        return at_prompt(terminal, *texts)

    terminal.type("look around")
    at_prompt(terminal, "▸ search TODO|FIXME", "I have looked around")
    command("/help", "/efficiency", "Ctrl-D leaves")
    terminal.type("work for 25 steps")
    at_prompt(terminal, "I have worked for 25 steps")
    command("/status", "threshold and wall", "prompt at each turn")
    command("/context", "tool results", "░ free", "by tool")
    command("/compress the harbour", "◆ compacted", "Asked for by hand")
    command("/summary", "It stands for lw:")
    command("/explain", "Asked for by hand")
    command("/checkpoints here", "before-compaction-1", "here")
    command("/rewind", "Rewound to before-compaction-1", "takes it back")
    command("/rewind before-rewind-1", "Rewound to before-rewind-1")
    command("/recall harbour", "lw:")
    command("/recall lw:1", "look around")
    command("/pin Never touch the harbour.", "Never touch the harbour.")
    command("/unpin never touch", "kept by itself")
    command("/model gpt-4o-mini", "gpt-4o-mini answers · window 128K")
    command("/model nonsense", "no model is called 'nonsense'")
    command("/new", "A new session")
    terminal.type("hello")
    at_prompt(terminal, "I am a script")
    command("/sessions", "harbour", "/resume NAME goes on with another")
    command("/efficiency", "2 sessions", "in all")
    command("/resume harbour", "Going on with harbour")
    terminal.type("/quit")
    done.add("quit")
    terminal.wait_for("Kept as harbour", "left with 0")
    assert done == set(COMMANDS)
    assert "/compress the harbour" in (home / "data" / "lowwater" / "chat-history").read_text()


def test_a_question_is_answered_at_the_keyboard_and_what_is_typed_ahead_is_not_an_answer(
    terminal: Terminal, home: Path
) -> None:
    terminal.type("run touch one")
    terminal.wait_for("? run: touch one", "[y/N/a]")
    terminal.type("n")
    at_prompt(terminal, "✗ The user declined this")
    assert not (home / "work" / "one").exists()
    terminal.type("run touch two")
    terminal.wait_for("? run: touch two", "[y/N/a]")
    terminal.type("a")
    at_prompt(terminal, "▸ shell touch two")
    terminal.wait_for("[exit code 0]")
    terminal.press("C-l")
    terminal.type("write three.txt: words")
    at_prompt(terminal, "Wrote 1 line to three.txt")
    assert (home / "work" / "two").exists()
    assert (home / "work" / "three.txt").read_text() == "words\n"


def test_ctrl_c_stops_an_answer_and_ctrl_d_leaves_and_the_session_goes_on(
    terminal: Terminal, home: Path
) -> None:
    terminal.type("count to 5000")
    terminal.wait_for(" 60 ")
    terminal.press("C-c")
    at_prompt(terminal, "stopped; what came of the answer is kept")
    terminal.press("C-c")
    terminal.wait_for("Ctrl-D leaves.")
    terminal.press("C-d")
    terminal.wait_for("Kept as harbour", "left with 0")
    with started(home, "harbour") as again:
        again.wait_for("going on with harbour, 2 messages")
        again.type("/recall lw:2")
        again.wait_for("58 59 60", "[…]")
        again.press("C-d")
        again.wait_for("left with 0")


def test_slash_completes_commands_and_models(terminal: Terminal) -> None:
    terminal.keys("/eff")
    terminal.wait_for("/efficiency", "what all sessions cost and saved")
    terminal.press("Tab", "Enter")
    at_prompt(terminal, "Nothing was said yet")
    terminal.keys("/model gpt-4o-mi")
    terminal.wait_for("gpt-4o-mini")
    terminal.press("Tab", "Enter")
    at_prompt(terminal, "gpt-4o-mini answers")
