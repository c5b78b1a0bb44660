"""One turn in order: `prepare` runs before a call to the model, `record` after it.

Both take the session's state and return the next one. A turn is a generator: where it needs something from outside (a
summary, hooks to be told), it yields a request for that (`effects.py`), and a driver outside the core fulfils it.
"""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Response
from lowwater.core.decisions import Compact, Decision
from lowwater.core.events import Event, Skip, TurnRecord
from lowwater.core.legality import made_legal
from lowwater.core.limits import Limits, UsageWarning, warn
from lowwater.core.messages import Message
from lowwater.core.policies.safety_rules import decide, final_without_proposals
from lowwater.core.turns.arrival import (
    Incoming,
    absorb_native_block,
    append,
    measure_growth,
    replace_unreadable_block,
    sync_messages,
    truncate_on_arrival,
    with_detected_format,
)
from lowwater.core.turns.cache import begin_call, finish_call
from lowwater.core.turns.costs import side_call_record, turn_record
from lowwater.core.turns.decision_context import (
    DecisionInputs,
    decision_context,
    has_nothing_to_propose,
    limits_for,
    next_recheck,
    without_proposals,
)
from lowwater.core.turns.effects import Compacted, Steps
from lowwater.core.turns.reported_usage import (
    believed,
    largest_prompt,
    learn,
    totals_with,
    with_lifetime_asked_for,
)
from lowwater.core.turns.state import Acted, Setup, State, drop_stale
from lowwater.core.turns.thinking import is_thinking_refused, strip_unbound
from lowwater.core.view import is_pin_block

_MAX_COMPACTIONS = 4
"""Compactions in one turn: further ones are tried only while the prompt does not fit and still gets smaller."""


class Prepared(Struct, frozen=True, kw_only=True):
    """The state before the call, the messages to send, and the events and warnings to report."""

    state: State
    messages: tuple[Message, ...]
    events: tuple[Event, ...]
    warnings: tuple[UsageWarning, ...]
    thinking_stopped: bool = False
    """Thinking is disabled from this call until the next user message."""


class Recorded(Struct, frozen=True, kw_only=True):
    """The state after an answer, and the record of its turn."""

    state: State
    record: TurnRecord
    doubt: str = ""
    """Why the reported usage was not believed; empty if it was."""


# Before the call


def prepare(state: State, incoming: Incoming, setup: Setup, at: float) -> Steps[Prepared]:
    """Append the client's new messages, compact if the safety rules or the policy decide so, and return what to send."""
    # Arrival: the ledger gets what is new, and the view what the model in use can read.
    state = _with_known_instructions(drop_stale(sync_messages(state, incoming, setup, at)))
    state = replace_unreadable_block(state, setup, at)
    state = absorb_native_block(state, setup, at)
    if state.thinking_unbound_above is not None:
        state = strip_unbound(state, setup, at)
    state = measure_growth(state)
    limits = limits_for(state, setup)
    arrival = truncate_on_arrival(state, setup, at, limits)
    arrived = _with_missing_pins(arrival.state, setup, at)
    if arrived.ledger is not state.ledger:
        limits = limits_for(arrived, setup)

    # Context, candidates, decision, compaction, commit.
    acted = yield from _compact_until_it_fits(arrived, setup, at, limits)
    state = acted.state
    if state.ledger is not arrived.ledger:
        state = yield from _with_additions(_with_missing_pins(state, setup, at), setup, at)
        limits = limits_for(state, setup)

    # The request: messages that the provider accepts, and the call that is now under way.
    messages = made_legal(state.ledger.view.messages)
    point = setup.policy.acts_at(limits, setup.settings)
    levels = setup.settings.output.warning_levels
    due = warn(levels, state.warned, state.prompt, point.at, called=point.called)
    is_compacted = state.ledger.view.original_tokens != state.ledger.view.tokens
    thinking_off = is_compacted and is_thinking_refused(state)
    thinking_stopped = thinking_off and not state.thinking_off
    state = replace(
        state,
        sent_tokens=state.counted,
        warned=due.warned,
        policy=setup.policy.name,
        thinking_off=thinking_off,
    )
    return Prepared(
        state=begin_call(state, setup, at),
        messages=tuple(messages),
        events=(*arrival.events, *acted.events),
        warnings=due.warnings,
        thinking_stopped=thinking_stopped,
    )


def _with_known_instructions(state: State) -> State:
    """Return the state with the user's new instructions, if any are known that they might replace, or nothing was searched yet.

    Otherwise the view shows them where they were said, and they are searched before something removes that from it.
    """
    if state.instructions_read and not state.pins:
        return state
    from lowwater.core.turns.pins import with_instructions  # noqa: PLC0415 - loaded if there may be something to keep

    return with_instructions(state)


def _with_missing_pins(state: State, setup: Setup, at: float) -> State:
    """Return the state with a block at the end of its view for pins that it does not show, or shows though they were withdrawn."""
    if not (state.pins or any(map(is_pin_block, state.ledger.view.items))):
        return state
    from lowwater.core.turns.pins import with_missing_pins  # noqa: PLC0415 - loaded if something is pinned

    return with_missing_pins(state, setup, at)


