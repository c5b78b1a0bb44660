import pickle
import sqlite3
from pathlib import Path

import pytest

from lowwater.errors import DamagedStore, StaleLedger
from lowwater.store.sqlite.store import SqliteStore
from lowwater.testing.store_contract import said, texts
from lowwater.values.turn_record import TurnRecord

DAMAGES = {
    "entry cut short": "UPDATE entries SET body = substr(body, 1, 20) WHERE version = 2",
    "entry of another": "UPDATE entries SET body = randomblob(60) WHERE version = 2",
    "entry no longer bytes": "UPDATE entries SET body = 5 WHERE version = 2",
    "message changed": "UPDATE contents SET body = CAST(body || 'x' AS BLOB) WHERE id = 2",
    "message no longer Unicode": "UPDATE contents SET body = CAST(x'ff' AS TEXT) WHERE id = 2",
    "message gone": "DELETE FROM contents WHERE id = 2",
    "record changed": "UPDATE sessions SET newest = CAST(newest || 'x' AS BLOB) WHERE name = 'hurt'",
}


def stored(path: Path, damage: str) -> SqliteStore:
    store = SqliteStore(path)
    first = store.append("hurt", 0, [said("one")])
    store.append("hurt", first, [said("two")], TurnRecord(at=1.0, model="m"))
    store.append("well", 0, [said("one"), said("three")])
    store.close()
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(damage).rowcount == 1
    connection.close()
    return SqliteStore(path)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_row_is_named_and_hurts_nothing_else(damage, tmp_path):
    store = stored(tmp_path / "store.db", damage)
    with pytest.raises(
        DamagedStore, match=r"session 'hurt' is damaged at .*: read it up to version 1"
    ) as hurt:
        store.read("hurt")
    assert (hurt.value.session, hurt.value.whole) == ("hurt", 1)
    assert texts(store.read("hurt", until=hurt.value.whole).entries) == ["one"]
    assert texts(store.read("well").entries) == ["one", "three"]
    assert {one.name for one in store.sessions()} == {"hurt", "well"}
    assert store.delete("hurt")
    assert texts(store.read("well").entries) == ["one", "three"]
    store.close()


def test_a_damaged_page_gives_one_sentence(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.append("s", 0, [said("x" * 50_000)])
    store.close()
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(DamagedStore, match="restore a copy"):
        SqliteStore(path).read("s")


@pytest.mark.parametrize(
    "error",
    [DamagedStore("broken", "s", 4), StaleLedger("s", expected=3, found=5)],
    ids=["damaged", "stale"],
)
def test_errors_keep_what_they_carry_between_processes(error):
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), vars(back)) == (str(error), vars(error))
