import sqlite3
from pathlib import Path

from lowwater.core.events import TurnRecord
from lowwater.core.stored import Append
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract.samples import compaction, skip, turn


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_turns_can_be_asked_about_in_sql(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    version = store.append("s", 0, Append(record=turn(at=1.5)))
    store.append("s", version, Append(record=TurnRecord(at=2.5, model="m")))
    store.close()
    columns = "at, model, uncached, cache_read, cache_write, cache_write_long, output, cost, untouched, removed, decision"
    assert rows(path, f"SELECT {columns} FROM turns ORDER BY at") == [
        (1.5, "m", 1, 2, 3, 4, 5, 7, 11, 13, "keep"),
        (2.5, "m", None, None, None, None, None, None, None, 0, ""),
    ]


def test_events_can_be_asked_about_in_sql(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.append("s", 0, Append(events=(compaction(), skip())))
    store.close()
    columns = (
        "kind, reason, mode, mechanisms, tokens_before, tokens_after, reclaimed, ratio, summary_tokens, first_changed, "
        "disturbed, cost, price, saves, payback, seconds, model, summarizer, score, rejected"
    )
    assert rows(path, f"SELECT {columns} FROM compaction_events ORDER BY at") == [
        (
            *("compaction", "rent_paid", "summary", "elide,summarize", 1000, 400, 600, 0.4, 120, 2, 300),
            *(12_345, 20_000, 5_000, 4.0, 1.5, "m", "small", 0.875, 1),
        ),
        ("skip", "headroom", None, None, 1200, 1200, 0, *(None,) * 12, 0),
    ]
    named = (
        "SELECT name, count(*) FROM compaction_events JOIN sessions ON sessions.id = session GROUP BY name"
    )
    assert rows(path, named) == [("s", 2)]


def test_no_column_of_an_event_has_contents_of_messages(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    event = compaction()
    store.append("s", 0, Append(events=(event,)))
    store.close()
    missing = event.rejected[0].first_missing[0]
    (row,) = rows(path, "SELECT * FROM compaction_events")
    assert all(missing not in str(value) for value in row if not isinstance(value, bytes))
