"""`lowwater status --all` on a real SQLite file, as people and programs see it."""

from pathlib import Path

import pytest

from tests.cli.account_store import DAY, START, UNPRICED, book
from tests.cli.command_runner import refused, shown, told


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("efficiency") / "kept.db"
    book(path, sessions=40, turns=6, every=2)
    return path


@pytest.mark.parametrize("columns", [80, 120])
def test_a_page_has_models_bars_paybacks_summaries_and_recommendations(store: Path, columns: int) -> None:
    page = shown(store, "status", "--all", columns=columns)
    said = told(store, "status", "--all")
    total = said["total"]
    assert page.startswith(
        f"{total['sessions']} sessions, {total['turns']:,} turns, {total['passes']} compactions"
    )
    for each in said["models"]:
        (row,) = [line for line in page.splitlines() if line.startswith(each["model"]) and "█" not in line][
            :1
        ]
        assert f"{each['turns']:,}" in row.split()
    for words in (
        "in all", "paid for calls █, saved ░", "% less", "payback, in later calls", "predicted  4.5", "realised",
        f"of {said['repayment']['compactions']} purchases:", "summaries", "per 1,000", "claude-haiku-4-5", "extractive",
        "cadence", "recommendations", f"The prices of {UNPRICED} are not known",
    ):  # fmt: skip
        assert words in page


def test_recommendations_name_their_numbers(store: Path) -> None:
    for each in told(store, "status", "--all")["advice"]:
        numbers = [fact for fact in each["facts"].values() if isinstance(fact, int) and fact < 1_000]
        assert all(f"{number:,}" in each["said"] for number in numbers)
        assert each["facts"]


def test_a_single_model_has_no_line_for_all(tmp_path: Path) -> None:
    book(tmp_path / "one.db", sessions=1, turns=6, every=2)
    page = shown(tmp_path / "one.db", "status", "--all")
    assert page.startswith("1 session, ")
    assert "in all" not in page


def test_nothing_since_then_is_one_sentence(store: Path) -> None:
    assert refused(store, "status", "--all", "--since", "2030-01-01").startswith(
        "nothing happened in any session since 2030-01-01"
    )
    assert told(store, "status", "--all", "--since", "2030-01-01")["total"]["turns"] == 0


def test_since_is_said_in_the_title(store: Path) -> None:
    day = "2026-10-20"
    assert START < START + 40 * DAY
    assert f" since {day}\n" in shown(store, "status", "--all", "--since", day)


def test_what_is_no_time_and_no_session_is_one_sentence(store: Path) -> None:
    assert refused(store, "status", "--all", "--since", "soon").startswith("'soon' is no time")
    assert refused(store, "status", "s33x").startswith("there is no session “s33x”")
