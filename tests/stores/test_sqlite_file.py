import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lowwater.errors import BadSetting, DamagedStore, NewerSchema, UnusableStore
from lowwater.stores.addresses import open_store
from lowwater.stores.memory import MemoryStore
from lowwater.stores.sqlite.connections import MIGRATIONS, refuse_old
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add, said, texts

APPEND_UNTIL_REFUSED = """
import os, resource, sys
from pathlib import Path
from lowwater.errors import UnusableStore
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add, said
path, limit, user = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if user:
    os.setuid(user)
try:
    store = SqliteStore(Path(path))
    version = add(store, "s", 0, said("first"))
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for number in range(1000):
        version = add(store, "s", version, said(f"{number} " * 2000))
        print(number)
except UnusableStore as error:
    print(error)
"""


def refusal(path: Path, *, limit: int = 0, user: int = 0) -> list[str]:
    """What a process says that appends to the store until it is refused."""
    run = [sys.executable, "-c", APPEND_UNTIL_REFUSED, str(path), str(limit), str(user)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(statement, values).rowcount != 0
    connection.close()


def test_file_log_and_folder_are_for_their_user_only(tmp_path):
    path = tmp_path / "new" / "store.db"
    store = SqliteStore(path)
    add(store, "s", 0, said("secret"))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    store.close()


@pytest.mark.parametrize("prefix", ["sqlite:///", "sqlite:///~/"], ids=["from here", "from home"])
def test_an_address_leads_to_its_file(prefix, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    store = open_store(f"{prefix}sub/store.db")
    add(store, "s", 0, said("x"))
    store.close()
    absolute = open_store(f"sqlite:///{tmp_path}/sub/store.db")
    assert texts(absolute.read("s").entries) == ["x"]
    absolute.close()


def test_memory_is_an_address():
    assert isinstance(open_store("memory:"), MemoryStore)


@pytest.mark.parametrize("address", ["", "sqlite:", "sqlite:///", "mysql://x", "/var/store.db"])
def test_an_address_of_no_store_is_refused(address):
    with pytest.raises(BadSetting, match="write memory:, sqlite:///PATH or postgresql://"):
        open_store(address)


def test_what_could_be_a_password_is_not_shown():
    with pytest.raises(BadSetting, match="no store is at 'postgress://host/db'") as refused:
        open_store("postgress://me:hunter2@host/db")
    assert "hunter2" not in str(refused.value)


def test_a_newer_schema_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "store.db"
    open_before = SqliteStore(path)
    version = add(open_before, "s", 0, said("x"))
    newer = len(MIGRATIONS) + 1
    change(path, f"PRAGMA user_version = {newer}")
    with pytest.raises(NewerSchema, match=f"has schema {newer} .* use a newer Lowwater"):
        SqliteStore(path)
    with pytest.raises(NewerSchema):
        add(open_before, "s", version, said("y"))
    open_before.close()
    change(path, f"PRAGMA user_version = {len(MIGRATIONS)}")
    store = SqliteStore(path)
    assert texts(store.read("s").entries) == ["x"]
    store.close()


SCHEMA_2 = (
    "ALTER TABLE counters DROP COLUMN in_log",
    "ALTER TABLE counters ADD COLUMN version INTEGER NOT NULL DEFAULT 0",
    "UPDATE counters SET version = (SELECT max(version) FROM appends)",
    "ALTER TABLE appends RENAME TO new_appends",
    """CREATE TABLE appends (
        session INTEGER NOT NULL, version INTEGER NOT NULL, entries INTEGER NOT NULL,
        PRIMARY KEY (session, version)) WITHOUT ROWID""",
    "INSERT INTO appends SELECT session, version, entries FROM new_appends WHERE session > 0",
    "DROP TABLE new_appends",
    "PRAGMA user_version = 2",
)


def test_a_file_whose_versions_were_counted_apart_is_brought_forward(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    first = add(store, "s", 0, said("first"))
    second = add(store, "s", first, said("second"))
    deleted = add(store, "gone", 0, said("gone"))
    store.delete("gone")
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in SCHEMA_2:
        connection.execute(statement)
    connection.close()
    store = SqliteStore(path)
    assert texts(store.read("s", since=first).entries) == ["second"]
    assert texts(store.read("s", until=first).entries) == ["first"]
    assert add(store, "s", second, said("third")) > deleted, "what the deleted session had is not given again"
    store.close()


def test_an_old_sqlite_is_refused_in_one_sentence():
    with pytest.raises(UnusableStore, match=r"needs SQLite 3\.35\.0 and this Python has 3\.31\.1"):
        refuse_old((3, 31, 1), "store.db")


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    change(path, "CREATE TABLE theirs (x)")
    with pytest.raises(UnusableStore, match="another program's database"):
        SqliteStore(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    connection.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"these are my notes, and no database at all\n" * 100)
    before = path.read_bytes()
    with pytest.raises(DamagedStore, match="is damaged"):
        SqliteStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["a folder", "below a file"])
def test_a_path_that_cannot_be_a_file_gives_one_sentence(place, tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path if place == "a folder" else tmp_path / "file" / "store.db"
    with pytest.raises(UnusableStore, match=r"cannot be opened .* choose another place"):
        SqliteStore(path)


def test_a_read_only_folder_gives_one_sentence(tmp_path):
    is_root = os.geteuid() == 0
    if is_root:
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(0o755)
    tmp_path.chmod(0o555)
    said = refusal(tmp_path / "store.db", user=65534 if is_root else 0)
    tmp_path.chmod(0o755)
    assert len(said) == 1
    assert "cannot be opened (Permission denied): make the file and its folder writable" in said[0]


def test_a_file_that_may_grow_no_more_gives_one_sentence_and_keeps_what_was_committed(tmp_path):
    path = tmp_path / "store.db"
    *numbers, refused = refusal(path, limit=600_000)
    assert "cannot be used" in refused
    assert numbers
    store = SqliteStore(path)
    assert len(store.read("s").entries) == 1 + len(numbers)
    store.close()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="makes a small disk, as root only")
def test_a_full_disk_gives_one_sentence_and_keeps_what_was_committed(tmp_path):
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("may not mount")
    try:
        *numbers, refused = refusal(tmp_path / "store.db")
        assert "is full): free some space on the disk, or choose another place" in refused
        assert numbers
        copy = tmp_path.with_name("copy.db")
        for suffix in ("", "-wal"):
            if (file := tmp_path / f"store.db{suffix}").exists():
                copy.with_name(f"copy.db{suffix}").write_bytes(file.read_bytes())
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    store = SqliteStore(copy)
    assert len(store.read("s").entries) == 1 + len(numbers)
    store.close()


FORKED = """
import os, sys
from pathlib import Path
from lowwater.stores.sqlite.connections import SqliteConnections
connections = SqliteConnections(Path(sys.argv[1]))
with connections.reading() as parents:
    pass
child = os.fork()
with connections.reading() as connection:
    is_own = (connection is parents) == bool(child)
connections.close()
if not child:
    os._exit(0 if is_own else 1)
assert is_own
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_uses_connections_of_its_own(tmp_path):
    subprocess.run([sys.executable, "-c", FORKED, str(tmp_path / "store.db")], check=True)
