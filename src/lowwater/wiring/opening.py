"""A session before its first message, or as it was left."""

from msgspec.structs import replace

from lowwater.core.entries import Opened
from lowwater.core.ledger import Ledger
from lowwater.core.turns.state import Route, Setup, State
from lowwater.load.tokenizer import tokenizer_for
from lowwater.wiring.counting import calibration_for, counted_in
from lowwater.wiring.home import Home
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


def entered(home: Home, seen: State | None, route: Route, setup: Setup, outside: Outside) -> State:
    """Return the session as its home has it now, or a new one; `seen` is what was known of it before."""
    state = None if seen is None else home.catch_up(seen)
    if state is None:
        state = opened(route, setup, outside)
        found = home.find()
        if found is not None:
            state = home.resumed(found.carried, replace(state, ledger=found.ledger))
    model = outside.registry.find(state.route.model)
    return state if model is state.model else replace(state, model=model)


def setup_for(state: State, setup: Setup) -> Setup:
    """Return the setup for a session, which is counted in the vocabulary that its ledger was opened with, for good."""
    vocabulary = state.ledger.vocabulary
    if vocabulary == setup.tokenizer.vocabulary:
        return setup
    return counted_in(setup, tokenizer_for(vocabulary), state.route.model)
