"""What plain SQL says of the tables of a store, to compare with what commands say."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.account_store import SPELLINGS

PROMPT = "uncached + cache_read + cache_write + cache_write_long"
EVENTS = "FROM compaction_events JOIN sessions ON sessions.id = compaction_events.session WHERE kind = 'compaction'"
TURNS = "FROM turns JOIN sessions ON sessions.id = turns.session WHERE true"


@contextmanager
def plain_sql(store: Path) -> Iterator[sqlite3.Connection]:
    """Open the file as anybody could, without Lowwater."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        yield connection


def check(found: dict[str, Any], sql: sqlite3.Connection, begin: float = 0.0) -> None:
    """Compare one row of figures with what SQL says of the turns and events of its model, or of all."""
    spelled = [f"'{spelling}'" for spelling, name in SPELLINGS.items() if found["model"] in {"", name}]
    of = f" AND model IN ({', '.join(spelled)}) AND at >= {begin}"
    turns, unpriced, prompt, output, read, cost, untouched, saved, gain = sql.execute(
        f"SELECT count(*), sum(cost IS NULL), sum({PROMPT}), sum(output), sum(cache_read), sum(cost), sum(untouched),"
        f" sum(removed), sum(untouched - cost) FROM turns WHERE true {of}"
    ).fetchone()
    passes, reclaimed, tokens, summaries, score = sql.execute(
        "SELECT count(*), sum(reclaimed), sum(summary_tokens), sum(cost), avg(score)"
        f" FROM compaction_events WHERE kind = 'compaction' {of}"
    ).fetchone()
    (sessions,) = sql.execute(
        f"SELECT count(*) FROM (SELECT session FROM turns WHERE true {of} UNION"
        f" SELECT session FROM compaction_events WHERE kind = 'compaction' {of})"
    ).fetchone()
    assert found["turns"] == turns
    assert found["unpriced_turns"] == unpriced
    assert (found["prompt"], found["output"], found["cache_read"]) == (prompt, output, read)
    assert (found["cost"], found["untouched"], found["saved"]) == (cost, untouched, saved)
    assert (found["passes"], found["reclaimed"], found["summary_tokens"]) == (passes, reclaimed, tokens)
    assert found["summary_cost"] == summaries
    assert found["score"] == pytest.approx(score)
    if found["model"]:
        assert found["sessions"] == sessions
    if found["net"] is not None:
        assert found["net"] == gain - summaries
