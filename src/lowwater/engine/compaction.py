"""Carrying a decision out: step by step, strictly smaller or not at all."""

from collections.abc import Generator, Sequence

from msgspec.structs import replace

from lowwater.compact import shorten
from lowwater.engine.effects import Outcome, Summarize
from lowwater.engine.pruning import prune, squeeze
from lowwater.engine.replacing import REPLACING, WHOLE, longest_summary, replace_spans
from lowwater.engine.work import Result, Work, tokens_of
from lowwater.values.decision import Compact
from lowwater.values.proposal import Proposal


def carry_out(work: Work, decision: Compact) -> Generator[Summarize, Outcome, Result]:
    """Prune, see whether that is enough, and only then ask for a summary (docs/specification.md: C, D); squeeze what is still too large, where it must fit.

    Where no prune can be enough, what the summary will replace is left alone until there turns out to be none.
    """
    work = replace(work, asked=replace(work.asked, items=tuple(work.asked.items)))
    edits = [
        proposal
        for proposal in decision.proposals
        if proposal.mechanism not in REPLACING and proposal.mechanism != shorten.SQUEEZE
    ]
    spans = [proposal for proposal in decision.proposals if proposal.mechanism in REPLACING]
    least = _untouched(work, edits)
    waits = _can_wait(work, edits, spans, least=least, enough=decision.enough)
    result = prune(work, _outside(edits, spans) if waits else edits)
    if not (result.changed and work.size(result.items) <= decision.enough):
        result = yield from replace_spans(work, result, spans, enough=decision.enough)
    if waits and tokens_of(result.items) >= least:
        result = _smaller(result, prune(work, edits), at=work.at)
    if any(proposal.mechanism == shorten.SQUEEZE for proposal in decision.proposals):
        result = squeeze(work, result, fit=decision.fit)
    if tokens_of(result.items) < tokens_of(work.asked.items):
        return result
    return replace(
        Result(items=tuple(work.asked.items), failed_at=result.failed_at, low=result.low),
        written=result.written,
        lost=result.lost,
        rejected=result.rejected,
        no_block=result.no_block,
    )


def _untouched(work: Work, edits: Sequence[Proposal]) -> int:
    """Return the size, as counted, of the items that no edit touches: no prune leaves less."""
    items = work.asked.items
    touched = {target.item for proposal in edits for target in proposal.targets}
    return tokens_of(items) - sum(items[at].tokens for at in touched)


def _can_wait(
    work: Work, edits: Sequence[Proposal], spans: Sequence[Proposal], *, least: int, enough: int
) -> bool:
    """Return whether a summary of the middle is due however much the edits remove, and smaller than what they leave.

    Those outside of it must not depend on the others, as they do where a prune has to reclaim so much to count.
    """
    if not edits or [proposal.mechanism in WHOLE for proposal in spans] != [True]:
        return False
    if not (work.by_hand or work.at_wall) and _outside(edits, spans):
        return False
    span, items = spans[0].span, work.asked.items
    assert span is not None
    removed = tokens_of(items) - least
    left = tokens_of(items[span.start : span.stop]) - removed
    return work.prompt - work.scaled(removed) > enough and left > longest_summary(work, spans[0])


def _outside(edits: Sequence[Proposal], spans: Sequence[Proposal]) -> list[Proposal]:
    """Return what of the edits lies in no span."""
    replaced = [range(span.start, span.stop) for proposal in spans if (span := proposal.span)]
    outside: list[Proposal] = []
    for edit in edits:
        targets = tuple(
            target for target in edit.targets if not any(target.item in span for span in replaced)
        )
        if targets:
            outside.append(replace(edit, targets=targets))
    return outside


def _smaller(result: Result, pruned: Result, *, at: float) -> Result:
    """Return the smaller of what a summary and what a prune came to, with what was learned on the way."""
    if not pruned.changed or tokens_of(pruned.items) > tokens_of(result.items):
        return result
    failed_at = at if result.summaries and result.failed_at is None else result.failed_at
    return replace(
        pruned,
        failed_at=failed_at,
        low=result.low,
        written=result.written,
        lost=result.lost,
        rejected=result.rejected,
        no_block=result.no_block,
    )
