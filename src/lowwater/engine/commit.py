"""Writing the outcome of a decision into the session: a new entry, or why there is none."""

from collections.abc import Sequence

from msgspec.structs import replace

from lowwater.compact.reasoning import strip_behind
from lowwater.decide.outcome import after_compaction, after_failure, after_summary
from lowwater.engine.compaction import Result, Work
from lowwater.engine.state import State
from lowwater.values.decision import Compact, Fact, Reason
from lowwater.values.entries import Compacted
from lowwater.values.events import Compaction, Skip
from lowwater.values.situation import Past, Situation
from lowwater.values.view import Item, stands_of


def commit(state: State, result: Result, work: Work, now: Situation, decision: Compact) -> State:
    """Append what a compaction made of the view; if it made nothing of it, only the attempt is remembered."""
    past = replace(now, past=_after_summary(now.past, result, now.at))
    if not result.changed:
        facts: dict[str, Fact] = {"prompt": now.prompt, "wanted": decision.because.code}
        skip = Skip(at=now.at, because=Reason(code="not-smaller", facts=facts), prompt=now.prompt)
        after = after_compaction(past, decision, prompt=None)
        return replace(state, past=after, events=state.events.append(skip))
    items = result.items
    if state.model.binds_thinking:
        items = tuple(strip_behind(items, result.first_changed, work.making))
    event = _event(state, result, work, items, at=now.at, because=decision.because)
    totals = replace(
        state.totals,
        compactions=state.totals.compactions + 1,
        summaries=state.totals.summaries + (result.mode != "prune"),
        reclaimed=state.totals.reclaimed + event.reclaimed,
    )
    entry = Compacted(at=now.at, mechanisms=result.mechanisms, stands=stands_of(items))
    return replace(
        state,
        ledger=state.ledger.append(entry),
        past=after_compaction(past, decision, prompt=event.after),
        totals=totals,
        events=state.events.append(event),
    )


def give_up(state: State, because: Reason, now: Situation) -> State:
    """Remember why the view was left as it is."""
    return replace(state, events=state.events.append(Skip(at=now.at, because=because, prompt=now.prompt)))


def _event(
    state: State, result: Result, work: Work, items: Sequence[Item], *, at: float, because: Reason
) -> Compaction:
    written = result.judged.written if result.judged else None
    return Compaction(
        at=at,
        model=state.model.name,
        mode=result.mode,
        mechanisms=result.mechanisms,
        because=because,
        before=work.prompt,
        after=work.size(items),
        items_before=len(work.asked.items),
        items_after=len(items),
        first_changed=result.first_changed,
        disturbed=round(work.asked.scale * sum(item.tokens for item in items[result.first_changed :])),
        summary_tokens=work.making.tokenizer.count(written.text) if written else 0,
        summarizer=written.by if written else "",
        score=result.judged.verdict.score if result.judged else None,
    )


def _after_summary(past: Past, result: Result, at: float) -> Past:
    for _ in result.failures:
        past = after_failure(past, at=at)
    return after_summary(past) if result.judged and not result.failures else past
