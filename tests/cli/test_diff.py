"""`lowwater sessions diff` on a real SQLite file."""

from pathlib import Path

import pytest

from tests.cli.command_runner import refused, run, shown, told
from tests.cli.compacted_session import NAME, NAMED, converse


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diff") / "kept.db"
    converse(path)
    return path


def test_each_change_has_a_line_with_messages_and_sizes(store: Path) -> None:
    title, total, *lines = shown(store, "sessions", "diff", NAME, "before-compaction-2").splitlines()
    assert title == f"{NAME} · before-compaction-2 → now"
    assert " items, " in total
    said = told(store, "sessions", "diff", NAME, "before-compaction-2")
    changes = [change for change in said["changes"] if change["kind"] != "kept"]
    assert changes
    for change in changes:
        (line,) = [line for line in lines if line.split()[:2] == [change["kind"], _which(change)]]
        assert f"{change['before']['tokens']:,} →" in line


def test_sizes_add_up(store: Path) -> None:
    said = told(store, "sessions", "diff", NAME, "1", "3")
    for side in ("before", "after"):
        assert sum(change[side]["tokens"] for change in said["changes"]) == said[side]["tokens"]
    places = told(store, "sessions", "checkpoints", NAME)["checkpoints"]
    assert [said["before"]["tokens"], said["after"]["tokens"]] == [places[0]["tokens"], places[2]["tokens"]]


def test_numbers_and_names_of_checkpoints_mean_the_same(store: Path) -> None:
    assert shown(store, "sessions", "diff", NAME, "1", "2") == shown(
        store, "sessions", "diff", NAME, "before-compaction-1", NAMED
    )


def test_later_to_earlier_is_the_other_way_round(store: Path) -> None:
    there, back = (
        told(store, "sessions", "diff", NAME, "1", "2"),
        told(store, "sessions", "diff", NAME, "2", "1"),
    )
    assert (there["before"], there["after"]) == (back["after"], back["before"])


def test_full_shows_what_changed_inside(store: Path) -> None:
    plain, full = (
        shown(store, "sessions", "diff", NAME, "before-compaction-2", *flags) for flags in ([], ["--full"])
    )
    assert len(full.splitlines()) > len(plain.splitlines())
    assert "@@" in full
    assert "@@" not in plain
    said = told(store, "sessions", "diff", NAME, "before-compaction-2", "--full")
    assert any(change["parts"] for change in said["changes"])
    assert not any("parts" in change for change in told(store, "sessions", "diff", NAME, "2")["changes"])


def test_a_view_does_not_differ_from_itself(store: Path) -> None:
    assert "no difference" in shown(store, "sessions", "diff", NAME, "2", "2")


def test_what_is_not_there_is_one_sentence(store: Path) -> None:
    assert "no checkpoint “7”" in refused(store, "sessions", "diff", NAME, "7")
    assert "no session “nobody”" in refused(store, "sessions", "diff", "nobody", "1")
    assert run(store, "sessions", "diff", NAME).exit_code == 2


def _which(change: dict[str, list[dict[str, int]]]) -> str:
    first = change["numbers"][0]
    which = f"{first['first']}–{first['last']}" if first["last"] > first["first"] else f"{first['first']}"
    return f"{which}," if len(change["numbers"]) > 1 else which
