import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from lowwater.errors import UnusableStore
from lowwater.stores.postgres import connections
from lowwater.stores.postgres.connections import MOST_CONNECTIONS
from lowwater.stores.postgres.store import PostgresStore
from lowwater.testing.postgres import postgres_server, restartable_server
from lowwater.testing.store_contract import add, append_patiently, said, texts


def end_backends(address: str) -> None:
    """End every connection that stores have, as a server does that is restarted."""
    stores = b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lowwater'"
    with psycopg.connect(address) as connection:
        connection.execute(stores)


def test_connections_that_were_ended_are_replaced(postgres_address):
    store = PostgresStore(postgres_address)
    version = add(store, "s", 0, said("one"))
    for number in range(3):
        end_backends(postgres_address)
        version = add(store, "s", version, said(f"after {number}"))
    assert texts(store.read("s").entries) == ["one", "after 0", "after 1", "after 2"]
    store.close()


def test_a_connection_that_breaks_in_the_middle_gives_one_sentence_and_the_next_call_works(postgres_address):
    def ending(text: str) -> str:
        if text == "two":
            end_backends(postgres_address)
        return text

    store = PostgresStore(postgres_address, conceal=ending)
    version = add(store, "s", 0, said("one"))
    with pytest.raises(UnusableStore, match="check that the server runs") as broken:
        add(store, "s", version, said("two"))
    assert "\n" not in str(broken.value)
    assert texts(store.read("s").entries) == ["one"]
    assert add(store, "s", version, said("three")) > version
    store.close()


def test_a_server_that_is_gone_gives_one_sentence():
    with postgres_server() as address:
        store = PostgresStore(address)
        version = add(store, "s", 0, said("one"))
    with pytest.raises(UnusableStore, match="check that the server runs and can be reached"):
        add(store, "s", version, said("two"))
    store.close()


def test_more_threads_than_connections_wait_for_each_other(postgres_address):
    store = PostgresStore(postgres_address)
    count = MOST_CONNECTIONS + 6
    with ThreadPoolExecutor(count) as threads:
        list(
            threads.map(
                lambda number: append_patiently(store, f"s{number % 9}", said(str(number))), range(count)
            )
        )
    kept = [text for one in store.sessions() for text in texts(store.read(one.name).entries)]
    assert sorted(kept, key=int) == [str(number) for number in range(count)]
    store.close()


def test_a_writer_that_waits_for_another_goes_on_when_that_is_done(postgres_address):
    store = PostgresStore(postgres_address)
    version = add(store, "s", 0, said("one"))
    with psycopg.connect(postgres_address) as other:
        other.execute("SELECT * FROM sessions FOR UPDATE")
        waiting = Thread(target=lambda: add(store, "s", version, said("two")))
        waiting.start()
        while not other.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
            pass
        assert texts(store.read("s").entries) == ["one"]
    waiting.join()
    assert texts(store.read("s").entries) == ["one", "two"]
    store.close()


def test_a_session_that_another_holds_for_too_long_gives_one_sentence(postgres_address, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.1)
    store = PostgresStore(postgres_address)
    version = add(store, "s", 0, said("one"))
    with psycopg.connect(postgres_address) as other:
        other.execute("SELECT FROM sessions FOR UPDATE")
        with pytest.raises(UnusableStore, match="another process holds the session for too long"):
            add(store, "s", version, said("two"))
    assert add(store, "s", version, said("three")) > version
    store.close()


FORKED = """
import os, sys
from lowwater.stores.postgres.store import PostgresStore
from lowwater.testing.store_contract import add, append_patiently, said, texts
store = PostgresStore(sys.argv[1])
version = add(store, "s", 0, said("parent"))
child = os.fork()
if not child:
    add(store, "s", version, said("child"))
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
add(store, "s", store.outline("s").version, said("parent again"))
assert texts(store.read("s").entries) == ["parent", "child", "parent again"]
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_uses_connections_of_its_own(postgres_address):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, postgres_address],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_ends_with_the_process_that_started_it():
    script = (
        "import os, psycopg\n"
        "from lowwater.testing.postgres import postgres_server\n"
        "with postgres_server() as address:\n"
        "    with psycopg.connect(address) as connection:\n"
        "        print(address, connection.execute('SHOW data_directory').fetchone()[0], flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    died = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert died.returncode == -9
    address, data = died.stdout.split()
    is_there = True
    while is_there:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            is_there = False
    subprocess.run(["rm", "-rf", Path(data).parent], check=True)


@pytest.mark.full
@pytest.mark.parametrize("when", ["before", "in the middle"])
def test_a_server_that_is_stopped_does_not_hold_the_caller(when: str) -> None:
    with restartable_server() as server, ExitStack() as pause:
        is_held: list[bool] = []

        def stopping(text: str) -> str:
            if text == "two" and when == "in the middle" and not is_held:
                pause.enter_context(server.paused())
                is_held.append(True)
            return text

        store = PostgresStore(f"{server.address}&connect_timeout=2", conceal=stopping)
        version = add(store, "s", 0, said("one"))
        if when == "before":
            pause.enter_context(server.paused())
        begun = time.monotonic()
        with pytest.raises(
            UnusableStore, match=r"did not answer for \d+ s.*check that the server runs"
        ) as silent:
            add(store, "s", version, said("two"))
        assert time.monotonic() - begun < 30, "it held the caller long after two time-outs of two seconds"
        assert "\n" not in str(silent.value)
        pause.close()
        assert texts(store.read("s").entries) == ["one"]
        assert add(store, "s", version, said("two")) > version
        assert texts(store.read("s").entries) == ["one", "two"]
        store.close()


@pytest.mark.full
def test_waiting_for_a_slow_writer_is_no_silence(postgres_address: str) -> None:
    """A lock that another holds for longer than a time-out is waited for: the server answers when it is asked."""
    store = PostgresStore(f"{postgres_address}&connect_timeout=2")
    version = add(store, "s", 0, said("one"))
    with psycopg.connect(postgres_address) as other:
        other.execute("SELECT FROM sessions FOR UPDATE")
        waiting = ThreadPoolExecutor(1).submit(add, store, "s", version, said("two"))
        with pytest.raises(TimeoutError):
            waiting.result(timeout=5)
    assert waiting.result(timeout=60) > version
    store.close()
