"""What a session grows by: in memory, in the file, and by many calls in one message."""

import cProfile
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lowwater import Lowwater
from lowwater.core.costs.prices import Meter
from lowwater.core.entries import (
    AlteredMessage,
    Compacted,
    Edit,
    KeptRange,
    Numbers,
    Opened,
    SummarizedSpan,
    ViewItem,
)
from lowwater.core.messages import Text
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.repository import MOST_HELD
from lowwater.stores.postgres.store import PostgresStore
from lowwater.stores.serialization import DEEPEST, pack_entry
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add, said

MESSAGES = 120


def compacted(number: int) -> Compacted:
    """Return a compaction that alters one message more than the one before, and has another summary every tenth time."""
    summary = SummarizedSpan(
        text=f"summary {number // 10} " + "word " * 100,
        role="user",
        sources=(Numbers(first=1, last=5),),
        tokens=100,
    )
    altered: list[ViewItem] = [
        AlteredMessage(
            number=6 + index,
            edits=(
                Edit(
                    path=(0,),
                    by=Text(text=f"[placeholder {index}: {'digest ' * 20}]", extra=b'{"x":%d}' % index),
                ),
            ),
            tokens=30,
        )
        for index in range(number)
    ]
    kept = KeptRange(numbers=Numbers(first=6 + number, last=MESSAGES))
    return Compacted(at=float(number), mechanisms=("elide",), items=(summary, *altered, kept))


def with_compactions(store: Store, rounds: int) -> list[Compacted]:
    version = add(store, "s", 0, Opened(at=0.0, model="m", vocabulary="o200k_base"))
    version = add(store, "s", version, *[said(f"message {number}") for number in range(MESSAGES)])
    written = [compacted(number) for number in range(rounds)]
    for entry in written[:-2]:
        version = add(store, "s", version, entry)
    add(store, "s", version, *written[-2:])  # two in one append, each told by the one before
    return written


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_compactions_are_stored_as_what_they_changed_and_come_back_whole(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "store.db"
    address = request.getfixturevalue("postgres_address") if kind == "postgres" else ""
    store: Store = PostgresStore(address) if kind == "postgres" else SqliteStore(path)
    rounds = 3 * DEEPEST + 5
    written = with_compactions(store, rounds)
    read = [entry for entry in store.read("s").entries if isinstance(entry, Compacted)]
    # Equality of parts leaves `extra` out; what is stored does not.
    assert [repr(entry) for entry in read] == [repr(entry) for entry in written]
    outline = store.outline("s")
    places = [mark.position for mark in outline.landmarks if mark.kind == "compacted"]
    for place, entry in zip(places, written, strict=True):  # each by itself, whatever it is told by
        (alone,) = store.entries("s", place, place + 1, version=outline.version)
        assert repr(alone) == repr(entry)
    store.copy("s", "copy", outline.about)
    assert [e for e in store.read("copy").entries if isinstance(e, Compacted)] == written
    store.close()
    if kind == "sqlite":
        connection = sqlite3.connect(path)
        query = "SELECT sum(length(body)) FROM entries WHERE kind = 'compacted' AND session = 1"
        (size,) = connection.execute(query).fetchone()
        connection.close()
        in_full = sum(len(pack_entry(entry).body) for entry in written)
        assert size < in_full / 4, f"{size:,} bytes for {rounds} compactions"


def test_an_open_session_lets_go_of_what_its_view_does_not_show(tmp_path: Path) -> None:
    """A process that has a session open holds no more of it than one that comes to it, give or take a thousand entries."""
    store = f"sqlite:///{tmp_path}/s.db?sync=normal"
    session = Lowwater(model="claude-opus-5-5", store=store).session("s")
    for number in range(MOST_HELD + 50):
        session.append({"role": "user", "content": f"message {number}"})
    ledger = internals(session).ledger
    assert ledger.bygone is not None, "everything is still in memory"
    assert len(ledger.entries) - ledger.bygone.entries < MOST_HELD
    again = Lowwater(model="claude-opus-5-5", store=store).session("s")
    assert internals(again).ledger.view == ledger.view
    assert session.history() == again.history()
    assert len(session.history()) == MOST_HELD + 50
    session.rewind(10, discard_later=True)
    assert len(session.view()) == 9
    assert session.recall("lw:3")[0].text == "message 2"


def work_for(count: int) -> int:
    """Return how many functions are called for so many calls in one message, their results, and the request after them."""
    session = Lowwater(model="claude-opus-5-5", store="memory:").session("s")
    ids = [f"call_{number}" for number in range(count)]
    calls: list[Any] = [{"type": "tool_use", "id": id, "name": "bash", "input": {}} for id in ids]
    results: list[Any] = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in ids]
    session.append({"role": "user", "content": "Go."})
    profile = cProfile.Profile()
    with profile:
        session.append([{"role": "assistant", "content": calls}, {"role": "user", "content": results}])
        session.prepare().as_anthropic()
    return sum(entry.callcount for entry in profile.getstats())


def test_calls_in_one_message_cost_in_proportion_to_their_number() -> None:
    work_for(50)  # what is done once in a process is not counted
    assert work_for(800) < 5 * work_for(200)


def test_a_meter_keeps_what_the_messages_in_view_have_paid() -> None:
    meter = Meter()
    for number in range(1, 200):
        meter = meter.left_tail(number).advance(10)
    shown = [1, 2, 150, 199]
    kept = meter.kept_for(shown)
    assert [kept.paid(number) for number in shown] == [meter.paid(number) for number in shown]
    assert len(kept.numbers) == len(shown)
    assert kept.left_tail(205).advance(10).paid(150) == meter.left_tail(205).advance(10).paid(150)


def test_a_sqlite_file_holds_the_text_of_a_message_less_than_twice_beside_the_search_index(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    chance = random.Random(1)
    texts = [" ".join(f"w{chance.randrange(5_000)}" for _ in range(400)) for _ in range(100)]
    lowwater = Lowwater(model="claude-opus-5-5", store=store)
    session = lowwater.session("s")
    for text in texts:
        session.append({"role": "user", "content": text})
    connection = sqlite3.connect(path)
    (stored,) = connection.execute("SELECT sum(length(body)) FROM contents").fetchone()
    connection.close()
    assert stored < 1.5 * sum(map(len, texts))
    assert [message["content"] for message in session.history()] == texts
    lowwater.close()
