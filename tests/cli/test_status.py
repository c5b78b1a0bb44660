"""`lowwater status` on sessions in a real SQLite file, as people and programs see it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lowwater import Lowwater
from lowwater.session.internals import internals
from tests.cli.account_store import book
from tests.cli.command_runner import refused, run, shown, told
from tests.cli.compacted_session import MODEL, NAME, TURNS, converse


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("status") / "kept.db"
    book(path, sessions=3, turns=3)
    converse(path)
    return path


@pytest.mark.parametrize("columns", [80, 120])
def test_a_page_has_window_cache_costs_plot_efficiency_and_cadence(store: Path, columns: int) -> None:
    page = shown(store, "status", NAME, columns=columns)
    assert page.startswith(f"{NAME} · {MODEL} · threshold\nRefactor the auth module · from cli · opened ")
    for words in (
        "window    █", "╎ threshold 100,000   ┃ wall 184,000", "% of the threshold", "of 64 messages", "on, 1h; cold: the last call was",
        f"turns     {TURNS} with", "% read from cache", "for calls", "prompt at each turn", "▲", "turn 1", "efficiency",
        "passes    2,", "saved ", "summaries $", "net ", "payback ", "cadence", "compactions per 100 turns   12.5",
        "turns between them          8.0", "summary calls", "tokens reclaimed by each", "prompt + summary tokens",
        "earliest changed message", "prunes per summary", "last mode", "left as it was",
    ):  # fmt: skip
        assert words in page


def test_the_newest_session_is_shown_without_a_name(store: Path) -> None:
    assert shown(store, "status") == shown(store, "status", NAME)


def test_compactions_are_marked_below_the_turn_they_came_before(store: Path) -> None:
    said = told(store, "status", NAME)
    assert [each["turn"] for each in said["compactions"]] == [TURNS // 2, TURNS]
    lines = shown(store, "status", NAME).splitlines()
    (marks,) = [line for line in lines if "▲" in line]
    assert [at for at, character in enumerate(marks) if character == "▲"] == [7 + 4 * 8, 7 + 4 * 15]


def test_the_bar_is_filled_as_far_as_the_prompt_fills_the_window(store: Path) -> None:
    status = told(store, "status", NAME)["status"]
    (line,) = [line for line in shown(store, "status", NAME).splitlines() if line.startswith("window")]
    bar = line.removeprefix("window").strip()
    assert len(bar) == 70
    assert bar.count("█") == round(70 * status["prompt"] / status["context"])
    assert bar.index("┃") == round(70 * status["wall"] / status["context"]) - 1


def test_settings_move_the_threshold(store: Path) -> None:
    page = shown(store, "status", NAME, "--max-view-tokens", "50000")
    assert "╎ threshold 50,000   ┃ wall 184,000   context 200,000" in page
    (line,) = [line for line in page.splitlines() if line.startswith("window")]
    assert line.index("╎") < line.index("┃")


def test_a_line_for_each_session(store: Path) -> None:
    page = shown(store, "status", "--all").splitlines()
    heading, *lines = page[page.index("sessions") + 1 :][:5]
    assert heading.split() == ["session", "model", "turns", "prompt", "passes", "cost", "net", "changed"]
    assert [line.split()[0] for line in lines] == [NAME, "s2", "s1", "s0"]
    assert "Refactor the auth module" in shown(store, "status", "--all", columns=120)


def test_a_session_that_never_took_a_turn_has_a_page_too(tmp_path: Path) -> None:
    from lowwater import Lowwater

    library = Lowwater(model=MODEL, store=f"sqlite:///{tmp_path / 'new.db'}")
    library.session("new").append({"role": "user", "content": "hello"})
    library.close()
    page = shown(tmp_path / "new.db", "status")
    assert "view      1 of 1 message" in page
    assert "prompt at each turn" not in page


def test_an_unknown_name_is_one_sentence_with_a_proposal(store: Path) -> None:
    assert refused(store, "status", "refactor-auht") == (
        f"there is no session “refactor-auht”: did you mean “{NAME}”?"
    )


def test_an_empty_store_is_one_sentence(tmp_path: Path) -> None:
    for args in (["status"], ["status", "--all"], ["status", "x"]):
        said = refused(tmp_path / "none.db", *args)
        assert said.startswith("no session is kept yet: there is no file")
        assert "`lowwater run -- claude` keeps the first one" in said


def test_a_session_tells_its_costs_by_model_and_summarizer_and_since_when(store: Path) -> None:
    said = told(store, "status", NAME)
    assert [each["turns"] for each in said["models"]] == [TURNS]
    assert "extractive" in [each["by"] for each in said["summarizers"]]
    assert told(store, "status", NAME, "--since", "2026-09-21T14:18:00+00:00")["models"][0]["turns"] < TURNS
    assert refused(store, "status", NAME, "--since", "2030-01-01").startswith(
        "nothing happened in refactor-auth since"
    )


def test_a_name_and_all_together_are_refused(store: Path) -> None:
    assert "leave out the name" in refused(store, "status", NAME, "--all")


def test_a_damaged_session_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "hurt.db"
    book(path, sessions=3, turns=3)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE turns SET body = x'00' WHERE session = 2")
    connection.close()
    done = run(path, "status", "--all")
    assert done.exit_code == 0
    assert [each["name"] for each in told(path, "status", "--all")["sessions"]] == ["s2", "s0"]
    assert "warning: left out:" in done.stderr
    assert "s1" in done.stderr


def test_a_session_and_its_child_tell_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "split.db"
    library = Lowwater(model=MODEL, store=f"sqlite:///{path}")
    session = library.session("parent")
    session.append({"role": "user", "content": "hello"})
    child = internals(session).split()
    library.close()
    assert "ended just now: compression" in shown(path, "status", "parent")
    assert "continues parent" in shown(path, "status", child)


def test_the_program_fails_with_one_sentence_and_without_a_traceback(store: Path) -> None:
    program = Path(sys.executable).with_name("lowwater")
    command = [str(program), "status", "nobody", "--store", f"sqlite:///{store}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"lowwater: there is no session “nobody”: the newest are “{NAME}”, “s2”, “s1”\n"
