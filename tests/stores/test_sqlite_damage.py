import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from lowwater.core.stored import Append
from lowwater.errors import DamagedStore, StaleLedger
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add, said, texts
from lowwater.testing.store_contract.samples import compaction, turn

DAMAGES = {
    "entry cut short": "UPDATE entries SET body = substr(body, 1, 20) WHERE version = 2",
    "entry of another": "UPDATE entries SET body = randomblob(60) WHERE version = 2",
    "entry no longer bytes": "UPDATE entries SET body = 5 WHERE version = 2",
    "message changed": "UPDATE contents SET body = CAST(body || 'x' AS BLOB) WHERE id = 2",
    "message no longer Unicode": "UPDATE contents SET body = CAST(x'ff' AS TEXT) WHERE id = 2",
    "message gone": "DELETE FROM contents WHERE id = 2",
}


def damaged(path: Path, damage: str) -> SqliteStore:
    store = SqliteStore(path)
    first = add(store, "hurt", 0, said("one"))
    new = Append(entries=(said("two"),), record=turn(), events=(compaction(),), carried=b"c")
    store.append("hurt", first, new)
    add(store, "well", 0, said("one"), said("three"))
    store.close()
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(damage).rowcount == 1
    connection.close()
    return SqliteStore(path)


def is_reported(use: Callable[[], object], whole: int) -> None:
    with pytest.raises(
        DamagedStore, match=rf"session 'hurt' is damaged at .*: read it up to version {whole}"
    ) as hurt:
        use()
    assert (hurt.value.session, hurt.value.last_good_version) == ("hurt", whole)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_row_is_named_and_hurts_nothing_else(damage, tmp_path):
    store = damaged(tmp_path / "store.db", damage)
    is_reported(lambda: store.read("hurt"), whole=1)
    is_reported(lambda: store.entries("hurt", 0, 2, version=2), whole=1)
    assert texts(store.entries("hurt", 0, 1, version=2)) == ["one"]
    assert texts(store.read("hurt", until=1).entries) == ["one"]
    assert texts(store.read("well").entries) == ["one", "three"]
    assert {one.name for one in store.sessions()} == {"hurt", "well"}
    assert len(store.accounts()) == 2
    assert store.search("one")
    assert store.outline("hurt").entries == 2
    assert store.delete("hurt")
    assert texts(store.read("well").entries) == ["one", "three"]
    store.close()


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name.startswith("message")])
def test_a_damaged_message_is_named_when_it_is_asked_for_by_number(damage, tmp_path):
    store = damaged(tmp_path / "store.db", DAMAGES[damage])
    is_reported(lambda: store.messages("hurt", 1, 3, version=2), whole=1)
    assert [one.message.text for one in store.messages("hurt", 1, 2, version=2)] == ["one"]
    assert [one.message.text for one in store.messages("well", 1, 3, version=3)] == ["one", "three"]
    store.close()


def test_a_message_that_lost_its_number_is_named(tmp_path):
    gone = "DELETE FROM messages WHERE number = 2 AND session = (SELECT id FROM sessions WHERE name = 'hurt')"
    store = damaged(tmp_path / "store.db", gone)
    is_reported(lambda: store.messages("hurt", 1, 3, version=2), whole=1)
    store.close()


@pytest.mark.parametrize("table", ["turns", "compaction_events"])
def test_a_damaged_account_is_named_and_leaves_the_ledger_whole(table, tmp_path):
    store = damaged(tmp_path / "store.db", f"UPDATE {table} SET body = substr(body, 1, 20)")
    is_reported(store.accounts, whole=1)
    assert len(store.accounts(["well"])) == 1
    assert texts(store.read("hurt").entries) == ["one", "two"]
    store.close()


def test_damage_to_what_a_session_carries_is_logged_and_left_aside(tmp_path, caplog):
    store = damaged(tmp_path / "store.db", "UPDATE carried SET body = CAST(body || 'x' AS BLOB)")
    found = store.read("hurt")
    assert (texts(found.entries), found.carried) == (["one", "two"], b"")
    assert store.outline("hurt").carried == b""
    assert "'hurt': its state besides the entries is damaged" in caplog.text
    assert store.append("hurt", 2, Append(carried=b"new")) > 2
    assert store.outline("hurt").carried == b"new"
    store.close()


def test_a_damaged_page_gives_one_sentence(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    add(store, "s", 0, said("x" * 50_000))
    store.close()
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(DamagedStore, match="restore a backup"):
        SqliteStore(path).read("s")


@pytest.mark.parametrize(
    "error",
    [DamagedStore("broken", "s", 4), StaleLedger("s", expected=3, found=5)],
    ids=["damaged", "stale"],
)
def test_errors_keep_what_they_carry_between_processes(error):
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), vars(back)) == (str(error), vars(error))
