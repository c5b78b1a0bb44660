"""What a session learns from an answer's usage: the calibration of its counts, the growth of its prompt, its totals."""

from msgspec.structs import replace

from lowwater.core.api_calls import Response, together
from lowwater.core.tokens.counting import HIGHEST_SCALE
from lowwater.core.turns.costs import cost_of_answer
from lowwater.core.turns.state import State, Totals

_MOST_HIDDEN = 200_000
"""Tokens that may be in a prompt without Lowwater seeing them: a system prompt and tools that the client adds later."""
_MOST_NEW_HIDDEN = 100_000
"""How many such tokens may be added between two calls."""
_MOST_PROMPT = 100_000_000
_MOST_OUTPUT = 10_000_000
"""More than any model accepts or writes."""
_NEWEST_WEIGHT = 0.2
"""The weight of the newest turn in the average growth."""


def believed(state: State, response: Response) -> Response:
    """Return the answer, without its usage if that is implausible: far larger than the prompt that was counted.

    What Lowwater cannot see of a prompt may be large, and may grow at once, so the same usage reported twice in a row is
    believed.
    """
    usage = response.usage
    if usage is None:
        return response
    call = state.call
    counted = call.counted if call else state.sent_tokens or state.counted
    most = round(HIGHEST_SCALE * counted) + _MOST_HIDDEN
    if state.calibration.recent:
        most = round(HIGHEST_SCALE * state.calibration.predict(counted)) + _MOST_NEW_HIDDEN
    largest = largest_prompt(response)
    again = 0 < state.doubted_prompt <= 2 * largest and largest <= 2 * state.doubted_prompt
    if usage.output > _MOST_OUTPUT or (largest > most and not (again and largest <= _MOST_PROMPT)):
        doubt = (
            f"{largest:,} tokens of prompt and {usage.output:,} of output for a prompt of about {counted:,}"
        )
        return response.unbelieved(doubt)
    return response


def with_lifetime_asked_for(state: State, response: Response) -> Response:
    """Return the answer with its cache writes for the lifetime that the request's marks asked for, if the usage does not say."""
    usage, call = response.usage, state.call
    if usage is None or response.splits_writes or call is None or not usage.cache_write:
        return response
    if call.expected.cache_write or not call.expected.cache_write_long:
        return response
    return replace(response, usage=replace(usage, cache_write=0, cache_write_long=usage.cache_write))


def largest_prompt(response: Response) -> int:
    """Return the largest prompt that an answer reports: its own, or that of another call the provider made for it."""
    return max([response.prompt, *(each.prompt for each in response.calls)])


def learn(state: State, response: Response) -> State:
    """Return the state with totals, calibration and growth after an answer.

    Without usage, or if another model is in use by now, only the totals change.
    """
    state = replace(state, totals=totals_with(state, response))
    call = state.call
    if response.usage is None or response.prompt <= 0 or (call and call.model.name != state.model.name):
        return state
    counted = call.counted if call else state.sent_tokens or state.counted
    calibration = state.calibration.observe(counted=counted, reported=response.prompt)
    return replace(
        _with_growth(state, response.prompt),
        calibration=calibration,
        reported_prompt=response.prompt,
    )


def _with_growth(state: State, prompt: int) -> State:
    """Return the state with the average growth per turn, updated by the size that was reported."""
    grown = prompt - state.reported_prompt
    if not state.reported_prompt or grown <= 0:
        return state
    weight = max(_NEWEST_WEIGHT, 1 / (state.growth_turns + 1))
    return replace(
        state, growth=(1 - weight) * state.growth + weight * grown, growth_turns=state.growth_turns + 1
    )


def totals_with(state: State, response: Response) -> Totals:
    """Return the totals after an answer; further calls that the provider made for it count too."""
    totals, used = state.totals, together(response.calls)
    return replace(
        totals.paid(cost_of_answer(state, response)),
        turns=totals.turns + 1,
        thinking_off=totals.thinking_off + (state.call is not None and state.call.thinking_off),
        prompt=totals.prompt + used.prompt,
        cache_read=totals.cache_read + used.cache_read,
        output=totals.output + used.output,
    )
