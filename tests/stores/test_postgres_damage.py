import psycopg
import pytest

from lowwater.core.stored import Append
from lowwater.errors import DamagedStore, UnusableStore
from lowwater.stores.postgres.store import PostgresStore
from lowwater.testing.store_contract import add, said, texts
from lowwater.testing.store_contract.samples import skip, turn

IN_ENTRIES = {
    "entry cut short": "UPDATE entries SET body = substr(body, 1, 20) WHERE version = 2",
    "entry of another": "UPDATE entries SET body = sha512('another') WHERE version = 2",
    "message changed": "UPDATE contents SET body = body || 'x' WHERE id = 2",
    "message gone": "DELETE FROM contents WHERE id = 2",
}
IN_ACCOUNTS = {
    "record changed": "UPDATE turns SET body = body || 'x'",
    "event changed": "UPDATE compaction_events SET body = body || 'x'",
}


def stored(address: str, damage: str) -> PostgresStore:
    store = PostgresStore(address)
    first = add(store, "hurt", 0, said("one"))
    new = Append(entries=(said("two"),), record=turn(), events=(skip(),), carried=b"c")
    store.append("hurt", first, new)
    add(store, "well", 0, said("one"), said("three"))
    with psycopg.connect(address) as connection:
        assert connection.execute(damage.encode()).rowcount == 1
    return store


@pytest.mark.parametrize("damage", IN_ENTRIES.values(), ids=IN_ENTRIES)
def test_a_damaged_row_is_named_and_hurts_nothing_else(damage, postgres_address):
    store = stored(postgres_address, damage)
    with pytest.raises(
        DamagedStore, match=r"session 'hurt' is damaged at .*: read it up to version 1"
    ) as hurt:
        store.read("hurt")
    assert (hurt.value.session, hurt.value.last_good_version) == ("hurt", 1)
    assert texts(store.read("hurt", until=hurt.value.last_good_version).entries) == ["one"]
    assert texts(store.entries("hurt", 0, 1, version=2)) == ["one"]
    assert store.outline("hurt").messages == 2
    assert texts(store.read("well").entries) == ["one", "three"]
    assert {one.name for one in store.sessions()} == {"hurt", "well"}
    assert len(store.accounts()) == 2
    assert store.delete("hurt")
    assert texts(store.read("well").entries) == ["one", "three"]
    store.close()


@pytest.mark.parametrize("damage", list(IN_ENTRIES.values())[2:], ids=list(IN_ENTRIES)[2:])
def test_a_damaged_message_is_named_and_hurts_no_other(damage, postgres_address):
    store = stored(postgres_address, damage)
    with pytest.raises(DamagedStore, match=r"message 2 \(it is gone or changed\)") as hurt:
        store.messages("hurt", 1, 3, version=2)
    assert (hurt.value.session, hurt.value.last_good_version) == ("hurt", 1)
    assert [one.message.text for one in store.messages("hurt", 1, 2, version=2)] == ["one"]
    store.close()


@pytest.mark.parametrize("damage", IN_ACCOUNTS.values(), ids=IN_ACCOUNTS)
def test_a_damaged_account_is_named_and_hurts_no_other(damage, postgres_address):
    store = stored(postgres_address, damage)
    with pytest.raises(DamagedStore, match="session 'hurt' is damaged at") as hurt:
        store.accounts()
    assert hurt.value.session == "hurt"
    assert [account.session.name for account in store.accounts(["well"])] == ["well"]
    assert texts(store.read("hurt").entries) == ["one", "two"]
    store.close()


def test_damage_to_what_a_session_carries_is_logged_and_left_aside(postgres_address, caplog):
    store = stored(postgres_address, "UPDATE sessions SET carried = carried || 'x' WHERE name = 'hurt'")
    found = store.read("hurt")
    assert (texts(found.entries), found.carried) == (["one", "two"], b"")
    assert store.outline("hurt").carried == b""
    assert "its state besides the entries is damaged" in caplog.text
    store.close()


def test_tables_that_were_dropped_give_one_sentence(postgres_address):
    store = stored(postgres_address, "DELETE FROM turns")
    with psycopg.connect(postgres_address) as connection:
        connection.execute(f"DROP SCHEMA {postgres_address.rpartition('%3D')[2]} CASCADE".encode())
    with pytest.raises(UnusableStore, match="its tables are gone"):
        store.read("well")
    store.close()
