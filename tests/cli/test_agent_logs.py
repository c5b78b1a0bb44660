"""The log of an agent is a conversation too: it can be looked into, explained and compacted without importing it first."""

import json
from pathlib import Path

from typer.testing import CliRunner

from lowwater.cli.app import app
from tests.logs.claude_lines import ClaudeLines


def log(tmp_path: Path) -> Path:
    lines = ClaudeLines()
    lines.user("Where is the login tested?")
    for number in range(30):
        lines.tool(f"m{number}", f"t{number}")
        lines.result(f"t{number}", f"line {number} of the file\n" * 200)
    lines.text("last", "In tests/test_login.py.")
    path = tmp_path / "session.jsonl"
    lines.write(path)
    return path


def run(*args: str) -> str:
    done = CliRunner().invoke(app, list(args), env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_it_is_looked_into_and_explained_on_its_own_model(tmp_path: Path) -> None:
    path = str(log(tmp_path))
    assert "claude-opus-5-5" in run("inspect", path)
    assert json.loads(run("inspect", "--explain", path, "--json"))["status"]["messages"] == 62


def test_it_is_compacted_into_a_list_of_messages(tmp_path: Path) -> None:
    out = tmp_path / "shorter.jsonl"
    run("compress", str(log(tmp_path)), "--out", str(out))
    messages = [json.loads(line) for line in out.read_text().splitlines()]
    assert messages[0]["content"] == [{"type": "text", "text": "Where is the login tested?"}]
    assert out.stat().st_size < log(tmp_path).stat().st_size / 2


def test_what_is_neither_is_refused_as_before(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n')
    done = CliRunner().invoke(app, ["inspect", str(path)])
    assert done.exit_code != 0
    assert "role" in str(done.exception)
