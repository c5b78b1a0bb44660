import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings

from lowwater.core.ledger import Ledger
from lowwater.core.stored import About, Append
from lowwater.stores.sqlite.store import INDEX_BATCH, SqliteStore
from lowwater.testing.store_contract import add, said, texts
from lowwater.testing.store_contract.samples import compaction, turn
from lowwater.testing.strategies import ledger_entries


def rows(path: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


@given(entries=ledger_entries())
@settings(max_examples=30)
def test_a_stored_ledger_is_the_ledger(entries, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "store.db"
    store = SqliteStore(path)
    version = 0
    for entry in entries:
        version = add(store, "s", version, entry)
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
        add(store, session, 0, said("the same words"), said("the same words"), said(f"only {session}"))
    store.copy("a", "d", About())
    assert len(store.search("same", limit=100)) == 8
    store.close()
    assert rows(path, "SELECT count(*) FROM contents") == [(4,)]
    assert rows(path, "SELECT count(*) FROM search") == [(4,)]
    assert rows(path, "SELECT count(*) FROM messages") == [(12,)]


def test_the_index_is_never_far_behind_and_what_is_known_is_not_indexed_again(tmp_path):
    path = tmp_path / "store.db"
    indexed: list[str] = []

    def conceal(text: str) -> str:
        indexed.append(text)
        return text

    store = SqliteStore(path, conceal=conceal)
    version = 0
    for number in range(3 * INDEX_BATCH):
        version = add(store, "s", version, said(f"number {number}"), said("always the same"))
        known = rows(path, "SELECT count(*) FROM contents")[0][0]
        assert isinstance(known, int)
        assert len(indexed) == len(set(indexed)) > known - INDEX_BATCH
    assert len(indexed) == 3 * INDEX_BATCH
    assert len(store.search("number", limit=1000)) == 3 * INDEX_BATCH
    assert len(indexed) == 3 * INDEX_BATCH + 1
    store.close()


def test_content_in_the_place_of_deleted_content_is_indexed(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    add(store, "a", 0, said("first"))
    add(store, "b", 0, said("second"), said("third"))
    assert len(store.search("third")) == 1
    store.delete("b")
    add(store, "c", 0, said("fourth"), said("fifth"))
    assert [hit.number for hit in store.search("fourth fifth first", session="c")] == [2, 1]
    store.close()


def test_numbers_lead_to_content(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    version = add(store, "s", 0, said("one"), said("two"))
    add(store, "s", version, said("one"))
    store.close()
    assert rows(path, "SELECT number, content, tokens FROM messages") == [(1, 1, 3), (2, 2, 3), (3, 1, 3)]


@pytest.mark.parametrize("is_indexed", [True, False], ids=["indexed", "waiting to be"])
def test_deleted_content_is_in_no_byte_of_the_files(is_indexed, tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    add(store, "other", 0, said("ordinary words"))
    about = About(title="frobtitle")
    new = Append(
        entries=(said("xyzzysecret " * 500),),
        record=turn(model="plughmodel"),
        events=(compaction(),),
        carried=b"grueblob" * 500,
        about=about,
    )
    version = store.append("s", 0, new)
    add(store, "s", version, said("xyzzysecret again"))
    secrets = (b"xyzzysecret", b"plughmodel", b"grueblob", b"frobtitle", b"references_missing")
    if is_indexed:
        assert len(store.search("xyzzysecret")) == 2
    in_files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert all(secret in in_files for secret in secrets)
    store.delete("s")
    in_files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    # Not even without the first letters, which an index shares between words.
    assert [secret for secret in secrets if secret[2:] in in_files] == []
    assert len(store.search("ordinary words")) == 1
    assert texts(store.read("other").entries) == ["ordinary words"]
    store.close()


def test_what_was_indexed_bit_by_bit_is_deleted_to_the_last_byte(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    version = add(store, "other", 0, said("ordinary words"))
    secret = 0
    for number in range(12):
        secret = add(store, "s", secret, said(f"xyzzysecret number {number} " * 30))
        version = add(store, "other", version, said(f"ordinary {number} " * 30))
        assert store.search("xyzzysecret")
    store.delete("s")
    assert b"zzysecret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    store.close()


def test_what_is_carried_does_not_pile_up(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    version = 0
    for number in range(20):
        version = store.append("s", version, Append(carried=bytes([number]) * 20_000))
    assert store.outline("s").carried == bytes([19]) * 20_000
    store.close()
    assert path.stat().st_size < 300_000
