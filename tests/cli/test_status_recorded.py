"""`lowwater status` and `lowwater efficiency` on hundreds of recorded sessions, and how fast they answer."""

import json
import time
from pathlib import Path

import pytest

from lowwater import Lowwater
from lowwater.adapters.files import read_text_file
from lowwater.core.formats.codec import as_completion, as_message
from lowwater.core.formats.files import decode_conversation
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, OutputSettings, Settings
from lowwater.stores.addresses import open_store
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import ScriptedClock
from tests.cli.account_store import START, book
from tests.cli.command_runner import run, told
from tests.cli.sql_totals import EVENTS, TURNS, check, plain_sql

RECORDED = sorted(
    (Path(__file__).parents[3] / "shared" / "transcripts" / "canonical").glob("*/*.jsonl.gz"),
    key=lambda path: path.stat().st_size,
)[:200]


@pytest.mark.full
@pytest.mark.skipif(not RECORDED, reason="needs recorded transcripts")
def test_recorded_sessions_have_the_figures_that_sql_gives(tmp_path: Path) -> None:
    path = tmp_path / "recorded.db"
    played = play_recorded(path)
    said, lines = told(path, "efficiency"), told(path, "status", "--all")["sessions"]
    assert len(lines) == said["total"]["sessions"] == played
    with plain_sql(path) as sql:
        for found in (said["total"], *said["models"]):
            check(found, sql)
        (passes,) = sql.execute(f"SELECT count(*) {EVENTS}").fetchone()
        costs = dict(sql.execute(f"SELECT name, sum(cost) {TURNS} GROUP BY name").fetchall())
        summaries = dict(sql.execute(f"SELECT name, sum(cost) {EVENTS} GROUP BY name").fetchall())
    assert passes > len(lines)
    for line in lines:
        assert line["cost"] == costs[line["name"]] + summaries.get(line["name"], 0)
    assert {each["model"] for each in said["models"]} == {"claude-opus-5-5", "claude-haiku-4-5"}


def play_recorded(store: Path) -> int:
    """Play recorded conversations, billed as was foreseen, in a window small enough to compact most; return how many."""
    settings = Settings(
        compression=CompressionSettings(max_view_tokens=6_000), output=OutputSettings(quiet=True)
    )
    clock, kept = ScriptedClock(START), open_store(f"sqlite:///{store}")
    played = 0
    for number, file in enumerate(RECORDED):
        model = ("claude-opus-5-5", "claude-haiku-4-5")[number % 2]
        library = Lowwater(model=model, settings=settings, store=kept, clock=clock)
        session, conversation = (
            library.session(f"r{number}"),
            decode_conversation(read_text_file(str(file)), None),
        )
        turns = 0
        raws = [json.loads(one.wire.raw) for one in conversation.messages if one.wire is not None]
        for exchange in exchanges(raws):
            if exchange.answer is None:
                break
            clock.advance(20)
            session.append(list(exchange.new))
            session.prepare()
            usage = internals(session).expected_usage
            anthropic = conversation.format == "anthropic"
            session.record(
                as_message(exchange.answer["content"], usage, model)
                if anthropic
                else as_completion(exchange.answer, usage, model)
            )
            turns += 1
        played += turns > 0
    kept.close()
    return played


@pytest.mark.full
def test_three_hundred_sessions_answer_in_a_blink(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    book(path, sessions=300, turns=60, every=25)
    told(path, "status", "s7")  # what is loaded once belongs to the start of the program
    for args in (["status"], ["status", "--all"], ["efficiency"]):
        took: list[float] = []
        for _ in range(3):  # the best of three: the machine is noisy
            begun = time.process_time()
            done = run(path, *args)
            took.append(time.process_time() - begun)
            assert done.exit_code == 0, done.output
        assert min(took) < 0.5, args
