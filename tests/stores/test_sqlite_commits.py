"""What a commit costs and what it outlives."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lowwater.errors import BadSetting
from lowwater.session.factories import file_at
from lowwater.stores.addresses import open_store
from lowwater.stores.sqlite.store import INDEX_BATCH, SqliteStore
from lowwater.testing.store_contract import add, said

FRAME = 4_096 + 24
"""Bytes that a page takes in the log."""


def pages_written(path: Path, count: int, also: Callable[[SqliteStore], object]) -> float:
    """How many pages go into the log for each of so many appends of one message, after each of which something is done."""
    store = SqliteStore(path, sync="normal")
    with store._connections.writing() as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    log = path.with_name(f"{path.name}-wal")
    version = add(store, "s", 0, said("begins"))
    before = log.stat().st_size
    for number in range(count):
        version = add(
            store, "s", version, said(f"message {number} has word{number * 7919} " + "and more " * 100)
        )
        also(store)
    written = (log.stat().st_size - before) / FRAME
    store.close()
    return written / count


def test_a_message_is_committed_in_two_thirds_of_the_pages_that_indexing_it_at_once_would_take(tmp_path):
    count = 2 * INDEX_BATCH
    usual = pages_written(tmp_path / "usual.db", count, lambda store: None)
    at_once = pages_written(tmp_path / "at_once.db", count, lambda store: store.search("word0"))
    assert usual * 3 < at_once * 2
    assert usual < 11


@pytest.mark.parametrize(("asked", "is_waited_for"), [("", 2), ("?sync=full", 2), ("?sync=normal", 1)])
def test_a_commit_is_as_sure_as_the_address_says(asked, is_waited_for, tmp_path):
    address = f"sqlite:///{tmp_path}/store.db{asked}"
    store = open_store(address)
    assert isinstance(store, SqliteStore)
    with store._connections.reading() as connection, store._connections.reading() as another:
        for each in (connection, another):
            assert each.execute("PRAGMA synchronous").fetchone() == (is_waited_for,)
    store.close()
    assert file_at(address) == tmp_path / "store.db"
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


@pytest.mark.parametrize("asked", ["store.db?sync=off", "store.db?sync=", "?sync=normal"])
def test_another_way_to_commit_is_refused_in_one_sentence(asked):
    with pytest.raises(
        BadSetting, match=r"write sqlite:///PATH, optionally followed by \?sync=full or \?sync=normal"
    ):
        open_store(f"sqlite:///{asked}")


def test_any_other_question_mark_is_part_of_the_name(tmp_path):
    open_store(f"sqlite:///{tmp_path}/what?.db").close()
    assert [file.name for file in tmp_path.iterdir()] == ["what?.db"]
