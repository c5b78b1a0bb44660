"""Writing the outcome of a decision into the session: a new entry, or why there is none."""

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
from lowwater.core.turns.costs import both, cost_of_summaries, priced, prompts_of
from lowwater.core.turns.state import Setup, State, Totals
from lowwater.core.turns.summaries import SummarizerBackoff
from lowwater.core.turns.thinking import drops_thinking, loose_from, unbound_behind, with_opening
from lowwater.core.view import Edited, Item, Original, parts_of, view_items

NOTE = "Note: earlier turns of this conversation were compacted; a summary stands where they were."
_BLOCK = msgspec.json.encode({"type": "text", "text": NOTE})


def with_note(system: bytes) -> bytes:
    """Return a system prompt, JSON as a request carries it, with the note once at its end; without one there is none."""
    if system[:1] == b'"':
        text = msgspec.json.decode(system, type=str)
        return msgspec.json.encode(f"{text}\n\n{NOTE}") if text and not text.endswith(NOTE) else system
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        is_there = any(bytes(block) == _BLOCK for block in blocks)
        return msgspec.json.encode([*blocks, Raw(_BLOCK)]) if blocks and not is_there else system
    return system


def without_note(system: bytes) -> bytes:
    """Return a system prompt as it was before the note."""
    if system[:1] == b'"':
        return msgspec.json.encode(msgspec.json.decode(system, type=str).removesuffix(f"\n\n{NOTE}"))
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        return msgspec.json.encode([block for block in blocks if bytes(block) != _BLOCK])
    return system


def note_in_message(items: Sequence[Item], setup: Setup) -> list[Item]:
    """Return the items with the note at the end of the system message that leads them, if one does."""
    first = items[0] if items else None
    if not isinstance(first, Original | Edited) or first.message.role not in {"system", "developer"}:
        return list(items)
    texts = [(path, part) for path, part in parts_of(first) if isinstance(part, Text)]
    if not texts:
        return list(items)
    path, part = texts[-1]
    noted = Text(text=f"{part.text}\n\n{NOTE}", extra=part.extra)
    return [edit(first, [Edit(path=path, by=noted)], setup.size), *items[1:]]


class Acted(Struct, frozen=True, kw_only=True):
    """The session after a decision was carried out, and what there is to tell."""

    state: State
    events: tuple[Event, ...]

    @property
    def compaction(self) -> Compaction | None:
        """The compaction among the events, if there was one."""
        return next((event for event in self.events if isinstance(event, Compaction)), None)


class _Outcome(Struct, frozen=True, kw_only=True):
    """The view and system prompt that a compaction would leave."""

    items: Sequence[Item]
    system: bytes
    preamble_tokens: int
    first_changed: int
    noted: bool
    unbound: int | None
    """Thinking in messages with a higher number is left in although its model refuses it: the provider drops it."""


def commit(
    state: State,
    result: CompactionResult,
    setup: Setup,
    *,
    work: CompactionWork,
    now: DecisionContext,
    decision: Compact,
) -> Acted:
    """Append what a compaction made of the view; if that is not smaller, only the attempt is remembered."""
    now = replace(now, past=_after_summaries(now.past, result, work))
    decision = replace(decision, because=as_it_came(decision.because, result, prompt=work.prompt))
    state = replace(
        state,
        standing=_standing(state, result, now.at),
        decision=decision,
        rejected=result.rejected,
    )
    outcome = _outcome(state, result, work, setup)
    event = _event(state, result, work, outcome, decision.because)
    event = replace(event, cost=cost_of_summaries(state, result, setup, work))
    state = replace(state, totals=state.totals.paid(event.cost, for_summaries=True))
    if not result.changed or event.reclaimed <= 0:
        facts: dict[str, Fact] = {"prompt": now.prompt, "wanted": decision.because.code}
        given_up = Reason(code="not-smaller", facts=facts)
        skip = Skip(
            at=now.at,
            because=given_up,
            prompt=now.prompt,
            rejected=result.rejected,
            summary_prompts=event.summary_prompts,
        )
        state = replace(state, ahead=both(state.ahead, event.cost))
        return Acted(state=replace(state, past=after_compaction(now, decision, prompt=None)), events=(skip,))
    event = priced(event, state, setup)
    bought = _more(state.bought, event)
    # What was written ahead was paid then and made nothing dearer now; the bill of what it came to has it all the same.
    event = replace(
        event,
        cost=both(event.cost, state.ahead),
        summary_prompts=event.summary_prompts + state.ahead_prompts,
    )
    ledger = state.ledger.append(
        Compacted(at=now.at, mechanisms=event.mechanisms, stands=view_items(outcome.items))
    )
    view = ledger.view
    if outcome.system != view.system:
        preamble = PreambleChanged(
            at=now.at, system=outcome.system, tools=view.tools, tokens=outcome.preamble_tokens
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
        noted=outcome.noted,
        unbound=outcome.unbound,
    )
    return Acted(state=committed, events=(event,))


