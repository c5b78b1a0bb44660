"""One turn, in order: what happens before a call and after it."""

from collections.abc import Generator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Response
from lowwater.core.decisions import Compact, Decision, DecisionContext
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Ledger
from lowwater.core.legality import made_legal
from lowwater.core.messages import Message
from lowwater.core.policies.safety import cool_down_left, decide, final_without_proposals
from lowwater.core.policies.warnings import UsageWarning, warn
from lowwater.core.turns.arrival import (
    Incoming,
    append,
    sync_messages,
    truncate_on_arrival,
    with_detected_format,
)
from lowwater.core.turns.cache import answered, calling
from lowwater.core.turns.commit import Acted, commit, keep
from lowwater.core.turns.compaction import CompactionResult, CompactionWork, carry_out
from lowwater.core.turns.costs import beside_record, turn_record
from lowwater.core.turns.decision_context import (
    DecisionInputs,
    arranged,
    decision_context,
    follow_native,
    limits_for,
    rested,
    tell_in_words,
    with_native,
    with_offers,
)
from lowwater.core.turns.effects import Announce, Outcome, Steps, Summarize
from lowwater.core.turns.learning import believed, largest_prompt, learn, measure_growth, totals_with
from lowwater.core.turns.prefetch import drop_stale
from lowwater.core.turns.state import Setup, State
from lowwater.core.turns.summaries import Ladder
from lowwater.core.turns.thinking import is_refused, strip_unbound

_MOST_ACTS = 4


class Prepared(Struct, frozen=True, kw_only=True):
    """The session after the decision, the messages to send, and what there is to tell."""

    state: State
    messages: tuple[Message, ...]
    events: tuple[Event, ...]
    warnings: tuple[UsageWarning, ...]
    thinking_stopped: bool = False
    """From this call on thinking is disabled, until the user says something."""


def prepare(state: State, incoming: Incoming, setup: Setup, at: float) -> Steps[Prepared]:
    """Take in what the client brings, compact if the policy says so, and return what to send."""
    state = drop_stale(sync_messages(state, incoming, setup, at))
    state = follow_native(tell_in_words(state, setup, at), setup, at)
    state = measure_growth(strip_unbound(state, setup, at))
    at_door = truncate_on_arrival(state, setup, at)
    acted = yield from _fit(at_door.state, setup, at)
    state = acted.state
    messages = made_legal(state.ledger.view.messages)
    levels = setup.settings.output.warning_levels
    point = setup.policy.acts_at(limits_for(state, setup), setup.settings)
    due = warn(levels, state.warned, state.prompt, point.at, called=point.called)
    off = state.ledger.view.whole != state.ledger.view.tokens and is_refused(state)
    stopped = off and not state.thinking_off
    state = replace(state, sent=state.counted, warned=due.warned, policy=setup.policy.name, thinking_off=off)
    state = calling(state, setup, at)
    return Prepared(
        state=state,
        messages=tuple(messages),
        events=(*at_door.events, *acted.events),
        warnings=due.warnings,
        thinking_stopped=stopped,
    )


class Recorded(Struct, frozen=True, kw_only=True):
    """The session after an answer, and what the turn was."""

    state: State
    record: TurnRecord
    doubt: str = ""
    """Why what the provider reported was not believed; empty if it was."""


def record(state: State, response: Response, setup: Setup, at: float) -> Recorded:
    """Learn from what the provider reported, as far as that can be believed, and append the answer."""
    said, response = response, believed(state, response)
    if said.usage is not None:
        state = replace(state, doubted=largest_prompt(said) if response.usage is None else 0)
    wire = response.message.wire
    if state.format is None and wire is not None:
        state = with_detected_format(state, wire.format)
    after = append(answered(learn(state, response), response), [response.message], setup, at)
    return Recorded(state=after, record=turn_record(state, response, at), doubt=response.doubt)