def _compact_until_it_fits(state: State, setup: Setup, at: float, limits: Limits) -> Steps[Acted]:
    """Decide and act once; repeat while the prompt does not fit and still gets smaller. `limits` are those of `state`.

    A compaction may remove less than its plan promised, so one may not be enough.
    """
    events: tuple[Event, ...] = ()
    for _ in range(_MAX_COMPACTIONS):
        inputs = decision_context(state, setup, at, limits=None if events else limits)
        if events and inputs.now.fits:
            break
        acted = yield from _act(state, inputs, setup)
        has_shrunk = acted.state.prompt < state.prompt
        state, events = acted.state, (*events, *acted.events)
        if not has_shrunk:
            break
    return Acted(state=state, events=events)


def _act(state: State, inputs: DecisionInputs, setup: Setup, *, focus: str = "") -> Steps[Acted]:
    """Take a decision; carry it out and commit the outcome, or report why the view is left as it is."""
    inputs, decision = _decide(inputs, setup)
    now = inputs.now
    state = replace(
        state,
        candidates=now.candidates,
        recheck_backoff=next_recheck(state, inputs),
        newest_outside_tail=inputs.newest_outside_tail,
        prompt_layout=inputs.prompt_layout,
        rejected=(),
    )
    if not isinstance(decision, Compact):
        skip = Skip(at=now.at, because=decision.because, prompt=now.prompt)
        return Acted(state=replace(state, decision=decision), events=(skip,))
    from lowwater.core.turns.compact import compact  # noqa: PLC0415 - loaded at the first compaction

    acted = yield from compact(state, inputs, decision, setup, focus=focus)
    return replace(acted, state=drop_stale(acted.state))


def _decide(inputs: DecisionInputs, setup: Setup) -> tuple[DecisionInputs, Decision]:
    """Return the decision; the mechanisms, which take time, are asked only if their proposals could change it."""
    decision = decide(inputs.now, setup.settings, policy=setup.policy)
    if final_without_proposals(decision, inputs.now):
        return inputs, decision
    if has_nothing_to_propose(inputs):
        inputs = without_proposals(inputs)
    else:
        from lowwater.core.turns.candidates import with_proposals  # noqa: PLC0415 - loaded with the mechanisms

        inputs = with_proposals(inputs)
    return inputs, decide(inputs.now, setup.settings, policy=setup.policy)


# After the call


def record(state: State, response: Response, setup: Setup, at: float) -> Recorded:
    """Append the answer, and learn from the usage that the provider reported if it is plausible."""
    response = with_lifetime_asked_for(state, response)
    reported, response = response, believed(state, response)
    if reported.usage is not None:
        state = replace(state, doubted_prompt=largest_prompt(reported) if response.usage is None else 0)
    wire = response.message.wire
    if state.format is None and wire is not None:
        state = with_detected_format(state, wire.format)
    learned = finish_call(learn(state, response), response)
    return Recorded(
        state=append(learned, [response.message], setup, at),
        record=turn_record(state, response, at),
        doubt=response.doubt,
    )


def record_side_call(state: State, response: Response, at: float) -> Recorded:
    """Bill a call that is not part of the conversation: its answer is not appended, and the cache belief stays.

    A call of the conversation may be under way meanwhile; it is left alone.
    """
    response = believed(replace(state, call=None), response)
    totals = totals_with(replace(state, call=None), response)
    return Recorded(
        state=replace(state, totals=totals),
        record=side_call_record(state, response, at),
        doubt=response.doubt,
    )


def record_untouched(state: State, response: Response, setup: Setup, at: float) -> Recorded:
    """Append the answer to a request that was not the view's, and bill its call; nothing is learned from it."""
    done = record_side_call(state, response, at)
    return replace(done, state=append(done.state, [response.message], setup, at))


# On request


def compress(state: State, setup: Setup, at: float, *, focus: str = "", summary: str = "") -> Steps[Acted]:
    """Compact now, whatever the policy would decide; the summary keeps more detail about `focus`.

    With a `summary`, that text takes the place of the last summary in view, and nothing else changes.
    """
    inputs = decision_context(state, setup, at, forced=True)
    if summary:
        from lowwater.core.turns.own_summary import put_own_summary  # noqa: PLC0415 - loaded if there is one

        return put_own_summary(state, inputs, setup, summary)
    acted = yield from _act(state, inputs, setup, focus=focus)
    if acted.state.ledger is state.ledger:
        return acted
    return replace(acted, state=(yield from _with_additions(acted.state, setup, at)))


def _with_additions(state: State, setup: Setup, at: float) -> Steps[State]:
    """Return the state after a compaction with what hooks add to its view."""
    texts = yield Compacted(ledger=state.ledger)
    if not texts:
        return state
    from lowwater.core.turns.compact import with_additions  # noqa: PLC0415 - loaded at the first compaction

    return with_additions(state, texts, setup, at)


def dry_run(state: State, setup: Setup, at: float) -> State:
    """Return the state with the decision that would be taken now; nothing is carried out."""
    inputs, decision = _decide(decision_context(state, setup, at), setup)
    return replace(state, decision=decision, candidates=inputs.now.candidates, rejected=())