def as_it_came(because: Reason, result: CompactionResult, *, prompt: int) -> Reason:
    """Return the reason for what was done: a prune that was to suffice and fell short had a summary follow it."""
    if because.code != "prune-suffices" or not result.summaries:
        return because
    removed = sum(phase.removed for phase in result.phases if phase.mechanism not in REPLACING)
    return Reason(code="prune-falls-short", facts={**because.facts, "pruned": max(0, prompt - removed)})


def _standing(state: State, result: CompactionResult, at: float) -> SummarizerBackoff:
    standing = state.standing.at(at).after(low=result.low, now=at)
    return replace(standing, no_block_since=at) if result.no_block else standing


def _more(bought: int | None, event: Compaction) -> int | None:
    """Return what the next call costs more with this compaction too; its summaries are billed apart."""
    if bought is None or event.price is None or event.cost is None:
        return None
    return bought + event.price - event.cost


def keep(state: State, because: Reason, now: DecisionContext) -> Acted:
    """Remember why the view was left as it is."""
    return Acted(state=state, events=(Skip(at=now.at, because=because, prompt=now.prompt),))


def next_number(ledger: Ledger) -> int:
    """Return the number of the next compaction; the checkpoint before it is called by the same."""
    return 1 + sum(saved.kind == "compacted" for saved in ledger.saved)


def totals_after(totals: Totals, event: Compaction, *, summaries: int) -> Totals:
    """Return a session's totals after one more compaction."""
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


def _outcome(state: State, result: CompactionResult, work: CompactionWork, setup: Setup) -> _Outcome:
    """Return the view with the note where one is due, and without thinking that stands behind what changed."""
    items, view = list(result.items), state.ledger.view
    system, tokens = view.system, view.preamble_tokens
    if setup.preset.note_in_system and not state.noted:
        items, system = note_in_message(items, setup), with_note(system)
        tokens = setup.size_preamble(system, view.tools)
    noting = system != view.system or items[:1] != list(result.items[:1])
    first = 0 if noting else result.first_changed
    unbound = state.unbound
    if state.binds_thinking:
        loose = first if noting else loose_from(work.asked.items, items, first, state.model)
        if drops_thinking(state, setup):
            unbound = unbound_behind(items, loose, unbound)
        else:
            items = strip_behind(items, loose, work.making)
    items = with_opening(items, state, work.making)
    return _Outcome(
        items=items,
        system=system,
        preamble_tokens=tokens,
        first_changed=first,
        noted=state.noted or noting,
        unbound=unbound,
    )


def _event(
    state: State, result: CompactionResult, work: CompactionWork, outcome: _Outcome, because: Reason
) -> Compaction:
    left = outcome.preamble_tokens + tokens_of(outcome.items)
    after = work.size(outcome.items) + work.scaled(
        outcome.preamble_tokens - state.ledger.view.preamble_tokens
    )
    if after < 0:
        # A provider that reports less than was counted: what is left is the same share of what it reports.
        after = int(work.prompt * min(1.0, left / max(1, state.counted)))
    after = min(after, work.prompt)
    return Compaction(
        at=work.at,
        model=state.model.name,
        mode=result.mode,
        mechanisms=result.mechanisms,
        phases=_within(result.phases, work.prompt),
        number=next_number(state.ledger),
        because=because,
        before=work.prompt,
        after=after,
        items_before=len(work.asked.items),
        items_after=len(outcome.items),
        first_changed=outcome.first_changed,
        disturbed=work.scaled(tokens_of(outcome.items[outcome.first_changed :])),
        summary_tokens=result.summary_tokens,
        summarizer=result.judged.written.by if result.judged else "",
        score=result.judged.verdict.score if result.judged else None,
        rejected=result.rejected,
        summary_prompts=prompts_of(result.written),
    )


def _within(phases: Sequence[Phase], prompt: int) -> tuple[Phase, ...]:
    """Return what each phase removed, in proportion where together that was counted as more than the prompt had."""
    together = sum(phase.removed for phase in phases)
    if together <= prompt:
        return tuple(phases)
    return tuple(replace(phase, removed=phase.removed * prompt // together) for phase in phases)


def _after_summaries(past: Past, result: CompactionResult, work: CompactionWork) -> Past:
    """Return the past after what the summarizers did; what was written without asking one says nothing about them."""
    if result.failed_at is not None:
        return after_failure(past, at=result.failed_at)
    return after_summary(past) if result.judged and work.ladder.rungs else past
