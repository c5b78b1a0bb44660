"""Shadow mode: what a call would have cost with Lowwater, computed from what the client's own call was billed.

The session decides and compacts as a live one, but its requests are never sent. The provider answers the client's request
instead, and the answer is recorded with the usage that the session's request would have had.
"""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Response, Usage
from lowwater.core.cache.belief import rule_of, step_of
from lowwater.core.events import TurnRecord
from lowwater.core.turns.cache import removed_from
from lowwater.core.turns.costs import cost_of_answer, turn_record, with_more
from lowwater.core.turns.state import PendingCall, Setup, State
from lowwater.core.turns.turn import Recorded, record, record_side_call

_INEXACT = 0.02
"""The share of a prompt by which the size of what compactions have removed may be wrong."""


class RemovedSize(Struct, frozen=True, kw_only=True):
    """How large what compactions have removed is: as counted, and in the model's tokens."""

    counted: int = 0
    tokens: float = 0.0

    def now(self, counted: int, *, ratio: float) -> "RemovedSize":
        """Return it for another count; what is removed now has `ratio` tokens for each counted one, and the rest stays as it was."""
        if counted >= self.counted:
            tokens = self.tokens + ratio * (counted - self.counted)
        else:
            tokens = self.tokens * counted / self.counted
        return RemovedSize(counted=counted, tokens=tokens)


class ShadowRecorded(Struct, frozen=True, kw_only=True):
    """A recorded turn, and what compactions had removed from its prompt."""

    done: Recorded
    removed: RemovedSize


def record_shadow(
    state: State, response: Response, setup: Setup, at: float, *, added: int, removed: RemovedSize
) -> ShadowRecorded:
    """Record an answer as if the session's own request had got it.

    `added` is how many tokens, as counted, that request has and the client's has not; `removed` is from the turn before.
    """
    usage, call = response.usage, state.call
    if usage is None or call is None or response.prompt <= 0:
        done = _unknown(record(state, replace(response, usage=None, prompt=0), setup, at))
        return ShadowRecorded(done=done, removed=removed)
    counted = round(call.removed / state.scale)
    ratio = usage.prompt / max(1, call.counted - added + counted)
    before, removed = removed, removed.now(counted, ratio=ratio)
    kept = max(1, round(usage.prompt - removed.tokens))
    tools = round(ratio * added)
    call = replace(
        call,
        removed=round(removed.tokens),
        removed_before=round(min(before.tokens, removed.tokens)),
    )
    would = would_have_used(call, with_more(usage, tools), size=kept + tools)
    done = record(state, _with_usage(response, would), setup, at)
    if done.doubt:
        return ShadowRecorded(done=_unknown(done), removed=removed)
    # The estimate leaves out the recall tools, which the client's own requests do not have.
    without_tools = replace(
        call,
        expected=replace(call.expected, cache_read=max(0, call.expected.cache_read - tools)),
        removed_behind=max(0, call.removed_behind - tools),
    )
    would = would_have_used(without_tools, usage, size=kept)
    alike = turn_record(replace(state, call=without_tools), _with_usage(response, would), at)
    compared = _compared(done, actual=cost_of_answer(state, response), alike=alike)
    return ShadowRecorded(done=compared, removed=removed)


def record_shadow_side_call(state: State, response: Response, at: float) -> Recorded:
    """Bill a call that is not part of the conversation, such as the client's own request for a summary."""
    usage = response.usage
    if usage is None or response.prompt <= 0:
        return _unknown(record_side_call(state, replace(response, usage=None, prompt=0), at))
    removed = min(removed_from(state), usage.prompt - 1)
    read = min(removed, usage.cache_read)
    would = scaled_usage(replace(usage, cache_read=usage.cache_read - read), usage.prompt - removed)
    done = record_side_call(state, _with_usage(response, would), at)
    if done.doubt:
        return _unknown(done)
    return _compared(done, actual=cost_of_answer(replace(state, call=None), response), alike=done.record)


def would_have_used(call: PendingCall, reported: Usage, *, size: int) -> Usage:
    """Return what a call with a prompt of this size would have been billed for, given what the client's own request was.

    Before the first compaction it is billed as the client's was; afterwards it reads what the session expects to be cached,
    but never more than the client's own call did, and it is written to the cache only if that was, too.
    """
    if not call.removed and not call.compaction_surcharge:
        return scaled_usage(reported, size)
    if not (reported.cache_read or reported.cache_write or reported.cache_write_long):
        return Usage(uncached=size, output=reported.output)
    read = min(_read(call, reported), size)
    if not (call.expected.cache_write or call.expected.cache_write_long):
        return Usage(uncached=size - read, cache_read=read, output=reported.output)
    uncached = min(call.expected.uncached, size - read)
    written = size - read - uncached
    is_long = reported.cache_write_long > reported.cache_write
    return Usage(
        uncached=uncached,
        cache_read=read,
        cache_write=0 if is_long else written,
        cache_write_long=written if is_long else 0,
        output=reported.output,
    )


def _read(call: PendingCall, reported: Usage) -> int:
    """Return what a compacted call would have read, given what the client's own call was billed.

    Up to where compactions have changed something both are the same, if the provider can read a prefix of any length. Behind it the session's own expectation counts, but what
    the client's call had to process at its end the shorter one has to process, too.
    """
    read, behind = reported.cache_read, call.removed_behind
    any_length = step_of(rule_of(call.layout, call.model.cache)) > 0
    alike = min(read, behind) if any_length or read <= behind else 0
    reached = max(min(read, behind), read - call.removed_before)
    expected = min(call.expected.cache_read, read)
    is_beyond = expected - reached > _INEXACT * reported.prompt
    return max(alike, reached if is_beyond else expected)


def scaled_usage(usage: Usage, size: int) -> Usage:
    """Return the usage of a prompt of another size that is billed in the same proportions."""
    if not usage.prompt:
        return replace(usage, uncached=size)
    share = size / usage.prompt
    read = round(usage.cache_read * share)
    short, long = round(usage.cache_write * share), round(usage.cache_write_long * share)
    if not usage.uncached:
        # Rounding must not leave a few tokens that are billed otherwise than all the rest.
        read = size - short - long
    return replace(
        usage,
        cache_read=read,
        cache_write=short,
        cache_write_long=long,
        uncached=max(0, size - read - short - long),
    )


def _with_usage(response: Response, usage: Usage) -> Response:
    return replace(response, usage=usage, prompt=usage.prompt)


def _compared(done: Recorded, *, actual: int | None, alike: TurnRecord) -> Recorded:
    """Return the record with the real cost as `untouched`, beside the estimate that a live session would make of it."""
    record = replace(done.record, expected=None, untouched=actual, estimated=alike.untouched)
    return replace(done, record=record)


def _unknown(done: Recorded) -> Recorded:
    return replace(done, record=replace(done.record, expected=None, untouched=None))
