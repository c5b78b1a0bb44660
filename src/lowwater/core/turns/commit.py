"""Committing a compaction: it becomes a ledger entry and an event, or, if the view did not get smaller, an event that says so."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Compact, DecisionContext, Fact, Past, Reason
from lowwater.core.entries import Compacted, Edit, PreambleChanged
from lowwater.core.events import Compaction, Phase, Skip
from lowwater.core.ledger import next_compaction_number
from lowwater.core.mechanisms.edits import edit
from lowwater.core.mechanisms.reasoning import strip_behind
from lowwater.core.mechanisms.registry import SUMMARIES
from lowwater.core.mechanisms.reuse import Experience
from lowwater.core.messages import Text
from lowwater.core.policies.safety_rules import after_compaction, after_failure, after_summary
from lowwater.core.turns.arrival import NOTE, with_note
from lowwater.core.turns.compaction import CompactionResult, CompactionWork
from lowwater.core.turns.costs import (
    both,
    cost_of_summaries,
    prompt_tokens_of,
    surcharge_with,
    with_price,
)
from lowwater.core.turns.pins import with_block
from lowwater.core.turns.state import Acted, Setup, State, SummarizerBackoff
from lowwater.core.turns.thinking import (
    drops_thinking,
    first_unbound,
    restore_opening_thinking,
    unbound_behind,
)
from lowwater.core.view import (
    Edited,
    Item,
    Original,
    first_difference,
    newest_number,
    shown_parts,
    tokens_of_items,
    view_items,
)


class _NewView(Struct, frozen=True, kw_only=True):
    """The view and system prompt that a compaction would leave."""

    items: Sequence[Item]
    system: bytes
    preamble_tokens: int
    first_changed: int
    has_system_note: bool
    unbound: int | None
    """Thinking in messages above this number is invalid but left in, because the provider is asked to drop it; None if there is none."""


def commit(
    state: State,
    result: CompactionResult,
    setup: Setup,
    *,
    work: CompactionWork,
    now: DecisionContext,
    decision: Compact,
    whatever_size: bool = False,
) -> Acted:
    """Append the compacted view to the ledger; if it is not smaller, only remember the attempt and its cost.

    `whatever_size` is for what the user wrote, which counts even if it is longer.
    """
    now = replace(now, past=_past_after(now.past, result, work))
    decision = replace(decision, because=actual_reason(decision.because, result, prompt=work.prompt))
    state = replace(
        state,
        summarizer_backoff=_backoff(state, result, now.at),
        decision=decision,
        rejected=result.rejected,
    )
    new_view = _new_view(state, result, work, setup)
    event = _event(state, result, work, new_view, decision.because)
    event = replace(event, cost=cost_of_summaries(state, setup, result.written, lost=result.lost, at=work.at))
    state = replace(state, totals=state.totals.paid(event.cost, for_summaries=True))
    if not whatever_size and (not result.changed or event.reclaimed <= 0):
        facts: dict[str, Fact] = {"prompt": now.prompt, "wanted": decision.because.code}
        skip = Skip(
            at=now.at,
            because=Reason(code="not-smaller", facts=facts),
            prompt=now.prompt,
            rejected=result.rejected,
            summary_prompts=event.summary_prompts,
        )
        state = replace(state, uncharged_summary_cost=both(state.uncharged_summary_cost, event.cost))
        return Acted(state=replace(state, past=after_compaction(now, decision, prompt=None)), events=(skip,))
    event = with_price(event, state, setup)
    surcharge = surcharge_with(state.compaction_surcharge, event)
    # Summaries that were prefetched or came to nothing are billed to the next compaction, but do not make the next call cost more.
    event = replace(
        event,
        cost=both(event.cost, state.uncharged_summary_cost),
        summary_prompts=event.summary_prompts + state.unreported_summary_prompts,
        rejected=(*state.unreported_rejections, *event.rejected),
    )
    ledger = state.ledger.append(
        Compacted(at=now.at, mechanisms=event.mechanisms, items=view_items(new_view.items))
    )
    view = ledger.view
    if new_view.system != view.system:
        preamble = PreambleChanged(
            at=now.at, system=new_view.system, tools=view.tools, tokens=new_view.preamble_tokens
        )
        ledger = ledger.append(preamble)
    committed = replace(
        state,
        ledger=ledger,
        past=after_compaction(now, decision, prompt=event.after),
        totals=state.totals.with_compaction(event, summaries=result.summaries),
        compaction_surcharge=surcharge,
        uncharged_summary_cost=0,
        unreported_summary_prompts=0,
        unreported_rejections=(),
        last_compaction=event,
        has_system_note=new_view.has_system_note,
        experience=_experience(state),
        thinking_unbound_above=new_view.unbound,
    )
    return Acted(state=committed, events=(event,))


def _experience(state: State) -> Experience:
    """Return the experience with the uses, since the last compaction, of what the view had removed by then."""
    from lowwater.core.mechanisms.experience import experienced  # noqa: PLC0415 - only compactions need it

    items, known = state.ledger.view.items, state.experience
    found = experienced(items, after=known.upto)
    return known.plus(found.expected, found.observed, upto=newest_number(items[-1]) if items else 0)


def actual_reason(because: Reason, result: CompactionResult, *, prompt: int) -> Reason:
    """Return the reason for what was done: if pruning was expected to suffice but did not, a summary followed it."""
    if because.code != "prune-suffices" or not result.summaries:
        return because
    removed = sum(phase.removed for phase in result.phases if phase.mechanism not in SUMMARIES)
    return Reason(code="prune-falls-short", facts={**because.facts, "pruned": max(0, prompt - removed)})


def _past_after(past: Past, result: CompactionResult, work: CompactionWork) -> Past:
    """Return the past with the summarizers' success or failure; a summary without a model says nothing about them."""
    if result.failed_at is not None:
        return after_failure(past, at=result.failed_at)
    return after_summary(past) if result.judged and work.ladder.rungs else past


