import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lowwater.cli.app import COMMANDS, app, main
from lowwater.cli.command import run
from lowwater.errors import BadInput

SCRIPT = Path(sys.executable).with_name("lowwater")


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LOWWATER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


def lowwater(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *args], capture_output=True, text=True, timeout=60, check=False)


def test_help_teaches_what_lowwater_is_its_commands_and_where_settings_come_from() -> None:
    shown = lowwater("--help")
    assert shown.returncode == 0
    assert shown.stderr == ""
    for words in ("never loses a message", "Examples", "Exit codes", "lowwater.yaml", "LOWWATER_", "flags"):
        assert words in shown.stdout
    lines = shown.stdout.splitlines()
    listed = [name for name, entry in COMMANDS.items() if not entry.is_hidden]
    assert [name for name in listed if not any(line.startswith(f"│ {name} ") for line in lines)] == []
    assert len(listed) == 15, "fourteen, and the dashboard"
    assert len(COMMANDS) == 16, "and one that programs call: the status line"
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_help_has_examples_that_name_real_commands() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    examples = [line.split() for line in shown.splitlines() if line.startswith(" lowwater ")]
    assert len(examples) >= 3
    assert {words[1] for words in examples} <= COMMANDS.keys()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["serve", "--idle", "never"], "'never' is none of 'off', 'compact'", id="choice"),
        pytest.param(["audit", "--by", "moon"], "'moon' is none of 'model'", id="choice-of-many"),
        pytest.param(["serve", "--port", "http"], "it has to be a whole number", id="integer"),
        pytest.param(["serve", "--idle-limit", "much"], "it has to be a number", id="number"),
        pytest.param(["serve", "--port", "99999"], "it can be at most 65535", id="too-large"),
        pytest.param(["recall", "a", "b", "--limit", "0"], "it has to be at least 1", id="too-small"),
        pytest.param(["sessions", "list", "--limit", "x"], "it has to be a whole number", id="subcommand"),
    ],
)
def test_a_bad_value_is_told_in_plain_words(arguments: list[str], said: str) -> None:
    shown = lowwater(*arguments)
    assert shown.returncode == 2
    assert said in shown.stderr
    assert "Input should" not in shown.stderr
    assert "Value error" not in shown.stderr


def test_no_arguments_show_the_help() -> None:
    shown = lowwater()
    assert shown.stdout.strip() == lowwater("--help").stdout.strip()
    assert shown.returncode == 2


def paths(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*before, name)
        yield from paths(command, (*before, name)) if hasattr(command, "commands") else ()


LONGER = {("config",): 180, ("serve",): 95, ("chat",): 55, ("replay",): 55, ("models", "presets"): 45}
"""Commands whose help takes more than a screen."""


@pytest.mark.parametrize("command", list(paths(typer.main.get_command(app))), ids=" ".join)
def test_the_help_of_every_command_has_an_example_and_fits_a_screen(command: tuple[str, ...]) -> None:
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= LONGER.get(command, 40)
    assert "<bool>" not in shown.stdout
    assert [line for line in lines if f"lowwater {' '.join(command)}" in line]


def test_options_of_the_gateway_and_of_recall_do_not_mix() -> None:
    assert lowwater("serve", "--source", "cli").stderr == "lowwater: --source goes with --mcp only\n"
    assert lowwater("serve", "--mcp", "--port", "5").stderr == "lowwater: --port does not go with --mcp\n"


def test_version_is_the_installed_one() -> None:
    assert lowwater("--version").stdout == f"lowwater {version('lowwater')}\n"


def test_an_error_is_one_sentence_on_standard_error() -> None:
    Path("lowwater.yaml").write_text("compression:\n  treshold: 0.5\n")
    failed = lowwater("config")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr == (
        "lowwater: lowwater.yaml:2: there is no setting compression.treshold; did you mean threshold?\n"
    )


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("confg", "did you mean `lowwater config`?"),
        ("histroy", "did you mean `lowwater sessions history`?"),
        ("presets", "did you mean `lowwater models presets`?"),
        ("explain", "did you mean `lowwater inspect --explain`?"),
        ("efficiency", "did you mean `lowwater status --all`?"),
        ("mcp", "did you mean `lowwater serve --mcp`?"),
        ("sessions exprot", "did you mean `lowwater sessions export`?"),
        ("models preset", "did you mean `lowwater models presets`?"),
        ("zzz", "`lowwater --help` lists them"),
        ("config --treshold 1", "Possible options"),
    ],
)
def test_wrong_usage_names_what_was_meant(
    typed: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["lowwater", *typed.split()])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert hint in " ".join(said.replace("│", "").split())
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([SCRIPT, "config"], id="table"),
        pytest.param([SCRIPT, "config", "--schema"], id="JSON"),
        pytest.param([SCRIPT, "--help"], id="help"),
        pytest.param(
            [
                sys.executable,
                "-c",
                "import sys, lowwater.cli.command as f; f.run(lambda: sys.stdout.write('x'))",
            ],
            id="buffered to the end",
        ),
    ],
)
def test_a_reader_that_has_gone_is_no_reason_to_complain(command: list[str | Path]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        left = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, timeout=60, check=False)
    assert left.stderr == b""


def test_output_that_the_terminal_cannot_show_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    shown = lowwater("config", "summary_model", "--summary-model", "modèle")
    assert shown.returncode == 0
    assert "mod\\xe8le" in shown.stdout


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(BadInput("message 3 has\nno role"), 1, "lowwater: message 3 has no role\n", id="ours"),
        pytest.param(KeyboardInterrupt(), 130, "", id="Ctrl-C"),
        pytest.param(SystemExit(2), 2, "", id="usage"),
        pytest.param(SystemExit(), 0, "", id="done"),
        pytest.param(SystemExit("why"), 1, "", id="exit with words"),
        pytest.param(
            KeyError("x"),
            70,
            "lowwater: a defect in Lowwater (KeyError: 'x'); "
            "please report it with the traceback that LOWWATER_DEBUG=1 shows\n",
            id="defect",
        ),
    ],
)
def test_whatever_goes_wrong_becomes_an_exit_code_and_at_most_one_line(
    error: BaseException, code: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(raising(error)) == code
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", said)


def test_a_defect_shows_its_traceback_when_asked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOWWATER_DEBUG", "1")
    run(raising(KeyError("x")))
    assert "Traceback (most recent call last)" in capfd.readouterr().err


def _loaded_by(arguments: list[str]) -> set[str]:
    code = (
        "import sys\n"
        f"sys.argv = ['lowwater', *{arguments!r}]\n"
        "from lowwater.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_a_command_loads_itself_and_no_other_and_the_version_loads_none() -> None:
    loaded = _loaded_by(["config", "--help"])
    assert "lowwater.cli.config" in loaded
    assert not {"lowwater.cli.audit", "lowwater.cli.chat", "lowwater.cli.gateway"} & loaded
    assert not {"typer", "lowwater.cli.app"} & _loaded_by(["--version"])
