import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings

from lowwater.store.indexing import spaced
from lowwater.store.sqlite.store import SqliteStore
from lowwater.testing.store_contract import said, texts
from lowwater.testing.strategies import ledger_entries
from lowwater.values.ledger import Ledger
from lowwater.values.turn_record import TurnRecord
from lowwater.values.usage import Usage


def rows(path: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def found(path: Path, words: str) -> int:
    phrase = '"' + spaced(words) + '"'
    return len(rows(path, "SELECT rowid FROM search WHERE search MATCH ?", phrase))


@given(entries=ledger_entries())
@settings(max_examples=30, deadline=None)
def test_a_stored_ledger_is_the_ledger(entries, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "store.db"
    store = SqliteStore(path)
    version = 0
    for entry in entries:
        version = store.append("s", version, [entry])
    stored = store.read("s")
    ledger, back = Ledger().extend(entries), Ledger().extend(stored.entries)
    assert (back.view, back.history(), stored.version) == (ledger.view, ledger.history(), version)
    listed = store.sessions()[0]
    assert (listed.entries, listed.messages) == (len(entries), len(ledger.messages))
    store.close()


def test_content_is_kept_and_indexed_once_however_many_sessions_hold_it(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    for session in ("a", "b", "c"):
        store.append(session, 0, [said("the same words"), said("the same words"), said(f"only {session}")])
    store.close()
    assert rows(path, "SELECT count(*) FROM contents") == [(4,)]
    assert rows(path, "SELECT count(*) FROM messages") == [(9,)]
    assert found(path, "same words") == 1


@pytest.mark.parametrize(
    "words", ["naïve", "naive", "東京", "京", "한국", "test_auth.py", "kernel panic"], ids=str
)
def test_the_index_finds_words_of_any_script(words, tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.append(
        "s",
        0,
        [said("a naïve test_auth.py saw a kernel panic in 東京都で한국어"), said("unrelated 京都 was")],
    )
    store.close()
    assert found(path, words) == (2 if words == "京" else 1)


def test_numbers_lead_to_content(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    version = store.append("s", 0, [said("one"), said("two")])
    store.append("s", version, [said("one")])
    store.close()
    assert rows(path, "SELECT number, content, tokens FROM messages") == [(1, 1, 3), (2, 2, 3), (3, 1, 3)]


def test_deleted_content_is_in_no_byte_of_the_files(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.append("other", 0, [said("ordinary words")])
    version = store.append("s", 0, [said("xyzzysecret " * 500)], TurnRecord(at=1.0, model="plughmodel"))
    store.append("s", version, [said("xyzzysecret again")])
    in_files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"xyzzysecret" in in_files
    assert b"plughmodel" in in_files
    store.delete("s")
    in_files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"zzysecret" not in in_files
    assert b"ughmodel" not in in_files
    assert found(path, "ordinary words") == 1
    assert texts(store.read("other").entries) == ["ordinary words"]
    store.close()


def test_accounts_can_be_made_in_sql(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    usage = Usage(uncached=1, cache_read=2, cache_write=3, cache_write_long=4, output=5)
    version = store.append(
        "s", 0, [], TurnRecord(at=1.5, model="m", usage=usage, cost=7, decision="rent_paid")
    )
    store.append("s", version, [], TurnRecord(at=2.5, model="m"))
    store.close()
    columns = "at, model, uncached, cache_read, cache_write, cache_write_long, output, cost, decision"
    assert rows(path, f"SELECT {columns} FROM turns ORDER BY at") == [
        (1.5, "m", 1, 2, 3, 4, 5, 7, "rent_paid"),
        (2.5, "m", None, None, None, None, None, None, ""),
    ]


def test_old_beliefs_do_not_pile_up(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    version = 0
    for turn in range(20):
        record = TurnRecord(at=float(turn), model="m", belief=bytes(10_000), meter=bytes(10_000))
        version = store.append("s", version, [], record)
    store.close()
    assert rows(path, "SELECT max(length(body)) < 300 FROM turns") == [(1,)]
