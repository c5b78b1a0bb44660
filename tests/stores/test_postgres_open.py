import subprocess
import sys
import traceback
from threading import Thread

import psycopg
import pytest

from lowwater.errors import BadSetting, NewerSchema, UnusableStore
from lowwater.stores.addresses import open_postgres
from lowwater.stores.postgres import connections
from lowwater.stores.postgres.connections import MIGRATIONS
from lowwater.stores.postgres.store import PostgresStore
from lowwater.stores.shared import conceal_nothing
from lowwater.testing.postgres import apart
from lowwater.testing.store_contract import add, said, texts


def change(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def tables(address: str) -> list[str]:
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = any(current_schemas(false))"
        )
        return sorted(name for (name,) in rows)


def test_the_tables_are_in_a_schema_of_their_own(postgres_database):
    store = PostgresStore(postgres_database)
    version = add(store, "s", 0, said("x"))
    store.close()
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT version FROM lowwater.sessions").fetchall() == [(version,)]
    change(postgres_database, "DROP SCHEMA lowwater CASCADE")


@pytest.mark.parametrize("place", ["mine", "Mine", "with%2Dhyphen"])
def test_the_address_can_name_another_schema(place, postgres_database):
    address = apart(postgres_database, f"{place},public" if place == "mine" else f"%22{place}%22")
    store = PostgresStore(address)
    add(store, "s", 0, said("x"))
    store.close()
    with psycopg.connect(postgres_database) as connection:
        name = place.replace("%2D", "-")
        assert connection.execute(f'SELECT count(*) FROM "{name}".sessions'.encode()).fetchone() == (1,)
    change(postgres_database, f'DROP SCHEMA "{name}" CASCADE')


def test_both_schemes_lead_to_a_postgres_store(postgres_address):
    for address in (postgres_address, postgres_address.replace("postgresql://", "postgres://")):
        store = open_postgres(address, conceal=conceal_nothing)
        assert isinstance(store, PostgresStore)
        store.close()


def test_without_the_driver_it_is_said_what_to_install():
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from lowwater.stores.addresses import open_postgres\n"
        "from lowwater.errors import BadSetting\n"
        "try: open_postgres('postgresql://h/d', conceal=str)\n"
        "except BadSetting as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "pip install 'lowwater[postgres]'" in told


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://user:hush@hush@host/db",
        "postgresql://user:hu/hush@host/db",
        "postgresql://user:hu?hush@host/db",
        "postgresql://user:hu#hush@host/db",
        "postgresql://user:hu?x@hush@host/db",
        "postgresql://user:%zzhush@host/db",
        "postgresql://user:hush@host/db?nonsense=hush",
        "postgresql://user:hush@host/db?hush",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(address):
    with pytest.raises(BadSetting, match="cannot be read: write postgresql://USER:PASSWORD") as refused:
        PostgresStore(address)
    assert "hush" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("place", ["?host=/nowhere", "127.0.0.1:1/db", "unknown.invalid/db"])
def test_a_server_that_is_not_there_gives_one_sentence_without_the_password(place, caplog):
    at = "" if place.startswith("?") else "@"
    address = f"postgresql://user:hush{at}{place}" if at else f"postgresql:///db{place}&user=u&password=hush"
    with pytest.raises(UnusableStore, match=r"cannot be used \(.*\): check that the server runs") as refused:
        PostgresStore(address)
    told = "".join(traceback.format_exception(refused.value)) + caplog.text
    assert "hush" not in told
    assert "\n" not in str(refused.value)


def test_a_database_that_is_not_there_gives_one_sentence(postgres_database):
    with pytest.raises(
        UnusableStore, match=r'\(database "absent" does not exist\): check user, password and database'
    ):
        PostgresStore(postgres_database.replace("/postgres?", "/absent?"))


