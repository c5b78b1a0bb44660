"""One rule ranks in every store: the same messages in the same order, and stores of before are indexed again."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lowwater.core.entries import Appended, Opened
from lowwater.core.stored import Append
from lowwater.protocols import Store
from lowwater.stores.memory import MemoryStore
from lowwater.stores.postgres.store import PostgresStore
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import said
from tests.generated import generate_session

QUESTIONS = (
    "what was the error message of the failing test",
    "where is the retry policy for failed uploads",
    "which files did you change last",
    "config",
    "test_helper.py",
    "how does the session find the branch that it came from",
    "東京 nothing-of-this-kind",
)


def fill(store: Store, *, messages: list[Any], name: str = "s") -> None:
    version = store.append(name, 0, Append(entries=(Opened(at=0.0, model="m", vocabulary="o200k"),)))
    for start in range(0, len(messages), 100):
        new = tuple(messages[start : start + 100])
        sizes = tuple(len(message.text) // 4 + 1 for message in new)
        version = store.append(name, version, Append(entries=(Appended(at=1.0, messages=new, tokens=sizes),)))


def generated(kind: Any, seed: int) -> list[Any]:
    from lowwater.core.formats.openai_chat import decode_message

    raws = generate_session(kind, seed=seed, turns=60).as_openai_chat()
    return [decode_message(raw, at) for at, raw in enumerate(raws)]


@pytest.fixture
def stores(tmp_path: Path, postgres_address: str) -> Iterator[list[Store]]:
    with ExitStack() as stack:
        opened: list[Store] = [MemoryStore(), SqliteStore(tmp_path / "s.db"), PostgresStore(postgres_address)]
        for store in opened:
            stack.enter_context(closing(store))
        yield opened


def test_every_store_finds_the_same_in_the_same_order(stores: list[Store]) -> None:
    for name, kind in (("a", "coding"), ("b", "support"), ("c", "research")):
        messages = generated(kind, seed=3)
        for store in stores:
            fill(store, messages=messages, name=name)
    words = {word for message in generated("coding", seed=3)[::9] for word in message.text.split()[:12]}
    asked = [*QUESTIONS, *(" ".join(pair) for pair in pairwise(sorted(words)[::7]))]
    for question in asked:
        for session in ("a", "b", None):
            found = [
                [
                    (hit.session, hit.number, hit.tokens, round(hit.score, 9))
                    for hit in store.search(question, session=session, limit=12)
                ]
                for store in stores
            ]
            assert found[0] == found[1] == found[2], question


def test_a_file_of_before_is_indexed_again_at_the_first_search(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(SqliteStore(path)) as store:
        fill(store, messages=[*said("it calls getQuuxVoltage").messages, *generated("coding", seed=1)])
        store.search("warm")
    with closing(sqlite3.connect(path)) as connection:
        # As the schema before had it: no parts of names, and no table of occurrences.
        connection.execute("DROP TABLE occurrences")
        connection.execute("UPDATE search SET text = 'it calls getQuuxVoltage' WHERE rowid = 1")
        connection.execute("PRAGMA user_version = 6")
        connection.commit()
    with closing(SqliteStore(path)) as store:
        assert store.search("quux voltage", limit=1)[0].number == 1
        (listed,) = store.sessions()
        assert len(store.messages("s", 1, listed.messages + 1, version=listed.version)) == listed.messages
        store.append("s", listed.version, Append(entries=(said("and parseHttpHeader"),)))
        assert store.search("http header", limit=1)[0].number == listed.messages + 1


def test_an_append_to_a_file_of_before_does_not_index_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(SqliteStore(path)) as store:
        fill(store, messages=[said(f"message {number} of many").messages[0] for number in range(3_000)])
        store.search("warm")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE occurrences")
        connection.execute("PRAGMA user_version = 6")
        connection.commit()
    with closing(SqliteStore(path)) as store:
        (listed,) = store.sessions()
        store.append(
            "s", listed.version, Append(entries=tuple(said(f"new {number}") for number in range(20)))
        )
        with closing(sqlite3.connect(path)) as connection:
            (indexed,) = connection.execute("SELECT count(*) FROM search_docsize").fetchone()
        assert 0 < indexed < 1_500
        assert len(store.search("message", limit=5_000)) >= 3_000


def test_a_database_of_before_is_indexed_again_at_the_first_search(postgres_address: str) -> None:
    with closing(PostgresStore(postgres_address)) as store:
        fill(store, messages=[*said("it calls getQuuxVoltage").messages, *generated("coding", seed=1)])
    with psycopg.connect(postgres_address) as connection:
        connection.execute("DROP TABLE reindexed")
        connection.execute(
            "UPDATE search SET terms = 'it:1 calls:2 getquuxvoltage:3'::tsvector WHERE content = (SELECT min(id) FROM contents)"
        )
        connection.execute("UPDATE migrated SET number = 4")
    with closing(PostgresStore(postgres_address)) as store:
        assert store.search("quux voltage", limit=1)[0].number == 1
    with closing(PostgresStore(postgres_address)) as store:
        assert store.search("quux voltage", limit=1)[0].number == 1
