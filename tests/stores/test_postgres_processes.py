import random

import psycopg
import pytest

from lowwater.stores.postgres.store import PostgresStore
from lowwater.testing.postgres import apart
from lowwater.testing.store_contract import add, said
from tests.stores.killed_writers import shared_by_processes, spin, start, survives_kills

CONNECTED = b"SELECT FROM pg_stat_activity WHERE application_name = 'lowwater'"


def alone(address: str) -> None:
    """Wait until the server has noticed that nobody uses a store any more; a commit that was sent it still carries out."""
    with psycopg.connect(address, autocommit=True) as connection:
        while connection.execute(CONNECTED).fetchall():
            pass


def test_a_writer_killed_twenty_times_loses_nothing_it_had_committed(postgres_address):
    survives_kills(postgres_address, 20, lambda: alone(postgres_address))


@pytest.mark.full
def test_a_writer_killed_five_hundred_times_loses_nothing_it_had_committed(postgres_address):
    survives_kills(postgres_address, 500, lambda: alone(postgres_address))


def test_a_writer_killed_while_it_makes_the_store_leaves_one_that_opens(postgres_database):
    dice = random.Random(7)
    for life in range(6):
        address = apart(postgres_database, f"life{life}")
        process = start(address, "w", 10_000, "s")
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            while not connection.execute(CONNECTED).fetchall():
                pass
        spin(dice.random() * 0.03)
        process.kill()
        process.communicate()
        alone(postgres_database)
        store = PostgresStore(address)
        version = store.read("s").version
        assert add(store, "s", version, said("after")) > version
        store.close()


def test_sixteen_processes_on_eight_sessions_lose_nothing(postgres_address):
    shared_by_processes(postgres_address)