def test_a_user_without_rights_gives_one_sentence(postgres_database, postgres_address):
    change(postgres_database, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    with pytest.raises(UnusableStore, match=r"permission denied .*: give the user the right"):
        PostgresStore(postgres_address.replace("lowwater@", "guest@"))
    change(postgres_database, "DROP ROLE guest")


def test_a_wrong_password_gives_one_sentence_without_it(postgres_database, postgres_address, caplog):
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        (rules,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        connection.execute("CREATE ROLE member LOGIN PASSWORD 'right'")
        connection.execute("GRANT CREATE ON DATABASE postgres TO member")
        rule = "VALUES ('local all member scram-sha-256'), ('local all all trust')"
        connection.execute(f"COPY ({rule}) TO '{rules}'".encode())
        connection.execute("SELECT pg_reload_conf()")
        wrong = postgres_address.replace("lowwater@", "member:hush@")
        refused: UnusableStore | None = None
        while refused is None:
            try:
                PostgresStore(wrong).close()
            except UnusableStore as error:
                refused = error
        told = "".join(traceback.format_exception(refused)) + caplog.text
        assert 'password authentication failed for user "member"): check user, password' in told
        assert "hush" not in told
        store = PostgresStore(postgres_address.replace("lowwater@", "member:right@"))
        assert add(store, "s", 0, said("x"))
        store.close()
        connection.execute("DROP OWNED BY member CASCADE")
        connection.execute("DROP ROLE member")


def test_a_database_in_another_encoding_is_refused(postgres_database):
    change(postgres_database, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(
        UnusableStore, match="has the encoding LATIN1: create a database with the encoding UTF8"
    ):
        PostgresStore(postgres_database.replace("/postgres?", "/latin?"))
    change(postgres_database, "DROP DATABASE latin")


def test_a_newer_schema_is_refused_and_left_alone(postgres_address):
    open_before = PostgresStore(postgres_address)
    version = add(open_before, "s", 0, said("x"))
    newer = len(MIGRATIONS) + 1
    change(postgres_address, f"UPDATE migrated SET number = {newer}")
    with pytest.raises(NewerSchema, match=f"has schema {newer} .* use a newer Lowwater"):
        PostgresStore(postgres_address)
    with pytest.raises(NewerSchema):
        add(open_before, "s", version, said("y"))
    change(postgres_address, f"UPDATE migrated SET number = {len(MIGRATIONS)}")
    assert texts(open_before.read("s").entries) == ["x"]
    open_before.close()


def test_older_tables_become_newer_ones_and_keep_what_they_have(postgres_address, monkeypatch):
    older = PostgresStore(postgres_address)
    version = add(older, "s", 0, said("x"))
    with monkeypatch.context() as later:
        later.setattr(connections, "MIGRATIONS", (*MIGRATIONS, ("CREATE TABLE more (x integer)",)))
        newer = PostgresStore(postgres_address)
        version = add(newer, "s", version, said("y"))
        newer.close()
    assert "more" in tables(postgres_address)
    with pytest.raises(NewerSchema):
        add(older, "s", version, said("z"))
    change(postgres_address, f"UPDATE migrated SET number = {len(MIGRATIONS)}")
    assert texts(older.read("s").entries) == ["x", "y"]
    older.close()


def test_a_step_that_fails_leaves_the_tables_as_they_were(postgres_address, monkeypatch):
    PostgresStore(postgres_address).close()
    before = tables(postgres_address)
    with monkeypatch.context() as later:
        steps = ("CREATE TABLE more (x integer)", "CREATE TABLE messages (x integer)")
        later.setattr(connections, "MIGRATIONS", (*MIGRATIONS, steps))
        with pytest.raises(UnusableStore, match="another program's tables"):
            PostgresStore(postgres_address)
    assert tables(postgres_address) == before
    PostgresStore(postgres_address).close()


def test_another_programs_tables_are_refused_and_left_alone(postgres_address):
    place = postgres_address.rpartition("%3D")[2]
    change(postgres_address, f"CREATE SCHEMA {place}", "CREATE TABLE messages (theirs text)")
    with pytest.raises(UnusableStore, match=r"another program's tables .*messages.*: choose another schema"):
        PostgresStore(postgres_address)
    assert tables(postgres_address) == ["messages"]


def test_a_store_opened_by_many_at_once_is_made_once(postgres_address):
    stores: list[PostgresStore] = []
    threads = [Thread(target=lambda: stores.append(PostgresStore(postgres_address))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 8
    version = 0
    for store in stores:
        version = add(store, "s", version, said("x"))
        store.close()
