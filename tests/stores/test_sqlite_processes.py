import random
import sqlite3
from pathlib import Path

import pytest

from lowwater.core.entries import Checkpointed
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add
from tests.stores.killed_writers import shared_by_processes, spin, start, survives_kills


def is_sound(path: Path) -> None:
    """SQLite itself finds nothing wrong with the tables or the index."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    connection.close()


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_writer_killed_twenty_times_loses_nothing_it_had_committed(sync, tmp_path):
    survives_kills(f"sqlite:///{tmp_path}/store.db?sync={sync}", 20)
    is_sound(tmp_path / "store.db")


@pytest.mark.full
@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_writer_killed_five_hundred_times_loses_nothing_it_had_committed(sync, tmp_path):
    survives_kills(f"sqlite:///{tmp_path}/store.db?sync={sync}", 500)
    is_sound(tmp_path / "store.db")


def test_a_writer_killed_while_it_makes_the_store_leaves_one_that_opens(tmp_path):
    dice = random.Random(7)
    for life in range(12):
        path = tmp_path / str(life) / "store.db"
        process = start(f"sqlite:///{path}", "w", 10_000, "s")
        while not path.exists():
            pass
        spin(dice.random() * 0.01)
        process.kill()
        process.communicate()
        store = SqliteStore(path)
        version = store.read("s").version
        assert add(store, "s", version, Checkpointed(at=1.0, name="after")) > version
        store.close()


def test_sixteen_processes_on_eight_sessions_lose_nothing(tmp_path):
    shared_by_processes(f"sqlite:///{tmp_path}/store.db")
    is_sound(tmp_path / "store.db")
