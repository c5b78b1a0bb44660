"""`lowwater chat` end to end as a program of its own, its lines piped into it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lowwater.cli.app import app
from lowwater.core.messages import Format
from lowwater.errors import LowwaterError
from lowwater.testing.provider import Answer, Call, CallTools, Fail, Provider, Say
from tests.chat.chat_harness import FORMATS, MODELS

SCRIPT = Path(sys.executable).with_name("lowwater")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "README.md").write_text("# The harbour\n")
    return directory


def piped(place: Path, *args: str, lines: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    kept.pop("LOWWATER_STORE", None)
    home = {"HOME": str(place.parent), "XDG_DATA_HOME": str(place.parent / "data"), "COLUMNS": "80"}
    return subprocess.run(
        [SCRIPT, "chat", *args],
        cwd=place,
        env=kept | home | environment,
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(place: Path, *args: str, **environment: str) -> str:
    """Return why the chat does not begin; `tests/cli/test_app.py` has how a refusal is printed."""
    home = {"HOME": str(place.parent), "XDG_DATA_HOME": str(place.parent / "data")}
    done = CliRunner(env=home | environment).invoke(app, ["chat", *args], input="hello\n")
    assert isinstance(done.exception, LowwaterError), done.output
    assert done.stdout == ""
    return str(done.exception)


def test_without_a_key_the_script_answers_and_every_line_is_followed_by_the_load(place: Path) -> None:
    done = piped(place, "talk", lines="read README.md\n\n/status\n/help\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A built-in script answers" in done.stdout
    assert "› read README.md" in done.stdout
    assert "▸ read_file README.md  41 characters" in done.stdout
    assert done.stdout.count("as if · claude-haiku-4-5 · cache on, 1h") == 3
    assert "Kept as talk" in done.stdout


def test_what_the_script_cost_is_kept_apart_from_the_users_own_sessions(place: Path) -> None:
    assert piped(place, "talk", lines="hello\n").returncode == 0
    again = piped(place, "talk", lines="/sessions\n")
    assert "going on with talk, 2 messages" in again.stdout
    files = sorted(file.name for file in (place.parent / "data" / "lowwater").glob("*.db"))
    assert files == ["scripted.db"]


def test_commands_are_not_run_unless_everything_is_allowed(place: Path) -> None:
    done = piped(place, lines="run touch made\n")
    assert "nobody can be asked here" in done.stdout
    assert not (place / "made").exists()
    assert piped(place, "--yes", lines="run touch made\n").returncode == 0
    assert (place / "made").exists()


def test_what_cannot_be_done_is_one_sentence_and_the_exit_code_tells(place: Path) -> None:
    done = piped(place, lines="/model nonsense\n/nothing\nhello\n")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "no model is called 'nonsense'" in done.stdout
    assert "there is no command /nothing" in done.stdout
    assert "I am a script" in done.stdout


@pytest.mark.parametrize("format", FORMATS)
def test_a_real_server_in_either_format_with_the_key_of_a_variable_that_commands_do_not_see(
    place: Path, format: Format
) -> None:
    script: list[Answer] = [
        CallTools((Call("shell", {"command": "echo key=$THEIR_KEY"}),)),
        Say("There you are."),
    ]
    with Provider(script) as provider:
        url = provider.anthropic_base_url if format == "anthropic" else provider.openai_base_url
        done = piped(
            place,
            *("--base-url", url, "--model", MODELS[format], "--api-key-env", "THEIR_KEY", "--yes"),
            lines="What is there?\n",
            THEIR_KEY="k-secret",
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert provider.refusals == ()
    assert "There you are." in done.stdout
    assert "as if" not in done.stdout
    assert "k-secret" not in str([seen.body for seen in provider.requests])


def test_a_failing_server_is_a_sentence_without_a_traceback(place: Path) -> None:
    with Provider(default=Fail(status=401, type="authentication_error", message="bad key")) as provider:
        done = piped(place, "--base-url", provider.openai_base_url, "--model", "qwen3", lines="Hello\n")
    assert done.returncode == 1
    assert "gives no access" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        pytest.param(["--base-url", "http://127.0.0.1:9/v1"], "--base-url needs --model", id="no model"),
        pytest.param(["--base-url", "ftp://x", "--model", "m"], "not a web address", id="no address"),
        pytest.param(["--model", "nonsense"], "no model is called 'nonsense'", id="unknown model"),
        pytest.param(["--api-key-env", "NOT_SET"], "NOT_SET is not set", id="no key"),
        pytest.param(["--format", "morse"], "there is no format 'morse'", id="format"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_begins(
    place: Path, args: list[str], said: str
) -> None:
    assert said in refused(place, *args)


def test_a_model_without_its_key_and_a_model_of_another_provider_say_what_is_missing(place: Path) -> None:
    keyed = {"ANTHROPIC_API_KEY": "k"}
    assert "needs a key: set OPENAI_API_KEY" in refused(place, "--model", "gpt-5.4", **keyed)
    assert "is sold by google" in refused(place, "--model", "gemini-2.5-pro", **keyed)
