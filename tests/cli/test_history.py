"""`lowwater sessions history` on real SQLite files, as people and programs see it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lowwater import Lowwater
from lowwater.core.stored import About, Append
from lowwater.stores.addresses import open_store
from tests.cli.account_store import book
from tests.cli.command_runner import refused, run, shown, told
from tests.cli.session_store import address, answer, talk


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "kept.db"
    talk(path, "talk")
    talk(path, "short", turns=2)
    library = Lowwater(model="claude-haiku-4-5", store=address(path))
    session = library.session("talk")
    for number in range(3):
        session.append({"role": "user", "content": f"And {number}?"})
        session.prepare()
        session.record(answer(f"So {number}.", read=9_000))
    library.close()
    return path


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_each_compaction_has_its_reason_sizes_score_cost_and_payback(store: Path, columns: int) -> None:
    page = shown(store, "sessions", "history", "talk", columns=columns)
    (said,) = told(store, "sessions", "history", "talk")["compactions"]
    flat = " ".join(page.split())
    for words in (
        "talk · 1 compaction in 15 turns", "1 · ", "before turn 13", f"{said['before']:,} → {said['after']:,}",
        "(by-hand)", "score", "summaries $0.00", "rewriting $", "payback at once; predicted ", " later calls",
    ):  # fmt: skip
        assert words in flat


def test_programs_are_told_the_same(store: Path) -> None:
    found = told(store, "sessions", "history", "talk")
    assert (found["session"], found["turns"]) == ("talk", 15)
    (event,) = found["compactions"]
    assert event["because"]["code"] == "by-hand"
    assert f"{event['before']:,}" in event["because"]["said"]
    assert event["turn"] == 13
    assert 0 <= event["after"] < event["before"]
    assert event["payback"]["numbers"] == [1]
    assert event["payback"]["counted"] == 2
    assert 0 <= event["score"] <= 1


def test_without_a_name_it_is_the_session_used_last_and_a_name_like_it_is_suggested(store: Path) -> None:
    assert told(store, "sessions", "history")["session"] == "talk"
    assert "did you mean “talk”" in refused(store, "sessions", "history", "tlak")
    page = shown(store, "sessions", "history", "short")
    assert page.startswith("short · 0 compactions in 2 turns")
    assert "lowwater status" in page


def test_it_follows_a_session_that_was_split_at_its_compactions(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    talk(path, "long")
    opened = open_store(address(path))
    try:
        opened.copy("long", "long-2", About(title="long #2", parent="long"))
        ended = opened.outline("long")
        opened.append(
            "long",
            ended.version,
            Append(about=replace(ended.about, ended_at=1.0, ended_because="compression")),
        )
    finally:
        opened.close()
    library = Lowwater(model="claude-haiku-4-5", store=address(path))
    session = library.session("long-2")
    session.append({"role": "user", "content": "And now?"})
    session.prepare()
    session.record(answer("So.", read=9_000))
    library.close()
    for name in ("long", "long-2"):
        found = told(path, "sessions", "history", name)
        assert found["turns"] == 13
        assert [event["turn"] for event in found["compactions"]] == [13]


def test_many_booked_sessions_can_all_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    book(path, sessions=8, turns=10, every=2)
    for number in range(8):
        assert shown(path, "sessions", "history", f"s{number}", columns=40 + 10 * number)


def test_an_empty_store_is_told_in_a_sentence(tmp_path: Path) -> None:
    assert "no session is kept yet" in refused(tmp_path / "none.db", "sessions", "history")
    assert run(tmp_path / "none.db", "sessions", "history", "--help").exit_code == 0
