"""`lowwater sessions checkpoints` on a real SQLite file."""

import shutil
from pathlib import Path

import pytest

from lowwater import Lowwater
from tests.cli.command_runner import refused, shown, told
from tests.cli.compacted_session import NAME, NAMED, converse


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoints") / "kept.db"
    converse(path)
    return path


@pytest.fixture
def store(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(kept, tmp_path / "own.db"))


@pytest.mark.parametrize("columns", [80, 120])
def test_each_has_number_name_time_size_and_messages(store: Path, columns: int) -> None:
    title, heading, *lines = shown(store, "sessions", "checkpoints", NAME, columns=columns).splitlines()
    said = told(store, "sessions", "checkpoints", NAME)
    assert title.startswith(f"{NAME} · 3 checkpoints; the view now has {said['view']['tokens']:,} tokens in ")
    assert heading.split() == ["#", "name", "when", "messages", "tokens"]
    names = ["before-compaction-1", NAMED, "before-compaction-2"]
    assert [each["name"] for each in said["checkpoints"]] == names
    for number, (line, each) in enumerate(zip(lines, said["checkpoints"], strict=True), start=1):
        words = line.split()
        assert words[:2] == [str(number), each["name"]]
        assert f"{each['messages']:,}" in words
        assert f"{each['tokens']:,}" in words
        assert "█" in words[-1]
    assert said["checkpoints"][0]["tokens"] > said["checkpoints"][1]["tokens"]


def test_the_present_position_gets_a_name_that_stays(store: Path) -> None:
    assert "release candidate" in shown(store, "sessions", "checkpoints", NAME, "--name", "release candidate")
    said = told(store, "sessions", "checkpoints", NAME)
    newest = said["checkpoints"][-1]
    assert newest["name"] == "release candidate"
    assert (newest["tokens"], newest["messages"]) == (said["view"]["tokens"], said["view"]["messages"])


def test_a_name_is_given_once(store: Path) -> None:
    assert refused(store, "sessions", "checkpoints", NAME, "--name", NAMED) == (
        f"there is a checkpoint '{NAMED}' already: choose another name"
    )
    assert len(told(store, "sessions", "checkpoints", NAME)["checkpoints"]) == 3


def test_looking_changes_nothing(store: Path, kept: Path) -> None:
    shown(store, "sessions", "checkpoints", NAME)
    assert told(store, "sessions", "checkpoints", NAME) == told(kept, "sessions", "checkpoints", NAME)


def test_an_unknown_session_is_one_sentence(store: Path) -> None:
    assert refused(store, "sessions", "checkpoints", "other").startswith("there is no session “other”")


def test_a_session_without_checkpoints_says_how_to_make_one(tmp_path: Path) -> None:

    library = Lowwater(model="gpt-6.1-sol", store=f"sqlite:///{tmp_path / 'new.db'}")
    library.session("new").append({"role": "user", "content": "hello"})
    library.close()
    assert "--name gives the present position a name" in shown(
        tmp_path / "new.db", "sessions", "checkpoints", "new"
    )
