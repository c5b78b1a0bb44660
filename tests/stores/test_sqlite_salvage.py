"""Damaged files: what is whole comes out, what is not becomes a tombstone, and the damaged file stays as it is."""

import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from lowwater import Lowwater
from lowwater.core.entries import Appended, Opened
from lowwater.core.messages import Message
from lowwater.core.stored import About, Append, Fingerprint
from lowwater.errors import BadInput, DamagedStore, UnusableStore
from lowwater.stores.sqlite.salvage import TOMBSTONE, SalvagedSession, examine, salvage
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add, said, texts
from lowwater.testing.store_contract.samples import compaction, summarized, turn
from tests.cli.session_store import sessions, told

SESSIONS, MESSAGES = 4, 60


def build(path: Path) -> dict[str, list[Message]]:
    """Make a store with several sessions, some messages of them larger than a page, and return their messages."""
    store = SqliteStore(path)
    chance = random.Random(7)
    kept: dict[str, list[Message]] = {}
    for number in range(SESSIONS):
        name = f"session-{number}"
        opened = Opened(at=1.0, model="m", vocabulary="o200k_base")
        version = store.append(name, 0, Append(entries=(opened,), about=About(title=f"Title {number}")))
        for index in range(1, MESSAGES + 1):
            text = f"{name} message {index} " + "word " * chance.choice([3, 40, 900, 4_000])
            entries = (said(text, at=float(index)),)
            version = store.append(name, version, Append(entries=entries, record=turn(), carried=b"c" * 300))
            if index % 20 == 0:
                new = Append(entries=(summarized(index),), events=(compaction(),))
                version = store.append(name, version, new)
        kept[name] = [each.message for each in store.messages(name, 1, MESSAGES + 1, version=version)]
        store.record_fingerprint(Fingerprint(tenant="t", session=name, keys=(name.encode(),), hint=""))
    store.close()
    return kept


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Message]]]:
    """A store that is whole, and what is in it."""
    path = tmp_path_factory.mktemp("healthy") / "store.db"
    return path, build(path)


def salvaged(path: Path, to: Path) -> tuple[SqliteStore, dict[str, SalvagedSession]]:
    before = path.read_bytes()
    store = SqliteStore(to, sync="normal")
    reports = salvage(path, store)
    assert path.read_bytes() == before, "the damaged file was changed"
    return store, {report.name: report for report in reports}


def test_a_whole_file_comes_out_as_it_was(
    healthy: tuple[Path, dict[str, list[Message]]], tmp_path: Path
) -> None:
    path, kept = healthy
    assert examine(path).is_whole
    store, reports = salvaged(path, tmp_path / "new.db")
    old = SqliteStore(path)
    assert all(report.is_whole for report in reports.values())
    for name in kept:
        assert store.read(name).entries == old.read(name).entries
        assert store.outline(name).carried == old.outline(name).carried
        assert store.read(name).about == old.read(name).about
        (new_account,), (old_account,) = store.accounts([name]), old.accounts([name])
        assert (new_account.records, new_account.events) == (old_account.records, old_account.events)
        assert [each.session for each in store.lookup_fingerprints("t", [name.encode()])] == [name]
    assert store.secret() == old.secret()
    store.close()
    old.close()


def read_all(path: Path, names: Iterable[str]) -> None:
    store = SqliteStore(path)
    for name in names:
        store.read(name)


def check_what_came_out(
    store: SqliteStore, reports: dict[str, SalvagedSession], kept: dict[str, list[Message]]
) -> int:
    """Check that each message is what it was or a tombstone in its place, and return how many are whole."""
    whole = 0
    for name, report in reports.items():
        came = [
            message
            for entry in store.read(name).entries
            if isinstance(entry, Appended)
            for message in entry.messages
        ]
        was = kept.get(name)
        if was is None:  # not even its name was left
            continue
        lost = [message.text == TOMBSTONE for message in came]
        assert all(
            is_lost or message == before for is_lost, message, before in zip(lost, came, was, strict=False)
        ), "a message is neither what it was nor a tombstone"
        assert sum(lost) == report.lost_messages
        assert len(came) + report.missing_messages >= min(len(was), report.messages)
        whole += len(came) - sum(lost)
        assert store.outline(name).messages == len(came)
        store.search("message", session=name)
        store.accounts([name])
    return whole


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 30))]
)
def test_damaged_bytes_anywhere_cost_only_what_they_hit(
    seed: int, healthy: tuple[Path, dict[str, list[Message]]], tmp_path: Path
) -> None:
    """Some bytes are changed at random places, in some of the files many."""
    path, kept = healthy
    chance = random.Random(seed)
    everything = path.read_bytes()
    for attempt in range(5):
        damaged = bytearray(everything)
        hits = chance.choice([1, 1, 3, 30])
        for _ in range(hits):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        bad = tmp_path / f"bad-{attempt}.db"
        bad.write_bytes(damaged)
        store, reports = salvaged(bad, tmp_path / f"new-{attempt}.db")
        whole = check_what_came_out(store, reports, kept)
        store.close()
        # A flipped byte in a page that holds many small rows can cost all of them, and those alone.
        assert whole >= SESSIONS * MESSAGES - 45 * hits


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_gives_what_is_left_of_it(
    share: float, healthy: tuple[Path, dict[str, list[Message]]], tmp_path: Path
) -> None:
    path, kept = healthy
    everything = path.read_bytes()
    bad = tmp_path / "bad.db"
    bad.write_bytes(everything[: int(len(everything) * share)])
    if 0 < share < 0.99:  # SQLite does not notice a page that nobody asks for
        with pytest.raises(DamagedStore, match="lowwater sessions salvage"):
            read_all(bad, kept)
    if share:
        assert not examine(bad).is_whole
    store, reports = salvaged(bad, tmp_path / "new.db")
    whole = check_what_came_out(store, reports, kept)
    assert whole >= SESSIONS * MESSAGES * (share - 0.25)
    store.close()


