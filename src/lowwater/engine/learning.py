"""What an answer teaches: how counts become the provider's tokens, how fast the conversation grows, what it consumed."""

from msgspec.structs import replace

from lowwater.decide.outcome import after_turn
from lowwater.engine.billing import cost_of_answer
from lowwater.engine.state import State, Totals
from lowwater.values.response import Response
from lowwater.values.usage import together

_MEMORY = 0.2
"""How much the newest turn counts in the measured growth."""


def learn(state: State, response: Response) -> State:
    """Return the session after an answer; one without usage, or of a model that is no longer in use, teaches little."""
    state = replace(state, past=after_turn(state.past))
    state = replace(state, totals=totals_with(state, response))
    call = state.call
    if response.usage is None or response.prompt <= 0 or (call and call.model.name != state.model.name):
        return state
    counted = call.counted if call else state.sent or state.counted
    calibration = state.calibration.observe(counted=counted, reported=response.prompt)
    return replace(
        _with_growth(state, response.prompt),
        calibration=calibration,
        reported=response.prompt,
    )


def _with_growth(state: State, prompt: int) -> State:
    grown = prompt - state.reported
    if not state.reported or grown <= 0:
        return state
    weight = max(_MEMORY, 1 / (state.growths + 1))
    return replace(state, growth=(1 - weight) * state.growth + weight * grown, growths=state.growths + 1)


def totals_with(state: State, response: Response) -> Totals:
    """Return the totals after an answer: every call that was billed counts, those the provider made beside it too."""
    totals, used = state.totals, together(response.calls)
    return replace(
        totals.paid(cost_of_answer(state, response)),
        turns=totals.turns + 1,
        thinking_off=totals.thinking_off + (state.call is not None and state.call.thinking_off),
        prompt=totals.prompt + used.prompt,
        cache_read=totals.cache_read + used.cache_read,
        output=totals.output + used.output,
    )
