"""Sessions played as live clients of two replicas on one PostgreSQL: each has the bill of its replay, nothing invalid, nothing mixed."""

import pytest

from bench.gateway.replaying import Compared, compare, recorded
from bench.transcripts import CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.lab.replay.script import model_named, script_of
from tests.generated import generate_session


def check(rows: list[Compared]) -> None:
    assert [row.refused for row in rows if row.refused] == []
    assert [row.name for row in rows if not row.is_whole] == []
    assert {row.name: row.ratio for row in rows if abs(row.ratio - 1) > 0.01} == {}
    assert any(row.compactions for row in rows)


@pytest.mark.moves_prefix(reason="rent-or-buy compacts")
def test_generated_sessions_cost_what_the_replay_says() -> None:
    scripts = [
        script_of(generate_session(seed=seed, turns=80).as_recording()).beginning(60) for seed in (3, 4)
    ]
    check(compare(scripts, model_named("gpt-5.5", load_registry())))


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.exists(), reason="no recorded sessions on this machine")
@pytest.mark.moves_prefix(reason="rent-or-buy compacts")
@pytest.mark.parametrize("sheet", ["deepseek", "gpt-5.5"])
def test_recorded_sessions_cost_what_the_replay_says(sheet: str) -> None:
    """On models that cache by themselves: where marks decide, a replay sets its own, and a gateway leaves a client's alone."""
    check(compare(recorded(20, 120), model_named(sheet, load_registry())))
