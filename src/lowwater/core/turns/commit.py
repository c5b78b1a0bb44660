"""Committing the outcome of a decision: a compaction becomes a ledger entry and an event, anything else an event that says why not."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.decisions import Compact, DecisionContext, Fact, Past, Reason
from lowwater.core.entries import Compacted, Edit, PreambleChanged
from lowwater.core.events import Compaction, Event, Phase, Skip
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms.editing import edit
from lowwater.core.mechanisms.reasoning import strip_behind
from lowwater.core.messages import Text
from lowwater.core.policies.history import after_compaction, after_failure, after_summary
from lowwater.core.turns.compaction import REPLACING, CompactionResult, CompactionWork, tokens_of
from lowwater.core.turns.costs import both, cost_of_summaries, prompt_tokens_of, with_price
from lowwater.core.turns.state import Setup, State, Totals
from lowwater.core.turns.summaries import SummarizerBackoff
from lowwater.core.turns.thinking import (
    drops_thinking,
    first_unbound,
    restore_opening_thinking,
    unbound_behind,
)
from lowwater.core.view import Edited, Item, Original, parts_of, view_items

NOTE = "Note: earlier turns of this conversation were compacted; a summary stands where they were."
"""What a policy with `note_in_system` appends to the system prompt, once."""
_NOTE_BLOCK = msgspec.json.encode({"type": "text", "text": NOTE})


class Acted(Struct, frozen=True, kw_only=True):
    """The state after a decision was carried out, and the events to report."""

    state: State
    events: tuple[Event, ...]

    @property
    def compaction(self) -> Compaction | None:
        """The compaction among the events, if there was one."""
        return next((event for event in self.events if isinstance(event, Compaction)), None)


class _NewView(Struct, frozen=True, kw_only=True):
    """The view and system prompt that a compaction would leave."""

    items: Sequence[Item]
    system: bytes
    preamble_tokens: int
    first_changed: int
    noted: bool
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
) -> Acted:
    """Append the compacted view to the ledger; if it is not smaller, only remember the attempt and its cost."""
    now = replace(now, past=_past_after(now.past, result, work))
    decision = replace(decision, because=actual_reason(decision.because, result, prompt=work.prompt))
    state = replace(
        state,
        standing=_backoff(state, result, now.at),
        decision=decision,
        rejected=result.rejected,
    )
    new_view = _new_view(state, result, work, setup)
    event = _event(state, result, work, new_view, decision.because)
    event = replace(event, cost=cost_of_summaries(state, result, setup, work))
    state = replace(state, totals=state.totals.paid(event.cost, for_summaries=True))
    if not result.changed or event.reclaimed <= 0:
        facts: dict[str, Fact] = {"prompt": now.prompt, "wanted": decision.because.code}
        skip = Skip(
            at=now.at,
            because=Reason(code="not-smaller", facts=facts),
            prompt=now.prompt,
            rejected=result.rejected,
            summary_prompts=event.summary_prompts,
        )
        state = replace(state, ahead=both(state.ahead, event.cost))
        return Acted(state=replace(state, past=after_compaction(now, decision, prompt=None)), events=(skip,))
    event = with_price(event, state, setup)
    bought = _with_surcharge(state.bought, event)
    # Summaries that were prefetched are billed to the compaction that uses them, but do not make the next call cost more.
    event = replace(
        event,
        cost=both(event.cost, state.ahead),
        summary_prompts=event.summary_prompts + state.ahead_prompts,
    )
    ledger = state.ledger.append(
        Compacted(at=now.at, mechanisms=event.mechanisms, stands=view_items(new_view.items))
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
        totals=totals_after(state.totals, event, summaries=result.summaries),
        bought=bought,
        ahead=0,
        ahead_prompts=0,
        last=event,
        noted=new_view.noted,
        unbound=new_view.unbound,
    )
    return Acted(state=committed, events=(event,))


def record_skip(state: State, because: Reason, now: DecisionContext) -> Acted:
    """Report why the view is left as it is."""
    return Acted(state=state, events=(Skip(at=now.at, because=because, prompt=now.prompt),))


def actual_reason(because: Reason, result: CompactionResult, *, prompt: int) -> Reason:
    """Return the reason for what was done: if pruning was expected to suffice but did not, a summary followed it."""
    if because.code != "prune-suffices" or not result.summaries:
        return because
    removed = sum(phase.removed for phase in result.phases if phase.mechanism not in REPLACING)
    return Reason(code="prune-falls-short", facts={**because.facts, "pruned": max(0, prompt - removed)})


def _past_after(past: Past, result: CompactionResult, work: CompactionWork) -> Past:
    """Return the past with the summarizers' success or failure; a summary without a model says nothing about them."""
    if result.failed_at is not None:
        return after_failure(past, at=result.failed_at)
    return after_summary(past) if result.judged and work.ladder.rungs else past


