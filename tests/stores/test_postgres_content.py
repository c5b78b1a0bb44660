from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import psycopg
import pytest
from hypothesis import given, settings

from lowwater.core.ledger import Ledger
from lowwater.core.stored import About, Append
from lowwater.errors import BadInput
from lowwater.stores.postgres.store import PostgresQueries, PostgresStore
from lowwater.stores.serialization import pack_entry
from lowwater.stores.shared import conceal_nothing
from lowwater.testing.postgres import apart
from lowwater.testing.store_contract import add, append_patiently, said, texts
from lowwater.testing.store_contract.samples import compaction, skip, turn
from lowwater.testing.strategies import ledger_entries

TABLES = ("sessions", "appends", "entries", "messages", "contents", "search", "turns", "compaction_events")


def rows(address: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(address) as connection:
        return connection.execute(query.encode()).fetchall()


def sizes(address: str) -> dict[str, object]:
    return {table: rows(address, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


def orphans(address: str) -> int:
    found = rows(
        address,
        "SELECT (SELECT count(*) FROM contents WHERE id NOT IN (SELECT content FROM messages)) + "
        "(SELECT count(*) FROM search WHERE content NOT IN (SELECT id FROM contents))",
    )
    return int(str(found[0][0]))


def waiting(address: str, work: Callable[[], object]) -> Thread:
    """Start work in a thread and return it once it waits for somebody's lock."""
    thread = Thread(target=work)
    thread.start()
    waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'lowwater'"
    while not rows(address, waits):
        assert thread.is_alive()
    return thread


numbers = iter(range(1_000_000))


@given(entries=ledger_entries())
@settings(max_examples=10)
def test_a_stored_ledger_is_the_ledger(entries, postgres_database):
    store = PostgresStore(apart(postgres_database, f"given{next(numbers)}"))
    version = 0
    for entry in entries:
        version = add(store, "s", version, entry)
    stored = store.read("s")
    ledger, back = Ledger().extend(entries), Ledger().extend(stored.entries)
    assert (back.view, back.history(), stored.version) == (ledger.view, ledger.history(), version)
    outline = store.outline("s")
    assert (outline.entries, outline.messages) == (len(entries), len(ledger.messages))
    store.close()


def test_content_is_kept_and_indexed_once_however_many_sessions_hold_it(postgres_address):
    store = PostgresStore(postgres_address)
    for session in ("a", "b", "c"):
        add(store, session, 0, said("the same words"), said("the same words"), said(f"only {session}"))
    store.copy("a", "d", About())
    store.close()
    found = sizes(postgres_address)
    assert (found["contents"], found["search"], found["messages"]) == (4, 4, 12)


def test_a_deleted_session_is_in_no_table(postgres_address):
    store = PostgresStore(postgres_address)
    new = Append(
        entries=(said("one " * 3_000), said("two")),
        record=turn(),
        events=(compaction(), skip()),
        carried=b"c",
        about=About(title="t"),
    )
    store.append("s", 0, new)
    assert all(sizes(postgres_address).values())
    store.delete("s")
    assert sizes(postgres_address) == dict.fromkeys(TABLES, 0)
    store.close()


def test_content_that_an_append_relies_on_outlives_a_deletion_at_the_same_time(postgres_address):
    deletions: list[Thread] = []

    def while_appending(text: str) -> str:
        if text == "new":
            deletions.append(waiting(postgres_address, lambda: store.delete("a")))
        return text

    store = PostgresStore(postgres_address, conceal=while_appending)
    add(store, "a", 0, said("shared"), said("only a"))
    add(store, "b", 0, said("shared"), said("new"))
    deletions[0].join()
    assert store.read("a").version == 0
    assert texts(store.read("b").entries) == ["shared", "new"]
    assert sizes(postgres_address)["contents"] == 2
    assert [hit.session for hit in store.search("shared")] == ["b"]
    store.close()


def test_content_that_is_being_deleted_is_written_again(postgres_address):
    store = PostgresStore(postgres_address)
    add(store, "a", 0, said("shared"), said("only a"))
    with psycopg.connect(postgres_address) as other:
        assert PostgresQueries(other).delete("a")
        appending = waiting(postgres_address, lambda: add(store, "b", 0, said("shared"), said("new")))
    appending.join()
    assert texts(store.read("b").entries) == ["shared", "new"]
    assert [hit.session for hit in store.search("shared")] == ["b"]
    assert sizes(postgres_address)["contents"] == 2
    store.close()


def test_the_last_two_sessions_that_hold_content_take_it_with_them(postgres_address):
    store = PostgresStore(postgres_address)
    add(store, "a", 0, said("shared"))
    add(store, "b", 0, said("shared"))
    with psycopg.connect(postgres_address) as other:
        assert PostgresQueries(other).delete("a")
        deleting = waiting(postgres_address, lambda: store.delete("b"))
    deleting.join()
    assert sizes(postgres_address) == dict.fromkeys(TABLES, 0)
    store.close()


@pytest.mark.parametrize("is_kept", [True, False], ids=["committed", "given up"])
def test_content_that_two_append_at_the_same_time_is_kept_once(is_kept, postgres_address):
    store = PostgresStore(postgres_address)
    other = psycopg.connect(postgres_address)
    shared = said("shared")
    packed = [pack_entry(shared)]
    PostgresQueries(other).append("a", 0, Append(entries=(shared,)), packed, conceal_nothing)
    appending = waiting(postgres_address, lambda: add(store, "b", 0, said("shared"), said("more")))
    if is_kept:
        other.commit()
    other.close()
    appending.join()
    assert texts(store.read("b").entries) == ["shared", "more"]
    assert texts(store.read("a").entries) == (["shared"] if is_kept else [])
    assert sizes(postgres_address)["contents"] == 2
    store.close()


def test_an_original_that_is_being_deleted_is_no_longer_there_to_be_copied(postgres_address):
    store = PostgresStore(postgres_address)
    add(store, "a", 0, said("one"))
    refused: list[BadInput] = []

    def copying() -> None:
        try:
            store.copy("a", "b", About())
        except BadInput as error:
            refused.append(error)

    with psycopg.connect(postgres_address) as other:
        assert PostgresQueries(other).delete("a")
        thread = waiting(postgres_address, copying)
    thread.join()
    assert len(refused) == 1
    assert sizes(postgres_address) == dict.fromkeys(TABLES, 0)
    store.close()


def test_an_append_that_gets_into_a_deadlock_is_begun_again(postgres_address):
    store = PostgresStore(f"{postgres_address}%20-cdeadlock_timeout%3D300ms")
    version = add(store, "s", 0, said("one"))
    add(store, "other", 0, said("shared"))
    with psycopg.connect(postgres_address) as other:
        other.execute("SET deadlock_timeout = '1min'")
        other.execute("SELECT FROM contents FOR UPDATE")
        appending = waiting(postgres_address, lambda: add(store, "s", version, said("shared")))
        other.execute("SELECT FROM sessions FOR UPDATE")
    appending.join()
    assert texts(store.read("s").entries) == ["one", "shared"]
    store.close()


def test_sessions_begun_copied_and_deleted_at_once_lose_nothing_that_is_held(postgres_address):
    store = PostgresStore(postgres_address)
    same = [said(f"shared {number}") for number in range(6)]

    def live(name: str) -> None:
        for life in range(6):
            version = add(store, name, 0, *same[life % 3 :], *same[: life % 3])
            store.copy(name, f"{name}'", About())
            add(store, name, version, *reversed(same))
            store.delete(name)
            assert sorted(texts(store.read(f"{name}'").entries)) == sorted(texts(same))
            append_patiently(store, "all", same[life])
            store.delete(f"{name}'")

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(live, [f"s{number}" for number in range(5)]))
    assert len(texts(store.read("all").entries)) == 30
    assert orphans(postgres_address) == 0
    assert sizes(postgres_address)["contents"] == 6
    store.delete("all")
    assert sizes(postgres_address) == dict.fromkeys(TABLES, 0)
    store.close()


def test_texts_beyond_the_limits_of_an_index_are_kept_and_found(postgres_address):
    store = PostgresStore(postgres_address)
    many = " ".join(f"word{number}" for number in range(120_000))
    long_word = "x" * 1_500_000
    chinese = "数" * 5_000 + "据库连接" + "数" * 5_000
    version = add(store, "s", 0, said(many), said(long_word), said(chinese), said("zero\x00byte"))
    assert version
    for words, number in (
        ("word0", 1),
        ("word60000", 1),
        ("word119999", 1),
        (long_word, 2),
        ("数据库连接", 3),
        ("zero", 4),
        ("byte", 4),
    ):
        assert [hit.number for hit in store.search(words)] == [number], words[:20]
    assert len(texts(store.read("s").entries)) == 4
    store.close()


def test_a_word_is_found_wherever_a_long_text_is_cut(postgres_address):
    store = PostgresStore(postgres_address)
    for before in (997, 998, 999, 1000, 1001):
        add(store, f"s{before}", 0, said("a " * before + "東京都"))
    assert len(store.search("東京都", limit=9)) == 5
    store.close()


def test_names_of_any_length_are_names(postgres_address):
    store = PostgresStore(postgres_address)
    names = ["n" * 100_000, "n" * 100_001, "\\0", "\x00", "\\\x00\\0"]
    for name in names:
        add(store, name, 0, said(name[:20]))
    assert [one.name for one in store.sessions()] == names[::-1]
    assert [texts(store.read(name).entries) for name in names] == [[name[:20]] for name in names]
    store.close()


def test_half_a_character_is_refused_in_one_sentence(postgres_address):
    store = PostgresStore(postgres_address)
    for use in (
        lambda: add(store, "\ud83d", 0, said("x")),
        lambda: store.read("\ud83d"),
        lambda: store.append("s", 0, Append(about=About(title="\ud83d"))),
    ):
        with pytest.raises(BadInput, match="half a character"):
            use()
    assert store.sessions() == []
    store.close()


def test_accounts_can_be_made_in_sql(postgres_address):
    store = PostgresStore(postgres_address)
    store.append("s", 0, Append(record=turn(model="m\x00"), events=(compaction(), skip())))
    store.close()
    columns = "model, uncached, cache_read, cache_write, cache_write_long, output, cost, untouched, removed, decision"
    assert rows(postgres_address, f"SELECT {columns} FROM turns") == [
        ("m\\0", 1, 2, 3, 4, 5, 7, 11, 13, "keep")
    ]
    events = "kind, reason, mode, mechanisms, tokens_before, tokens_after, reclaimed, cost, payback"
    assert rows(postgres_address, f"SELECT {events} FROM compaction_events ORDER BY ordinal") == [
        ("compaction", "rent_paid", "summary", "elide,summarize", 1000, 400, 600, 12_345, 4.0),
        ("skip", "headroom", None, None, 1200, 1200, 0, None, None),
    ]
