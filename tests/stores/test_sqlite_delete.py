"""Many sessions deleted in one call."""

from pathlib import Path

from lowwater.stores.sqlite.store import SESSIONS_PER_DELETE, SqliteStore
from lowwater.testing.store_contract import add, said, texts


def deleted(store: SqliteStore, *names: str) -> int:
    """Delete sessions and return how often the index was rewritten."""
    statements: list[str] = []
    with store._connections.reading() as connection:
        connection.set_trace_callback(statements.append)
    assert store.delete(*names)
    with store._connections.reading() as connection:
        connection.set_trace_callback(None)
    return sum("'optimize'" in statement for statement in statements)


def in_files(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_the_index_is_rewritten_once_and_no_word_is_left(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    for number in range(8):
        add(store, f"s{number}", 0, said(f"xyzzysecret{number} " * 20), said("a phrase common to them"))
        assert store.search(f"xyzzysecret{number}")
    assert deleted(store, *(f"s{number}" for number in range(1, 8)), "nobody", "s1") == 1
    left = in_files(tmp_path)
    assert [number for number in range(8) if b"zzysecret%d" % number in left] == [0]
    assert [hit.session for hit in store.search("a phrase common to them xyzzysecret3")] == ["s0"]
    assert len(texts(store.read("s0").entries)) == 2
    store.close()


def test_very_many_go_in_several_transactions(tmp_path):
    store = SqliteStore(tmp_path / "store.db", sync="normal")
    names = [f"s{number}" for number in range(SESSIONS_PER_DELETE + 1)]
    for name in names:
        add(store, name, 0, said(f"grueword in {name}"))
    assert deleted(store, *names) == 2
    assert store.sessions() == []
    assert b"grueword"[2:] not in in_files(tmp_path)
    store.close()


def test_content_of_sessions_that_have_it_between_them_goes_with_the_last(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    for name in ("a", "b", "c"):
        add(store, name, 0, said("plughwords"))
    assert deleted(store, "a", "b") == 0
    assert [hit.session for hit in store.search("plughwords")] == ["c"]
    assert deleted(store, "c") == 1
    assert b"ughwords" not in in_files(tmp_path)
    store.close()