def _backoff(state: State, result: CompactionResult, at: float) -> SummarizerBackoff:
    """Return where the ladder of summarizers begins after this compaction."""
    backoff = state.standing.at(at).after(low=result.low, now=at)
    return replace(backoff, no_block_since=at) if result.no_block else backoff


def _new_view(state: State, result: CompactionResult, work: CompactionWork, setup: Setup) -> _NewView:
    """Return the view with the note if one is due, and without thinking that was bound to a prefix that changed."""
    items, view = list(result.items), state.ledger.view
    system, tokens = view.system, view.preamble_tokens
    if setup.preset.note_in_system and not state.noted:
        items, system = with_note_in_message(items, setup), with_note(system)
        tokens = setup.size_preamble(system, view.tools)
    adds_note = system != view.system or items[:1] != list(result.items[:1])
    first = 0 if adds_note else result.first_changed
    unbound = state.unbound
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
        noted=state.noted or adds_note,
        unbound=unbound,
    )


def _event(
    state: State, result: CompactionResult, work: CompactionWork, new_view: _NewView, because: Reason
) -> Compaction:
    """Return the event that reports the compaction, without its cost."""
    left = new_view.preamble_tokens + tokens_of(new_view.items)
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
        disturbed=work.scaled(tokens_of(new_view.items[new_view.first_changed :])),
        summary_tokens=result.summary_tokens,
        summarizer=result.judged.written.by if result.judged else "",
        score=result.judged.verdict.score if result.judged else None,
        rejected=result.rejected,
        summary_prompts=prompt_tokens_of(result.written),
    )


def _scaled_down(phases: Sequence[Phase], prompt: int) -> tuple[Phase, ...]:
    """Return what each phase removed, scaled down if the counts add up to more than the prompt had."""
    total = sum(phase.removed for phase in phases)
    if total <= prompt:
        return tuple(phases)
    return tuple(replace(phase, removed=phase.removed * prompt // total) for phase in phases)


def _with_surcharge(bought: int | None, event: Compaction) -> int | None:
    """Return by how much compactions make the next call more expensive, this one included; summaries are billed separately."""
    if bought is None or event.price is None or event.cost is None:
        return None
    return bought + event.price - event.cost


def totals_after(totals: Totals, event: Compaction, *, summaries: int) -> Totals:
    """Return the totals after one more compaction."""
    earliest = totals.earliest_changed
    return replace(
        totals,
        compactions=totals.compactions + 1,
        prunes=totals.prunes + (not summaries),
        summaries=totals.summaries + summaries,
        summary_tokens=totals.summary_tokens + event.summary_tokens,
        reclaimed=totals.reclaimed + event.reclaimed,
        earliest_changed=event.first_changed if earliest is None else min(earliest, event.first_changed),
    )


def next_compaction_number(ledger: Ledger) -> int:
    """Return the number of the next compaction; the checkpoint before it has the same number."""
    return 1 + sum(saved.kind == "compacted" for saved in ledger.saved)


# The note in the system prompt


def with_note(system: bytes) -> bytes:
    """Return a system prompt, as the JSON of a request, with the note at its end; an empty one stays empty."""
    if system[:1] == b'"':
        text = msgspec.json.decode(system, type=str)
        return msgspec.json.encode(f"{text}\n\n{NOTE}") if text and not text.endswith(NOTE) else system
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        is_there = any(bytes(block) == _NOTE_BLOCK for block in blocks)
        return msgspec.json.encode([*blocks, Raw(_NOTE_BLOCK)]) if blocks and not is_there else system
    return system


def without_note(system: bytes) -> bytes:
    """Return a system prompt without the note."""
    if system[:1] == b'"':
        return msgspec.json.encode(msgspec.json.decode(system, type=str).removesuffix(f"\n\n{NOTE}"))
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        return msgspec.json.encode([block for block in blocks if bytes(block) != _NOTE_BLOCK])
    return system


def with_note_in_message(items: Sequence[Item], setup: Setup) -> list[Item]:
    """Return the items with the note at the end of the system message that they begin with, if they do."""
    first = items[0] if items else None
    if not isinstance(first, Original | Edited) or first.message.role not in {"system", "developer"}:
        return list(items)
    texts = [(path, part) for path, part in parts_of(first) if isinstance(part, Text)]
    if not texts:
        return list(items)
    path, part = texts[-1]
    noted = Text(text=f"{part.text}\n\n{NOTE}", extra=part.extra)
    return [edit(first, [Edit(path=path, by=noted)], setup.size), *items[1:]]
