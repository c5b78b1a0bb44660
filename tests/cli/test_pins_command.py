"""`lowwater sessions pins` on a real SQLite file."""

from pathlib import Path

import pytest

from tests.cli.command_runner import refused, shown, told
from tests.cli.compacted_session import NAME, converse

RULE = "Never touch anything under vendor/."


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pins") / "kept.db"
    converse(path)
    converse(path, "another")
    return path


def test_pins_are_listed_added_removed_and_taken_to_another_session(store: Path, tmp_path: Path) -> None:
    assert "0 standing instructions in force" in shown(store, "sessions", "pins", NAME)
    page = shown(store, "sessions", "pins", NAME, "--add", RULE, "--add", "lw:1")
    assert RULE in page
    assert "by hand" in page
    pins = told(store, "sessions", "pins", NAME)["pins"]
    assert [pin["handle"] for pin in pins] == ["", "lw:1"]
    file = tmp_path / "pins.json"
    file.write_text(shown(store, "sessions", "pins", NAME, "--json"), encoding="utf-8")
    shown(store, "sessions", "pins", NAME, "--remove", "never touch")
    assert [pin["handle"] for pin in told(store, "sessions", "pins", NAME)["pins"]] == ["lw:1"]
    shown(store, "sessions", "pins", "another", "--import", str(file))
    texts = [pin["text"] for pin in told(store, "sessions", "pins", "another")["pins"]]
    assert texts == [pin["text"] for pin in pins]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--remove", "lw:9"), "nothing is pinned as 'lw:9'"),
        (("--import", "no/such/file"), "no/such/file cannot be read"),
        (("--import", __file__), "has no pins"),
    ],
    ids=["no such pin", "no such file", "another file"],
)
def test_a_mistake_is_one_sentence(store: Path, option: tuple[str, str], said: str) -> None:
    assert said in " ".join(refused(store, "sessions", "pins", NAME, *option).split())
