"""On a narrow terminal no figure and no name is cut: what a wide page says, a narrow one says too."""

import json
import re
import sys
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from lowwater.cli.app import app
from lowwater.cli.gateway import print_bill
from lowwater.core.stored import Append
from lowwater.stores.addresses import open_store
from tests.cli.command_runner import run
from tests.cli.session_store import address, talk

AMOUNT = re.compile(r"-?\$[\d,]+\.?\d*")
NAMES = [f"a-name-that-begins-as-another-{number}" for number in (1, 2)]
MODELS = ["claude-haiku-4-5", "claude-opus-5-5"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with two sessions whose names differ at the end only."""
    path = tmp_path_factory.mktemp("narrow") / "sessions.db"
    for name, model in zip(NAMES, MODELS, strict=True):
        talk(path, name, model=model, title="A title of some length")
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("status", "--all"),
        ("sessions", "list"),
        ("status", NAMES[0]),
        ("sessions", "checkpoints", NAMES[0]),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_a_narrow_page_has_every_amount_and_name_of_a_wide_one(
    store: Path, command: tuple[str, ...], columns: int
) -> None:
    wide, narrow = run(store, *command, columns=200).stdout, run(store, *command, columns=columns).stdout
    assert set(AMOUNT.findall(wide)) <= set(AMOUNT.findall(narrow))
    for name in (*NAMES, *MODELS):
        assert (name in wide) <= (name in narrow)
    assert max(map(len, narrow.splitlines())) <= columns


@pytest.mark.parametrize("command", [("models",), ("models", "presets")], ids=" ".join)
@pytest.mark.parametrize("columns", [40, 60, 80])
def test_tables_of_models_keep_names_and_prices(command: tuple[str, ...], columns: int) -> None:
    def words(width: int) -> set[str]:
        printed = CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(app, command).stdout
        return set(re.findall(r"(?:claude|gpt|gemini)-[\w.-]+|\$[\d.,]+", printed))

    assert words(200) <= words(columns)


def test_the_beginning_of_a_name_is_enough_if_only_one_begins_so(store: Path) -> None:
    for command in (("status",), ("sessions", "checkpoints"), ("recall",), ("sessions", "diff")):
        words = {"recall": ["auth"], "diff": ["1"]}.get(command[-1], [])
        ambiguous = run(store, *command, NAMES[0][:-1], *words)
        assert ambiguous.exit_code == 1
        assert all(name in str(ambiguous.exception) for name in NAMES)
    talk(store, "other", turns=2)
    assert run(store, "status", "oth").exit_code == 0


def test_tab_completes_names_of_sessions(store: Path) -> None:
    env = {
        "_LOWWATER_COMPLETE": "complete_bash",
        "COMP_WORDS": "lowwater rewind a-n",
        "COMP_CWORD": "2",
        "LOWWATER_STORE": address(store),
    }
    done = CliRunner(env=env).invoke(app, prog_name="lowwater")
    assert set(done.stdout.split()) == set(NAMES)


def test_the_help_of_run_fits_a_screen() -> None:
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["run", "--help"]).stdout
    assert len(shown.strip().splitlines()) <= 23, "and the prompt below it"
    assert "lowwater config --help" in " ".join(shown.split())


def test_the_bill_of_a_run_can_be_json(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["run", "--json", "--store", address(tmp_path / "s.db"), "--", sys.executable, "-c", "pass"]
    )
    assert done.exit_code == 0, done.output
    bill = json.loads(done.stderr.splitlines()[-1])
    assert bill == {
        "calls": 0,
        "cost": 0,
        "net": 0,
        "compactions": 0,
        "per_100_calls": None,
        "tokens_rewritten": 0,
        "thinking_off": 0,
        "kept_warm": {"calls": 0, "cost": 0, "saved": 0},
        "recall": {"offered": 0, "used": 0, "found": 0, "named": 0},
        "sessions": [],
    }


def test_the_bill_tells_in_how_many_calls_thinking_was_disabled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk(tmp_path / "s.db", "thinking", turns=3)
    with closing(open_store(address(tmp_path / "s.db"))) as store:
        (account,) = store.accounts(["thinking"])
        record = replace(account.records[-1], thinking_off=True)
        store.append("thinking", account.session.version, Append(record=record))
        print_bill(store, since=0.0, nothing="nothing")
    assert "thinking was disabled in 1 call" in capsys.readouterr().err