def record_side_call(state: State, response: Response, at: float) -> Recorded:
    """Bill a call that is no part of the conversation: it is not appended, and what is believed of the cache stays.

    The call under way, if there is one, is another.
    """
    response = believed(replace(state, call=None), response)
    billed = totals_with(replace(state, call=None), response)
    return Recorded(
        state=replace(state, totals=billed),
        record=beside_record(state, response, at),
        doubt=response.doubt,
    )


def compress(state: State, setup: Setup, at: float, *, focus: str = "") -> Steps[Acted]:
    """Compact by hand, whatever the policy thinks; `focus` is kept in more detail."""
    situated = decision_context(state, setup, at, forced=True)
    return (yield from _act(state, situated, setup, focus=focus))


def dry_run(state: State, setup: Setup, at: float) -> State:
    """Return the session with the decision that would be taken now; nothing is carried out."""
    situated, decision = _decided(decision_context(state, setup, at), setup)
    return replace(state, decision=decision, market=situated.now.market, rejected=())


def _fit(state: State, setup: Setup, at: float) -> Steps[Acted]:
    """Act, and again as long as what does not fit gets smaller: a plan may fall short of what it promised."""
    events: tuple[Event, ...] = ()
    for _ in range(_MOST_ACTS):
        situated = decision_context(state, setup, at)
        if events and situated.now.fits:
            break
        acted = yield from _act(state, situated, setup)
        shrank = acted.state.prompt < state.prompt
        state, events = acted.state, (*events, *acted.events)
        if not shrank:
            break
    return Acted(state=state, events=events)


def _act(state: State, situated: DecisionInputs, setup: Setup, *, focus: str = "") -> Steps[Acted]:
    """Decide, carry the decision out, and commit what came of it."""
    situated, decision = _decided(situated, setup)
    now = situated.now
    state = replace(
        state,
        market=now.market,
        rest=rested(state, situated),
        outside=situated.outside,
        laid=situated.laid,
        rejected=(),
    )
    if not isinstance(decision, Compact):
        return keep(replace(state, decision=decision), decision.because, now)
    decision = with_native(decision, situated, state, setup)
    work = CompactionWork(
        asked=situated.asked,
        prompt=now.prompt,
        at=now.at,
        ladder=_ladder(state, setup, now, decision),
        parked=situated.parked,
        focus=focus,
        by_hand=now.forced,
        at_wall=not now.fits,
    )
    yield Announce(ledger=state.ledger)
    result = yield from _telling(carry_out(work, decision), state.ledger)
    acted = commit(state, result, setup, work=work, now=now, decision=decision)
    return replace(acted, state=drop_stale(acted.state))


def _ladder(state: State, setup: Setup, now: DecisionContext, decision: Compact) -> Ladder:
    """Return who is asked for summaries; while they cool down nobody is, unless the prompt would not fit at all or a person asked."""
    ladder = arranged(setup.ladder(state.standing.at(now.at)), state, setup, decision.proposals, at=now.at)
    if now.forced or now.prompt >= now.limits.wall or not cool_down_left(now.past, now.at):
        return ladder
    return replace(ladder, rungs=0)


def _telling(
    steps: Generator[Summarize, Outcome, CompactionResult], ledger: Ledger
) -> Generator[Summarize, Outcome, CompactionResult]:
    """Carry the steps out, telling whoever is asked what the turn has made of the session so far."""
    try:
        effect = next(steps)
        while True:
            effect = steps.send((yield replace(effect, ledger=ledger)))
    except StopIteration as done:
        result: CompactionResult = done.value
        return result


def _decided(situated: DecisionInputs, setup: Setup) -> tuple[DecisionInputs, Decision]:
    """Decide, asking the mechanisms only if that can make a difference."""
    decision = decide(situated.now, setup.settings, policy=setup.policy)
    if final_without_proposals(decision, situated.now):
        return situated, decision
    situated = with_offers(situated)
    return situated, decide(situated.now, setup.settings, policy=setup.policy)
