"""Carrying a decision out: step by step, strictly smaller or not at all."""

from collections.abc import Generator

from lowwater.engine.effects import Outcome, Summarize
from lowwater.engine.pruning import prune
from lowwater.engine.replacing import REPLACING, replace_spans
from lowwater.engine.work import Result, Work, tokens_of
from lowwater.values.decision import Compact


def carry_out(work: Work, decision: Compact) -> Generator[Summarize, Outcome, Result]:
    """Prune, see whether that is enough, and only then ask for a summary (SPEC C, D)."""
    edits = [proposal for proposal in decision.proposals if proposal.mechanism not in REPLACING]
    spans = [proposal for proposal in decision.proposals if proposal.mechanism in REPLACING]
    result = prune(work, edits)
    if not (result.changed and work.size(result.items) <= decision.enough):
        result = yield from replace_spans(work, result, spans, enough=decision.enough)
    if tokens_of(result.items) < tokens_of(work.asked.items):
        return result
    return Result(items=tuple(work.asked.items), failed_at=result.failed_at, low=result.low)
