"""`lowwater status` says of a few hundred sessions what plain SQL says of their tables."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.account_store import DAY, SPELLINGS, START, book
from tests.cli.command_runner import told
from tests.cli.sql_totals import EVENTS, PROMPT, TURNS, check, plain_sql

SESSIONS = 200


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("booked") / "many.db"
    book(path, sessions=SESSIONS, turns=4)
    return path


@pytest.fixture
def sql(store: Path) -> Iterator[sqlite3.Connection]:
    with plain_sql(store) as connection:
        yield connection


def test_all_sessions_have_the_figures_that_sql_gives(store: Path, sql: sqlite3.Connection) -> None:
    lines = {line["name"]: line for line in told(store, "status", "--all")["sessions"]}
    assert len(lines) == SESSIONS
    rows = sql.execute(
        f"SELECT name, title, count(*), sum(cost IS NULL), sum(cost), changed_at {TURNS} GROUP BY name"
    ).fetchall()
    passes = dict(sql.execute(f"SELECT name, count(*) {EVENTS} GROUP BY name").fetchall())
    summaries = dict(
        sql.execute(
            f"SELECT name, CASE WHEN sum(cost IS NULL) THEN NULL ELSE sum(cost) END {EVENTS} GROUP BY name"
        ).fetchall()
    )
    last = dict(
        sql.execute(
            f"SELECT name, {PROMPT} FROM turns JOIN sessions ON sessions.id = turns.session"
            " WHERE turns.version = (SELECT max(version) FROM turns AS newer WHERE newer.session = turns.session)"
        ).fetchall()
    )
    for name, title, turns, unpriced, cost, changed in rows:
        line = lines[name]
        wrote = summaries.get(name, 0)
        assert line["turns"] == turns
        assert line["title"] == title
        assert line["compactions"] == passes.get(name, 0)
        assert line["cost"] == (None if unpriced or wrote is None else cost + wrote)
        assert line["prompt"] == last[name]
        assert line["changed_at"] == changed
    assert {line["cost"] is None for line in lines.values()} == {True, False}


def test_sessions_are_listed_newest_first(store: Path, sql: sqlite3.Connection) -> None:
    names = [line["name"] for line in told(store, "status", "--all")["sessions"]]
    assert names == [name for (name,) in sql.execute("SELECT name FROM sessions ORDER BY version DESC")]
    assert told(store, "status")["session"]["name"] == names[0]


@pytest.mark.parametrize("number", [0, 3, 77, 138, 199])
def test_one_session_has_the_figures_that_sql_gives(
    store: Path, sql: sqlite3.Connection, number: int
) -> None:
    name = f"s{number}"
    said = told(store, "status", name)
    of_it = f"AND name = '{name}'"
    prompts = [row[0] for row in sql.execute(f"SELECT {PROMPT} {TURNS} {of_it} ORDER BY turns.version")]
    reported = [prompt for prompt in said["prompts"] if prompt is not None]
    assert len(said["prompts"]) == len(prompts)
    assert [prompt for prompt in prompts if prompt is not None] == [
        given for given, plain in zip(said["prompts"], prompts, strict=True) if plain is not None
    ]
    assert reported
    cost, untouched, removed, gain = sql.execute(
        f"SELECT sum(cost), sum(untouched), sum(removed), sum(untouched - cost) {TURNS} {of_it}"
    ).fetchone()
    assert (said["cost"], said["untouched"]) == (cost, untouched)
    passes, summaries, reclaimed = sql.execute(
        f"SELECT count(*), coalesce(sum(cost), 0), sum(reclaimed) {EVENTS} {of_it}"
    ).fetchone()
    section = said["efficiency"]
    assert (section["passes"], section["tokens_saved"]) == (passes, removed)
    assert said["cadence"]["reclaimed"] == (reclaimed or 0)
    if section["net"] is not None:
        assert section["net"] == (gain or 0) - summaries


def test_the_seven_cadence_metrics_are_what_sql_gives(store: Path, sql: sqlite3.Connection) -> None:
    of = told(store, "status", "--all")["cadence"]
    turns, prompts = sql.execute(f"SELECT count(*), sum({PROMPT}) {TURNS}").fetchone()
    events, reclaimed, tokens, earliest, with_summary = sql.execute(
        "SELECT count(*), avg(reclaimed), sum(summary_tokens), min(first_changed),"
        f" sum(mode IN ('summary', 'condense')) {EVENTS}"
    ).fetchone()
    (between,) = sql.execute(
        f"""WITH placed AS (
            SELECT compaction_events.session, compaction_events.version, ordinal, (
                SELECT count(*) FROM turns WHERE turns.session = compaction_events.session
                AND turns.at < compaction_events.at) AS before {EVENTS})
        SELECT avg(step) FROM (
            SELECT before - lag(before) OVER (PARTITION BY session ORDER BY version, ordinal) AS step FROM placed)"""
    ).fetchone()
    (calls,) = sql.execute(
        f"SELECT sum((summarizer NOT IN ('', 'extractive')) + rejected) {EVENTS}"
    ).fetchone()
    assert of["events_per_100_turns"] == pytest.approx(100 * events / turns)
    assert of["turns_between_events"] == pytest.approx(between)
    assert of["summary_calls"] == calls
    assert of["reclaimed_per_event"] == pytest.approx(reclaimed)
    assert of["prompt_and_summary_tokens"] == prompts + tokens
    assert of["earliest_changed"] == earliest
    assert of["prunes_per_summary"] == pytest.approx((events - with_summary) / with_summary)
    skips = sql.execute("SELECT reason, count(*) FROM compaction_events WHERE kind = 'skip' GROUP BY reason")
    assert of["skips"] == dict(skips.fetchall())


def test_efficiency_by_model_and_in_all_is_what_sql_gives(store: Path, sql: sqlite3.Connection) -> None:
    said = told(store, "status", "--all")
    assert {each["model"] for each in said["models"]} == set(SPELLINGS.values())
    for found in (said["total"], *said["models"]):
        check(found, sql)


def test_since_leaves_out_what_came_before(store: Path, sql: sqlite3.Connection) -> None:
    (begin,) = sql.execute(
        f"SELECT cast(max(at) AS INTEGER) {TURNS} AND at < ?", (START + (SESSIONS - 30) * DAY,)
    ).fetchone()  # the last turn of a session: the others of it are left out
    moment = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(begin))
    said = told(store, "status", "--all", "--since", moment)
    assert said["since"] == begin
    assert 0 < said["total"]["sessions"] < SESSIONS
    for found in (said["total"], *said["models"]):
        check(found, sql, begin)


def test_one_session_alone(store: Path, sql: sqlite3.Connection) -> None:
    said = told(store, "status", "s5")["models"][0]
    turns, cost = sql.execute(f"SELECT count(*), sum(cost) {TURNS} AND name = 's5'").fetchone()
    assert (said["sessions"], said["turns"], said["cost"]) == (1, turns, cost)
