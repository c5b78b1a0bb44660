"""The sums of cadence and efficiency, recomputed in SQL over the same rows."""

import sqlite3
from collections.abc import Sequence

import pytest
from hypothesis import given

from lowwater.core.accounts.cadence import cadence
from lowwater.core.accounts.efficiency import efficiency
from lowwater.core.accounts.figures import Figures
from lowwater.core.accounts.payback import paybacks
from lowwater.core.events import Compaction
from lowwater.core.stored import Account
from tests.core.accounts.accounts import REGISTRY, accounts

_ONE_NAME = {
    "acme-1": "acme-1",
    "vertex/acme-1": "acme-1",
    "acme-1-2026-01-15": "acme-1",
    "mystery-2": "mystery-2",
    "other-7": "other-7",
    "other-7-20260101": "other-7",
}
_SCHEMA = """
CREATE TABLE turns (session, n, at, model, prompt, cache_read, output, expected_read, cost, untouched, removed);
CREATE TABLE events (session, n, at, kind, model, mode, reclaimed, first_changed, summary_tokens, summaries, cost, score, code);
CREATE TABLE bought (model, summaries, rewriting);
"""
_TURNS = """
SELECT count(*), count(*) - count(cost), coalesce(sum(prompt), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0),
    sum(cost), sum(untouched), coalesce(sum(removed), 0), count(expected_read + prompt),
    sum(abs(expected_read - cache_read)) * 1.0 / nullif(sum(CASE WHEN expected_read IS NOT NULL THEN prompt END), 0),
    sum(untouched - cost)
FROM turns WHERE :model = '' OR model = :model
"""
_PASSES = """
SELECT count(*), coalesce(sum(reclaimed), 0), coalesce(sum(summary_tokens), 0), sum(cost), avg(score),
    1000.0 * sum(cost) FILTER (WHERE summary_tokens > 0)
        / nullif(sum(summary_tokens) FILTER (WHERE cost IS NOT NULL), 0)
FROM events WHERE kind = 'compaction' AND (:model = '' OR model = :model)
"""
_BOUGHT = """
SELECT count(*), sum(rewriting), count(*) - count(summaries + rewriting) FROM bought WHERE :model = '' OR model = :model
"""
_BETWEEN = """
WITH placed AS (
    SELECT session, n, (SELECT count(*) FROM turns WHERE turns.session = events.session AND turns.at < events.at) AS turns
    FROM events WHERE kind = 'compaction'
)
SELECT avg(turns - before) FROM (
    SELECT turns, lag(turns) OVER (PARTITION BY session ORDER BY n) AS before FROM placed
) WHERE before IS NOT NULL
"""
_CADENCE = """
SELECT count(*), sum(mode IN ('summary', 'condense')), avg(reclaimed), min(first_changed),
    sum(summary_tokens) * 1.0 / nullif(sum(summaries), 0)
FROM events WHERE kind = 'compaction'
"""


def stored(many: Sequence[Account]) -> sqlite3.Connection:
    """Return the rows of these accounts in a database."""
    db = sqlite3.connect(":memory:")
    db.executescript(_SCHEMA)
    for account in many:
        name = account.session.name
        for n, record in enumerate(account.records):
            usage, expected = record.usage, record.expected
            row = (name, n, record.at, _ONE_NAME[record.model])
            used = (usage.prompt, usage.cache_read, usage.output) if usage else (None,) * 3
            told = (expected.cache_read if expected else None, record.cost, record.untouched, record.removed)
            db.execute("INSERT INTO turns VALUES (?,?,?,?,?,?,?,?,?,?,?)", (*row, *used, *told))
        for n, event in enumerate(account.events):
            head: tuple[object, ...] = (name, n, event.at)
            if isinstance(event, Compaction):
                named = ("compaction", _ONE_NAME[event.model], event.mode, event.before - event.after)
                written = sum(phase.mechanism in {"leaf", "condense"} for phase in event.phases)
                summaries = written or int(event.mode in {"summary", "condense"})
                rest = (event.first_changed, event.summary_tokens, summaries, event.cost, event.score, None)
                db.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", (*head, *named, *rest))
            else:
                skipped = ("skip", *(None,) * 8, event.because.code)
                db.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", (*head, *skipped))
        for each in paybacks(account, REGISTRY):
            bought = (_ONE_NAME[each.model], each.summaries, each.rewriting)
            db.execute("INSERT INTO bought VALUES (?,?,?)", bought)
    return db