def test_what_is_only_in_the_log_is_salvaged_too(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    version = add(store, "s", 0, Opened(at=0.0, model="m", vocabulary="o200k_base"))
    for number in range(30):
        version = add(store, "s", version, said(f"in the log {number}"))
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{tmp_path}/copy.db{suffix}")
    store.close()
    new, reports = salvaged(tmp_path / "copy.db", tmp_path / "new.db")
    assert reports["s"].is_whole
    assert texts(new.read("s").entries) == [f"in the log {number}" for number in range(30)]
    new.close()


def test_a_session_with_a_damaged_message_goes_on_after_the_salvage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    lowwater = Lowwater(model="claude-opus-5-5", store=f"sqlite:///{path}")
    session = lowwater.session("s")
    use = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "UNMISTAKABLE"}
    session.append({"role": "user", "content": "What is there?"})
    session.append([{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}])
    session.append([{"role": "assistant", "content": "Files."}, {"role": "user", "content": "And now?"}])
    lowwater.close()
    path.write_bytes(path.read_bytes().replace(b"UNMISTAKABLE", b"UNMISTAKABLY"))
    with pytest.raises(DamagedStore, match="lowwater sessions salvage"):
        Lowwater(model="claude-opus-5-5", store=f"sqlite:///{path}").session("s").history()
    done = sessions(path, "verify")
    assert done.exit_code == 1
    assert "1 × damaged message" in done.output
    new = tmp_path / "new.db"
    (report,) = told(path, "salvage", str(new))["sessions"]
    assert (report["messages"], report["lost_messages"]) == (5, 1)
    again = Lowwater(model="claude-opus-5-5", store=f"sqlite:///{new}").session("s")
    assert TOMBSTONE in str(again.history()[2])
    assert [message["role"] for message in again.prepare().as_anthropic()["messages"]] == [
        message["role"] for message in again.history()
    ], "the call has lost its result"
    assert again.recall("lw:2")
    assert sessions(new, "verify").exit_code == 0
    assert "there is a file" in str(sessions(path, "salvage", str(new)).exception)


LEAVES = """
import sys, os
from pathlib import Path
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add, said
store = SqliteStore(Path(sys.argv[1]))
version = 0
for number in range(60):
    version = add(store, "s", version, said(f"{number}"))
if sys.argv[2] == "killed":
    os._exit(9)
if sys.argv[2] == "closed":
    store.close()
"""


@pytest.mark.parametrize("way", ["closed", "left to Python", "killed"])
def test_a_file_without_its_log_is_refused_unless_everything_is_in_it(way: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    subprocess.run([sys.executable, "-c", LEAVES, str(path), way], check=False)
    alone = tmp_path / "alone" / "store.db"
    alone.parent.mkdir()
    shutil.copy(path, alone)
    if way == "killed":
        for _ in range(2):  # the first must not leave an empty log behind that the second believes
            with pytest.raises(UnusableStore, match=r"in store\.db-wal, which is missing: put it back"):
                SqliteStore(alone)
        shutil.copy(f"{path}-wal", f"{alone}-wal")
    store = SqliteStore(alone)
    assert len(store.read("s").entries) == 60
    store.close()
    store = SqliteStore(alone)
    assert len(store.read("s").entries) == 60
    store.close()


def test_a_store_is_marked_again_when_one_of_several_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    one, other = SqliteStore(path), SqliteStore(path)
    version = add(one, "s", 0, said("first"))
    one.close()
    version = add(other, "s", version, said("second"))
    shutil.copy(path, tmp_path / "alone.db")
    with pytest.raises(UnusableStore, match="which is missing"):
        SqliteStore(tmp_path / "alone.db")
    other.close()
    shutil.copy(path, tmp_path / "whole.db")
    store = SqliteStore(tmp_path / "whole.db")
    assert texts(store.read("s").entries) == ["first", "second"]
    store.close()


@pytest.mark.parametrize("gone", ["", "-wal"], ids=["the file", "its log"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_appending_to_a_file_that_is_gone_fails(gone: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    version = add(store, "s", 0, said("one"))
    victim = Path(f"{path}{gone}")
    content = victim.read_bytes()
    victim.rename(tmp_path / "aside")
    if how == "replaced":
        victim.write_bytes(content)
    with pytest.raises(UnusableStore, match="was deleted or replaced while it was open"):
        add(store, "s", version, said("two"))


def test_a_backup_is_whole_while_others_write_and_is_one_file(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "backup.db"
    store = SqliteStore(path)
    version = 0
    for number in range(40):
        version = add(store, "s", version, said(f"{number} " + "word " * 500))
    said_of = told(path, "backup", str(copy))
    assert said_of["bytes"] == copy.stat().st_size
    assert copy.stat().st_mode & 0o077 == 0
    add(store, "s", version, said("later"))
    store.close()
    # The way back: the copy alone, in the place of the store.
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, path)
    again = SqliteStore(path)
    assert len(again.read("s").entries) == 40
    assert add(again, "s", version, said("goes on")) > version
    again.close()
    store = SqliteStore(path)
    with pytest.raises(BadInput, match="already"):
        store.backup(copy)
    store.close()


def test_sqlite_itself_finds_nothing_wrong_with_a_backup(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "backup.db"
    store = SqliteStore(path)
    add(store, "s", 0, said("one"))
    store.backup(copy)
    store.close()
    connection = sqlite3.connect(copy)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
