"""One compaction, in order: who writes the summary, carrying out the plan, committing the outcome, adding what hooks say."""

from collections.abc import Generator, Sequence

from msgspec.structs import replace

from lowwater.core.decisions import Compact, DecisionContext, scaled
from lowwater.core.entries import Compacted
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import native, summarize
from lowwater.core.mechanisms.mechanism import ProposalRequest, survey
from lowwater.core.messages import Message, Text
from lowwater.core.policies.safety_rules import cool_down_left
from lowwater.core.proposals import Proposal
from lowwater.core.turns.candidates import cost_of_summary, index_of
from lowwater.core.turns.commit import commit
from lowwater.core.turns.compaction import CompactionResult, CompactionWork, carry_out
from lowwater.core.turns.decision_context import DecisionInputs, native_rung
from lowwater.core.turns.effects import Announce, Steps, Summarize, SummaryOutcome
from lowwater.core.turns.pins import with_instructions
from lowwater.core.turns.pricing import pricing_for
from lowwater.core.turns.state import Acted, Ladder, Setup, State
from lowwater.core.view import Summary, view_items

_ADDED = "hooks"
"""The stored name under which the view keeps what hooks add to it."""


def compact(
    state: State, inputs: DecisionInputs, decision: Compact, setup: Setup, *, focus: str = ""
) -> Steps[Acted]:
    """Carry out a decision to compact, and commit the outcome; the summary keeps more detail about `focus`."""
    state = with_instructions(state)
    now, decision = inputs.now, prefer_native(decision, inputs, state, setup)
    work = CompactionWork(
        request=_with_break_even(inputs, state, setup),
        prompt=now.prompt,
        at=now.at,
        ladder=_ladder(state, setup, now, decision),
        prefetched_summary=inputs.prefetched_summary,
        focus=focus,
        system=state.ledger.view.system,
        by_hand=now.forced,
        at_wall=not now.fits,
    )
    yield Announce(ledger=state.ledger)
    result = yield from _with_ledger(carry_out(work, decision), state.ledger)
    return commit(state, result, setup, work=work, now=now, decision=decision)


def _with_break_even(inputs: DecisionInputs, state: State, setup: Setup) -> ProposalRequest:
    """Return what the mechanisms are given, with the chance from which on it pays to carry a name behind a summary."""
    pricing = inputs.pricing or pricing_for(state, setup, len(state.ledger.view.items), inputs.now.at)
    context = replace(inputs.request.context, break_even=pricing.break_even)
    return replace(inputs.request, context=context)


# Who writes the summary


def prefer_native(decision: Compact, inputs: DecisionInputs, state: State, setup: Setup) -> Compact:
    """Return the decision with its summary left to the provider, if that costs no more than any other way to get one.

    A plan that was chosen among the priced candidates was compared there already.
    """
    plan, candidates = decision.proposals, inputs.now.candidates
    at = next((at for at, step in enumerate(plan) if step.mechanism == summarize.NAME and step.calls), None)
    was_compared = candidates is not None and any(priced.plan == plan for priced in candidates.plans)
    if inputs.native is None or at is None or was_compared:
        return decision
    request, zones = inputs.request, survey(inputs.request).zones
    offer = native.propose_block(request, zones)
    pricing = inputs.pricing or pricing_for(state, setup, len(state.ledger.view.items), inputs.now.at)
    starts, expected = pricing.starts(), scaled(summarize.expected(request, zones), pricing.scale)
    native_cost = None if offer is None else cost_of_summary(offer, pricing, starts, summary=expected)
    other_cost = cost_of_summary(plan[at], pricing, starts, summary=expected)
    if offer is None or native_cost is None or (other_cost is not None and other_cost < native_cost):
        return decision
    return replace(decision, proposals=(*plan[:at], offer, *plan[at + 1 :]))


def _ladder(state: State, setup: Setup, now: DecisionContext, decision: Compact) -> Ladder:
    """Return the summarizers to ask, in order.

    None is asked once summaries have cost their share of the session, unless the compaction was requested by hand, and
    none during a cool-down, unless the prompt is at the wall, too.
    """
    ladder = order_ladder(
        setup.ladder(state.summarizer_backoff.at(now.at)), state, setup, decision.proposals, at=now.at
    )
    if now.forced and setup.may_send_to_summarizers(state):
        return ladder
    is_cooling = now.prompt < now.limits.wall and cool_down_left(now.past, now.at)
    return replace(ladder, rungs=0) if is_cooling or not setup.may_ask(state) else ladder


def order_ladder(
    ladder: Ladder, state: State, setup: Setup, plan: Sequence[Proposal], *, at: float
) -> Ladder:
    """Return the ladder with the cheapest summarizer first, and which of them should extend the cached request to save money."""
    spans = [step for step in plan if step.span is not None]
    if not spans or not any(setup.summary_models):
        return ladder
    pricing = pricing_for(state, setup, len(state.ledger.view.items), at)
    starts = pricing.starts()
    replaced = sum(starts[step.span.stop] - starts[step.span.start] for step in spans if step.span)
    removed = sum(scaled(step.removes, pricing.scale) + index_of(step, pricing) for step in spans)
    calls = pricing.summary_calls(replaced=replaced, summary=max(0, replaced - removed))
    cheapest = {rung: call for call, rung in reversed(calls)}
    order = dict.fromkeys([*(rung for _, rung in calls), *range(setup.rungs)])
    return replace(
        ladder,
        native=native_rung(state, setup, at),
        order=tuple(order),
        cached_prefix=frozenset(rung for rung, call in cheapest.items() if call.how == "warm"),
    )


# Requests for summaries


def _with_ledger(
    steps: Generator[Summarize, SummaryOutcome, CompactionResult], ledger: Ledger
) -> Generator[Summarize, SummaryOutcome, CompactionResult]:
    """Run the steps with the turn's ledger, which is not stored yet, added to every request for a summary."""
    try:
        effect = next(steps)
        while True:
            effect = steps.send((yield replace(effect, ledger=ledger)))
    except StopIteration as done:
        result: CompactionResult = done.value
        return result


# Hooks


def with_additions(state: State, texts: Sequence[str], setup: Setup, at: float) -> State:
    """Return the state with the hooks' texts in its view, in the user's role.

    They go to the end, or behind the last summary if the view ends with an answer; if it has no summary, they are dropped. They
    are part of the view and not of the history: the next summary covers them, and a rewind removes them.
    """
    items = list(state.ledger.view.items)
    place = len(items)
    if items and items[-1].message.role == "assistant":
        place = next((at for at in range(len(items), 0, -1) if isinstance(items[at - 1], Summary)), 0)
    if not place:
        return state
    added = []
    for text in texts:
        message = Message(role="user", parts=(Text(text=text),))
        added.append(Summary(message=message, tokens=setup.size(message), sources=(), depth=1))
    entry = Compacted(at=at, mechanisms=(_ADDED,), items=view_items([*items[:place], *added, *items[place:]]))
    return replace(state, ledger=state.ledger.append(entry))