def _backoff(state: State, result: CompactionResult, at: float) -> SummarizerBackoff:
    """Return where the ladder of summarizers begins after this compaction."""
    backoff = state.summarizer_backoff.at(at).after(low=result.low, now=at)
    return replace(backoff, no_block_since=at) if result.no_block else backoff


def _new_view(state: State, result: CompactionResult, work: CompactionWork, setup: Setup) -> _NewView:
    """Return the view with the note if one is due, and without thinking that was bound to a prefix that changed."""
    items, first, view = list(result.items), result.first_changed, state.ledger.view
    if result.summaries:
        items = with_block(state, items, setup, first=first)
        first = min(first, first_difference(work.request.items, items))
    system, tokens = view.system, view.preamble_tokens
    if setup.preset.note_in_system and not state.has_system_note:
        items, system = with_note_in_message(items, setup), with_note(system)
        tokens = setup.size_preamble(system, view.tools)
    adds_note = system != view.system or items[:1] != list(result.items[:1])
    first = 0 if adds_note else first
    unbound = state.thinking_unbound_above
    if state.binds_thinking:
        unbound_from = first if adds_note else first_unbound(work.request.items, items, first, state.model)
        if drops_thinking(state, setup):
            unbound = unbound_behind(items, unbound_from, unbound)
        else:
            items = strip_behind(items, unbound_from, work.context)
    items = restore_opening_thinking(items, state, work.context)
    return _NewView(
        items=items,
        system=system,
        preamble_tokens=tokens,
        first_changed=first,
        has_system_note=state.has_system_note or adds_note,
        unbound=unbound,
    )


def _event(
    state: State, result: CompactionResult, work: CompactionWork, new_view: _NewView, because: Reason
) -> Compaction:
    """Return the event that reports the compaction, without its cost."""
    left = new_view.preamble_tokens + tokens_of_items(new_view.items)
    after = work.size(new_view.items) + work.scaled(
        new_view.preamble_tokens - state.ledger.view.preamble_tokens
    )
    if after < 0:
        # The provider reports less than was counted: take the same share of what it reports.
        after = int(work.prompt * min(1.0, left / max(1, state.counted)))
    after = min(after, work.prompt)
    return Compaction(
        at=work.at,
        model=state.model.name,
        mode=result.mode,
        mechanisms=result.mechanisms,
        phases=_scaled_down(result.phases, work.prompt),
        number=next_compaction_number(state.ledger),
        because=because,
        before=work.prompt,
        after=after,
        items_before=len(work.request.items),
        items_after=len(new_view.items),
        first_changed=new_view.first_changed,
        disturbed=work.scaled(tokens_of_items(new_view.items[new_view.first_changed :])),
        summary_tokens=result.summary_tokens,
        summarizer=result.judged.written.by if result.judged else "",
        score=result.judged.verdict.score if result.judged else None,
        repaired_score=result.judged.verdict.repaired_score if result.judged else None,
        rejected=result.rejected,
        summary_prompts=prompt_tokens_of(result.written),
    )


def _scaled_down(phases: Sequence[Phase], prompt: int) -> tuple[Phase, ...]:
    """Return what each phase removed, scaled down if the counts add up to more than the prompt had."""
    total = sum(phase.removed for phase in phases)
    if total <= prompt:
        return tuple(phases)
    return tuple(replace(phase, removed=phase.removed * prompt // total) for phase in phases)


def with_note_in_message(items: Sequence[Item], setup: Setup) -> list[Item]:
    """Return the items with the note at the end of the system message that they begin with, if they do."""
    first = items[0] if items else None
    if not isinstance(first, Original | Edited) or first.message.role not in {"system", "developer"}:
        return list(items)
    texts = [(path, part) for path, part in shown_parts(first) if isinstance(part, Text)]
    if not texts:
        return list(items)
    path, part = texts[-1]
    noted = Text(text=f"{part.text}\n\n{NOTE}", extra=part.extra)
    return [edit(first, [Edit(path=path, by=noted)], setup.size), *items[1:]]
