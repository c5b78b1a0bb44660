"""What a user of the library sees and finds written: phases on the console, a log file per session, its source."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lowwater import Lowwater
from lowwater.session.internals import internals
from lowwater.settings.resolve import catalogue
from lowwater.settings.schema import settings_schema

MODEL = "claude-haiku-4-5"
PROGRAM = """
import logging, sys
from lowwater import Lowwater
if "logging" in sys.argv:
    logging.basicConfig(level=logging.INFO, filename=sys.argv[-1])
session = Lowwater(model="claude-haiku-4-5", store="memory:", settings={"output": {"quiet": "quiet" in sys.argv}}).session("s")
session.append([{"role": "user", "content": "Read it."}])
for number in range(40):
    call = {"id": f"c{number}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    session.append([{"role": "assistant", "content": None, "tool_calls": [call]}])
    session.append([{"role": "tool", "tool_call_id": f"c{number}", "content": f"line of {number}\\n" * 400}])
session.compress()
"""


def on_a_terminal(*arguments: str) -> str:
    """Run the program with a terminal for its standard error, and return what is shown there."""
    pty = pytest.importorskip("pty", reason="needs a POSIX terminal")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, *arguments]
    subprocess.run(command, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return shown.decode()


def test_on_a_terminal_each_phase_of_a_compaction_is_printed() -> None:
    shown = on_a_terminal()
    assert "s: compaction 1 (by-hand): " in shown
    assert "  elide: −" in shown


@pytest.mark.parametrize("how", ["quiet", "logging"])
def test_nothing_is_printed_where_that_is_set_or_a_log_tells_it(how: str, tmp_path: Path) -> None:
    assert on_a_terminal(how, str(tmp_path / "log")) == ""


def test_a_session_has_a_log_file_on_request(tmp_path: Path) -> None:
    session = Lowwater(
        model=MODEL, store="memory:", settings={"output": {"session_logs": str(tmp_path / "logs")}}
    ).session("a/b of ours")
    session.prepare([{"role": "user", "content": "a secret word"}])
    session.record(
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "another secret"}],
            "usage": {"input_tokens": 12, "output_tokens": 3},
        }
    )
    (file,) = (tmp_path / "logs").iterdir()
    written = file.read_text()
    assert file.name == "a%2Fb of ours.log"
    assert "12 prompt tokens" in written
    assert "secret" not in written


def test_the_source_of_a_new_session_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOWWATER_SOURCE", "nightly")
    library = Lowwater(model=MODEL, store="memory:")
    assert internals(library.session("new")).about.source == "nightly"
    assert internals(library.session("told", source="cron")).about.source == "cron"
    library.session("new").append({"role": "user", "content": "a"})
    monkeypatch.setenv("LOWWATER_SOURCE", "daily")
    assert internals(library.session("new")).about.source == "nightly"


def test_the_schema_tells_a_user_interface_how_to_show_each_setting() -> None:
    schema = settings_schema()
    shown = {
        name: found
        for definition in schema["$defs"].values()
        for name, found in definition["properties"].items()
        if "x-widget" in found
    }
    assert set(shown) == {setting.name for setting in catalogue()}
    assert sorted(each["x-order"] for each in shown.values()) == list(range(len(shown)))
    assert shown["redact"]["x-widget"] == "switch"
    assert shown["policy"]["x-widget"] == "choice"
    assert shown["max_view_tokens"]["x-unit"] == "tokens"
    assert shown["threshold"]["x-variable"] == "LOWWATER_THRESHOLD"
    json.dumps(schema)
