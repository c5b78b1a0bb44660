"""A session's budget takes the place of its model's window: everything that follows from the window follows it, for that session only."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lowwater.core.limits import Limits, UsageWarning
from lowwater.core.turns.decision_context import limits_for
from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.settings import OutputSettings, Settings
from tests.generated import generate_session

MODEL = "claude-sonnet-4-5"
BUDGET = 16_000
QUIET = Settings(output=OutputSettings(quiet=True))


def library(store: str = "memory:", model: str = MODEL) -> Lowwater:
    return Lowwater(model=model, store=store, settings=QUIET)


def requests(session: Session, turns: int = 40) -> Iterator[PreparedRequest]:
    """Play a generated session, and yield each request."""
    for raw in generate_session("coding", seed=4, turns=turns).as_anthropic().messages:
        message = json.loads(raw)
        if message["role"] == "assistant":
            request = session.prepare()
            yield request
            usage: dict[str, Any] = {"input_tokens": request.tokens, "output_tokens": 40}
            session.record({"type": "message", "model": MODEL, "usage": usage, **message})
        else:
            session.append(message)


def limits_of(session: Session) -> Limits:
    return limits_for(internals(session).shared.state, internals(session).shared.setup)


def test_requests_stay_within_the_budget_and_are_compacted_no_more_than_they_must_be() -> None:
    session = library().session("helper", budget=BUDGET)
    sizes = [request.tokens for request in requests(session)]
    assert max(sizes) <= BUDGET
    assert max(sizes) > BUDGET // 2, "the session was long enough to need the limit"
    assert session.status().totals.compactions >= 1


def test_wall_threshold_warnings_summaries_and_pins_follow_it() -> None:
    session = library().session("helper", budget=BUDGET)
    limits, whole = limits_of(session), limits_of(library().session("other"))
    assert (limits.context, limits.wall) == (BUDGET, BUDGET)
    assert limits.threshold <= BUDGET < whole.threshold
    assert limits.summary < whole.summary
    assert internals(session).shared.state.window == BUDGET
    warned: list[UsageWarning] = []
    keeper = Lowwater(model=MODEL, store="memory:", settings=QUIET, on_warning=warned.append)
    assert len(list(requests(keeper.session("helper", budget=BUDGET), 20))) == 20
    assert {warning.threshold for warning in warned} == {BUDGET}


def test_it_holds_for_no_other_session() -> None:
    keeper = library()
    keeper.session("helper", budget=BUDGET)
    assert keeper.session("other").status().context == 200_000
    assert max(request.tokens for request in requests(keeper.session("other"))) > BUDGET


def test_it_is_stored_with_the_session_and_stays_when_the_model_changes(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    with library(store) as keeper:
        keeper.session("helper", budget=BUDGET)
    with library(store, model="gpt-5-mini") as keeper:
        session = keeper.session("helper")
        assert session.status().context == BUDGET
        assert keeper.session("other").status().context > BUDGET
    with library(store) as keeper:
        assert keeper.session("helper", budget=0).status().context == 200_000


def test_a_budget_above_the_window_changes_nothing() -> None:
    keeper = library()
    large, usual = keeper.session("large", budget=5_000_000), keeper.session("usual")
    assert limits_of(large) == limits_of(usual)


@pytest.mark.parametrize("budget", [-1, 999, 2.5, True])
def test_what_is_no_budget_is_refused(budget: Any) -> None:
    with pytest.raises(BadInput, match="budget"):
        library().session("helper", budget=budget)
