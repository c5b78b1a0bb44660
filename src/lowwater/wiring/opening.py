"""A session before its first message."""

from lowwater.engine.setup import Setup
from lowwater.engine.state import Route, State
from lowwater.values.entries import Opened
from lowwater.values.ledger import Ledger
from lowwater.wiring.counting import calibration_for
from lowwater.wiring.outside import Outside


def opened(route: Route, setup: Setup, outside: Outside) -> State:
    """Return a session that was just opened on a model."""
    model = outside.registry.find(route.model)
    entry = Opened(at=outside.clock.now(), model=model.name, vocabulary=setup.tokenizer.vocabulary)
    return State(
        ledger=Ledger().append(entry),
        route=route,
        model=model,
        calibration=calibration_for(route.model),
        binds_thinking=model.binds_thinking,
    )
