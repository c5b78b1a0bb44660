"""`lowwater sessions delete` and `prune`: gone for good, and only what was meant."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lowwater.core.entries import Opened
from lowwater.core.stored import About, Append
from lowwater.errors import BadInput
from lowwater.stores.addresses import open_store
from lowwater.testing.store_contract.samples import said
from tests.cli.session_store import address, error_of, names, sessions, told

COMMAND = Path(sys.executable).with_name("lowwater")
HOUR = 3_600.0
DAY = 24 * HOUR
AGES = {"new": 0.5 * HOUR, "day": 30 * HOUR, "month": 31 * DAY, "imported": 40 * DAY}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with sessions that were changed last so long ago."""
    path = tmp_path / "sessions.db"
    opened = open_store(address(path))
    now = time.time()
    for name, age in AGES.items():
        entries = (
            Opened(at=now - 50 * DAY, model="m", vocabulary="o200k"),
            said(f"unmistakable-{name}", now - age),
        )
        about = About(source="import" if name == "imported" else "cli")
        opened.append(name, 0, Append(entries=entries, about=about))
    opened.close()
    return path


def content(store: Path) -> bytes:
    return b"".join(file.read_bytes() for file in store.parent.glob(f"{store.name}*"))


def at_terminal(answer: bytes, *args: str) -> tuple[int, bytes]:
    """Run the command on a terminal of its own and type an answer; return its exit code and all it said."""
    pty = pytest.importorskip("pty", reason="needs a POSIX terminal")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([COMMAND, *args], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, answer)
    heard = b""
    while True:
        try:
            heard += (new := os.read(ours, 65_536))
        except OSError:  # Linux says so when the last one has left the terminal
            break
        if not new:
            break
    os.close(ours)
    return process.wait(), heard


def test_deleting_takes_the_words_out_of_the_file(store: Path) -> None:
    assert b"unmistakable-day" in content(store)
    done = sessions(store, "delete", "day", "new", "--yes")
    assert done.exit_code == 0, done.output
    assert "Deleted 2 sessions with 2 messages." in done.output
    assert names(store) == ["imported", "month"]
    assert b"unmistakable-day" not in content(store)
    assert b"unmistakable-month" in content(store)


def test_nothing_goes_if_one_name_is_unknown_or_only_begun(store: Path) -> None:
    assert "did you mean “month”" in error_of(sessions(store, "delete", "day", "mnth", "--yes"))
    assert "write the whole name, such as “month”" in error_of(
        sessions(store, "delete", "day", "mon", "--yes")
    )
    assert len(names(store)) == 4


def test_where_nobody_can_be_asked_nothing_goes_without_yes(store: Path) -> None:
    for command in (["delete", "day"], ["prune", "--older-than", "1d"]):
        refused = sessions(store, *command)
        assert isinstance(refused.exception, BadInput)
        assert "--yes" in error_of(refused)
    assert len(names(store)) == 4


def test_on_a_terminal_it_asks(store: Path) -> None:
    code, heard = at_terminal(b"n\n", "sessions", "delete", "day", "--store", address(store))
    assert code == 1
    assert b"Delete 1 session with 1 message for good?" in heard
    assert "day" in names(store)
    code, heard = at_terminal(b"y\n", "sessions", "delete", "day", "--store", address(store))
    assert code == 0, heard
    assert "day" not in names(store)


def test_an_export_to_a_terminal_asks_for_a_file(store: Path) -> None:
    code, heard = at_terminal(b"", "sessions", "export", "day", "--store", address(store))
    assert code == 1
    assert b"name a file with --out" in heard
    assert b"unmistakable" not in heard


@pytest.mark.parametrize(
    ("older", "goes"),
    [
        ("30d", ["imported", "month"]),
        ("1h", ["imported", "month", "day"]),
        ("5w", ["imported"]),
        ("10m", ["imported", "month", "day", "new"]),
        ("2020-01-01", []),
    ],
)
def test_prune_goes_by_the_last_change(store: Path, older: str, goes: list[str]) -> None:
    assert told(store, "prune", "--older-than", older, "--dry-run")["would_delete"] == goes
    assert len(names(store)) == 4
    assert told(store, "prune", "--older-than", older, "--yes")["deleted"] == goes
    assert set(names(store)) == set(AGES) - set(goes)


def test_prune_of_a_day_counts_from_its_beginning(store: Path) -> None:
    yesterday = time.strftime("%Y-%m-%d", time.localtime(time.time() - 35 * DAY))
    done = sessions(store, "prune", "--older-than", yesterday, "--yes")
    assert "imported" in done.output
    assert "Deleted 1 session with 1 message." in done.output


def test_prune_of_one_source_leaves_the_others(store: Path) -> None:
    assert told(store, "prune", "--older-than", "1d", "--source", "import", "--yes")["deleted"] == [
        "imported"
    ]
    assert "Nothing to delete." in sessions(store, "prune", "--older-than", "1d", "--source", "import").output


@pytest.mark.parametrize("older", ["soon", "-3d", "", "3 fortnights", "9999-01-01"])
def test_a_time_that_is_none_or_to_come_deletes_nothing(store: Path, older: str) -> None:
    failed = sessions(store, "prune", f"--older-than={older}", "--yes")
    assert isinstance(failed.exception, BadInput)
    assert len(names(store)) == 4
