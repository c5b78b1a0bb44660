"""`lowwater rewind` on a real SQLite file: what it changes, what it only would, and how it is taken back."""

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from lowwater import Lowwater
from tests.cli.command_runner import refused, shown, told
from tests.cli.compacted_session import MODEL, NAME, NAMED, converse


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rewind") / "kept.db"
    converse(path)
    return path


@pytest.fixture
def store(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(kept, tmp_path / "own.db"))


def view(store: Path) -> list[Any]:
    library = Lowwater(model=MODEL, store=f"sqlite:///{store}")
    found = library.session(NAME, as_left=True).view()
    library.close()
    return found


def history(store: Path) -> list[Any]:
    library = Lowwater(model=MODEL, store=f"sqlite:///{store}")
    found = library.session(NAME, as_left=True).history()
    library.close()
    return found


@pytest.mark.parametrize("to", ["before-compaction-1", "1"])
def test_compactions_are_undone_and_later_messages_stay(store: Path, to: str) -> None:
    said = shown(store, "rewind", NAME, to)
    assert said.startswith(f"{NAME} was rewound to before-compaction-1\n")
    assert "restored" in said
    assert view(store) == history(store)


def test_the_printed_command_takes_it_back(store: Path) -> None:
    before = view(store)
    lines = shown(store, "rewind", NAME, NAMED, "--discard-later", columns=400).splitlines()
    assert view(store) != before
    assert lines[-2] == "This takes it back:"
    program, *undo = shlex.split(lines[-1])
    assert program == "lowwater"
    assert undo[-2:] == ["--store", f"sqlite:///{store}"]
    shown(store, *undo[:-2])
    assert view(store) == before


def test_discarding_later_messages_shows_the_view_as_it_was(store: Path) -> None:
    place = told(store, "sessions", "checkpoints", NAME)["checkpoints"][1]
    said = told(store, "rewind", NAME, NAMED, "--discard-later")
    assert said["changes"]["after"] == {"items": place["messages"], "tokens": place["tokens"]}
    # A summary and the user's messages around it are one message.
    assert place["messages"] - 2 <= len(view(store)) <= place["messages"]
    assert len(history(store)) == 64


@pytest.mark.parametrize("discard", [[], ["--discard-later"]], ids=["later-stay", "later-go"])
def test_a_dry_run_tells_what_a_rewind_then_does(store: Path, discard: list[str]) -> None:
    before = view(store)
    dry = told(store, "rewind", NAME, "1", "--dry-run", *discard)
    assert (dry["dry_run"], dry["undo"]) == (True, None)
    assert view(store) == before
    assert len(told(store, "sessions", "checkpoints", NAME)["checkpoints"]) == 3
    done = told(store, "rewind", NAME, "1", *discard)
    assert done["changes"] == dry["changes"]
    assert done["undo"].startswith(f"lowwater rewind {NAME} before-rewind-1")


def test_a_dry_run_says_that_nothing_was_changed(store: Path) -> None:
    said = shown(store, "rewind", NAME, "1", "--dry-run")
    assert said.startswith(f"{NAME} would be rewound to before-compaction-1\n")
    assert said.endswith("Nothing was changed: leave out --dry-run to do it.\n")


def test_an_unknown_checkpoint_is_one_sentence_with_those_there_are(store: Path) -> None:
    said = refused(store, "rewind", NAME, "before-lunch")
    assert said == (
        "there is no checkpoint “before-lunch”; the newest are: "
        f"before-compaction-1, {NAMED}, before-compaction-2"
    )
    assert refused(store, "rewind", NAME, "0") == said.replace("before-lunch", "0", 1)


def test_without_a_checkpoint_the_last_compaction_in_force_is_undone_and_then_the_one_before(
    store: Path,
) -> None:
    first = shown(store, "rewind", columns=400)
    assert first.startswith(f"{NAME} was rewound to before-compaction-2\n")
    redo = shlex.split(first.splitlines()[-1])[1:-2]
    assert shown(store, "rewind", NAME).startswith(f"{NAME} was rewound to before-compaction-1\n")
    assert view(store) == history(store)
    assert "no compaction of “refactor-auth” is in force" in refused(store, "rewind")
    shown(store, *redo)
    assert shown(store, "rewind").startswith(f"{NAME} was rewound to before-compaction-2\n")
