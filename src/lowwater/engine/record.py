"""After the answer: append it, and learn from what the provider reported."""

from msgspec.structs import replace

from lowwater.decide.outcome import after_switch, after_turn
from lowwater.engine.setup import Setup
from lowwater.engine.state import State, Totals
from lowwater.engine.turn import append
from lowwater.values.entries import ModelChanged
from lowwater.values.model import Model
from lowwater.values.response import Response
from lowwater.values.situation import Past
from lowwater.values.usage import Usage

_MEMORY = 0.2
"""How much the newest turn counts in the measured growth."""


def record(state: State, response: Response, setup: Setup, at: float) -> State:
    """Return the session after an answer: usage calibrates counts, growth and totals."""
    if response.usage is not None and response.usage.prompt > 0:
        state = _learn(state, response.usage)
    return append(state, [response.message], setup, at)


def switch(state: State, model: Model, prior: float, at: float) -> State:
    """Return the session on another model: everything learned of the one before is forgotten (SPEC G)."""
    if model.name == state.model.name:
        return state
    ledger = state.ledger.append(ModelChanged(at=at, model=model.name))
    calibration = type(state.calibration)(prior=prior)
    return replace(
        state, ledger=ledger, model=model, calibration=calibration, usage=None, past=after_switch(state.past)
    )


def learn_context(state: State, context: int) -> State:
    """Remember the window that a provider reported in an error."""
    return replace(state, learned_context={**state.learned_context, state.model.name: context})


def reset(state: State) -> State:
    """Clear counters, warned levels and what was learned of compactions; the ledger stays."""
    return replace(
        state, past=Past(), totals=Totals(), warned=frozenset(), growth=0.0, growths=0, decision=None
    )


def _learn(state: State, usage: Usage) -> State:
    before = state.usage.prompt if state.usage else 0
    grown = usage.prompt - before
    growth, growths = state.growth, state.growths
    if before and grown > 0:
        weight = max(_MEMORY, 1 / (growths + 1))
        growth, growths = (1 - weight) * growth + weight * grown, growths + 1
    totals = replace(
        state.totals,
        turns=state.totals.turns + 1,
        prompt=state.totals.prompt + usage.prompt,
        cache_read=state.totals.cache_read + usage.cache_read,
        output=state.totals.output + usage.output,
    )
    return replace(
        state,
        calibration=state.calibration.observe(counted=state.sent or state.counted, reported=usage.prompt),
        usage=usage,
        growth=growth,
        growths=growths,
        totals=totals,
        past=after_turn(state.past),
    )