def check(found: Figures, db: sqlite3.Connection) -> None:
    """Compare one row of figures with what SQL says."""
    wanted = {"model": found.model}
    turns, unpriced, prompt, output, read, cost, untouched, saved, foreseen, off, gains = db.execute(
        _TURNS, wanted
    ).fetchone()
    passes, reclaimed, tokens, summaries, score, per_1000 = db.execute(_PASSES, wanted).fetchone()
    bought, rewriting, missing = db.execute(_BOUGHT, wanted).fetchone()
    assert (found.turns, found.unpriced_turns) == (turns, unpriced)
    assert (found.prompt, found.output, found.cache_read) == (prompt, output, read)
    assert (found.saved, found.foreseen_turns) == (saved, foreseen)
    assert found.cost == (cost if turns else 0)
    assert found.untouched == (untouched if turns else 0)
    assert (found.passes, found.reclaimed, found.summary_tokens) == (passes, reclaimed, tokens)
    assert found.summary_cost == (summaries if passes else 0)
    assert found.rewriting_cost == (rewriting if bought else 0)
    assert found.unpriced_passes == missing
    assert found.score == pytest.approx(score)
    assert found.foreseen_off == pytest.approx(off)
    assert found.summary_cost_per_1000 == pytest.approx(per_1000)
    if missing or (gains is None and turns):
        assert found.net is None
    else:
        assert found.net == (gains or 0) - (summaries or 0)


@given(accounts())
def test_efficiency_is_what_sql_says(many: list[Account]) -> None:
    db, found = stored(many), efficiency(many, REGISTRY)
    check(found.total, db)
    for model in found.models:
        check(model, db)
        sessions = db.execute(
            "SELECT count(*) FROM (SELECT session FROM turns WHERE model = ?1"
            " UNION SELECT session FROM events WHERE model = ?1)",
            (model.model,),
        )
        assert sessions.fetchone() == (model.sessions,)
    names = db.execute("SELECT model FROM turns UNION SELECT model FROM events WHERE model IS NOT NULL")
    assert {name for (name,) in names} == {model.model for model in found.models}


@given(accounts())
def test_cadence_is_what_sql_says(many: list[Account]) -> None:
    db, found = stored(many), cadence(many)
    events, summaries, reclaimed, earliest, length = db.execute(_CADENCE).fetchone()
    turns, prompts = db.execute("SELECT count(*), coalesce(sum(prompt), 0) FROM turns").fetchone()
    (tokens,) = db.execute("SELECT coalesce(sum(summary_tokens), 0) FROM events").fetchone()
    assert (found.turns, found.events, found.summaries) == (turns, events, summaries or 0)
    assert found.prunes == events - (summaries or 0)
    assert found.events_per_100_turns == pytest.approx(100 * events / turns if turns else None)
    assert found.turns_between_events == pytest.approx(db.execute(_BETWEEN).fetchone()[0])
    assert found.reclaimed_per_event == pytest.approx(reclaimed)
    assert found.earliest_changed == earliest
    assert found.mean_summary_tokens == pytest.approx(length)
    assert found.prompt_and_summary_tokens == prompts + tokens
    skips = db.execute("SELECT code, count(*) FROM events WHERE kind = 'skip' GROUP BY code")
    assert found.skips == dict(skips.fetchall())
