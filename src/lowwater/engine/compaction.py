"""Carrying a decision out: step by step, strictly smaller or not at all."""

from collections.abc import Generator, Sequence
from itertools import cycle, islice

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact import condense, dedupe, elide, images, reasoning, shorten, summarize
from lowwater.compact.making import Making
from lowwater.compact.propose import EVERYTHING, Asked, propose, wall_limit
from lowwater.compact.spans import replace_span, request_for
from lowwater.engine.effects import FailureKind, Outcome, Summarize
from lowwater.engine.summaries import obtain
from lowwater.values.decision import Compact
from lowwater.values.events import Mode
from lowwater.values.proposal import Proposal
from lowwater.values.summaries import Judged
from lowwater.values.view import Item

_SPANS = frozenset({summarize.NAME, EVERYTHING, condense.LEAF, condense.CONDENSE})
_MOST_PASSES = 12


class Work(Struct, frozen=True, kw_only=True):
    """What a compaction works with."""

    asked: Asked
    prompt: int
    """The size of the prompt before it, in the model's tokens."""
    rungs: int
    focus: str = ""
    must: bool = False
    """It has to get smaller whatever it takes: at the wall, or asked for by hand."""

    @property
    def making(self) -> Making:
        """What the mechanisms need."""
        return self.asked.making

    def size(self, items: Sequence[Item]) -> int:
        """Return the size of the prompt with these items instead, in the model's tokens."""
        gone = _tokens(self.asked.items) - _tokens(items)
        return self.prompt - round(self.asked.scale * gone)


class Result(Struct, frozen=True, kw_only=True):
    """What came of it; `items` are as before if nothing was gained."""

    items: tuple[Item, ...]
    mechanisms: tuple[str, ...] = ()
    mode: Mode = "prune"
    first_changed: int = 0
    judged: Judged | None = None
    failures: tuple[FailureKind, ...] = ()

    @property
    def changed(self) -> bool:
        """The view got smaller."""
        return bool(self.mechanisms)


def carry_out(work: Work, decision: Compact) -> Generator[Summarize, Outcome, Result]:
    """Prune, see whether that is enough, and only then ask for a summary (SPEC C, D)."""
    edits = [proposal for proposal in decision.proposals if proposal.mechanism not in _SPANS]
    spans = [proposal for proposal in decision.proposals if proposal.mechanism in _SPANS]
    result = _pruned(work, edits)
    for step, planned in enumerate(_passes(spans, sweeping=decision.enough > 0)):
        if result.changed and work.size(result.items) <= decision.enough:
            break
        proposal = planned if step == 0 else _again(work, result.items, planned.mechanism)
        if proposal is not None:
            result = yield from _summarized(work, result, proposal)
    if _tokens(result.items) >= _tokens(work.asked.items):
        return Result(items=tuple(work.asked.items), failures=result.failures)
    return result


def _passes(spans: Sequence[Proposal], *, sweeping: bool) -> Sequence[Proposal]:
    """Return the summaries to make in turn; leaves and condensed ones again and again while there is an end to reach."""
    leafy = bool(spans) and all(
        proposal.mechanism in {condense.LEAF, condense.CONDENSE} for proposal in spans
    )
    return list(islice(cycle(spans), _MOST_PASSES)) if leafy and sweeping else spans


def _pruned(work: Work, proposals: Sequence[Proposal]) -> Result:
    """Make every edit, or none if together they reclaim too little to count."""
    items: list[Item] = list(work.asked.items)
    done: list[Proposal] = []
    for proposal in proposals:
        edited = _edit(work, items, proposal)
        if _tokens(edited) < _tokens(items):
            items, done = edited, [*done, proposal]
    reclaimed = work.prompt - work.size(items)
    if not done or (reclaimed < work.asked.limits.minimum_prune and not work.must):
        return Result(items=tuple(work.asked.items))
    return Result(
        items=tuple(items),
        mechanisms=tuple(proposal.mechanism for proposal in done),
        first_changed=_first_difference(work.asked.items, items),
    )


def _edit(work: Work, items: Sequence[Item], proposal: Proposal) -> list[Item]:
    match proposal.mechanism:
        case dedupe.NAME:
            return dedupe.apply(items, proposal, work.making)
        case images.NAME:
            return images.apply(items, proposal, work.making)
        case reasoning.NAME:
            return reasoning.apply(items, proposal, work.making)
        case shorten.NAME:
            limit = wall_limit(work.asked.limits, work.asked.scale)
            return shorten.apply(items, proposal, work.making, limit=limit)
        case elide.NAME:
            return elide.apply(items, proposal, work.making)
        case other:
            raise AssertionError(f"no mechanism is called {other}")


def _summarized(work: Work, before: Result, proposal: Proposal) -> Generator[Summarize, Outcome, Result]:
    """Replace a span by a summary of its originals; without one, what was reached so far stays."""
    span, items = proposal.span, before.items
    assert span is not None
    compression = work.asked.settings.compression
    budget = summarize.budget(
        work.asked.items[span.start : span.stop]
        if len(items) == len(work.asked.items)
        else items[span.start : span.stop],
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=work.asked.counted(work.asked.limits.summary),
    )
    leafy = proposal.mechanism in {condense.LEAF, condense.CONDENSE}
    most = work.asked.settings.leaf.leaf_target_tokens if leafy else budget
    replaced = sum(item.tokens for item in items[span.start : span.stop])
    request = request_for(items, span, max_tokens=most, focus=work.focus, recall=work.making.offers_recall)
    obtained = yield from obtain(
        request, replaces=replaced, rungs=work.rungs, must=work.must, tokenizer=work.making.tokenizer
    )
    failures = (*before.failures, *obtained.failures)
    if obtained.judged is None:
        return replace(before, failures=failures)
    depth = condense.depth_of(items, span) if proposal.mechanism == condense.CONDENSE else 1
    shorter = replace_span(items, span, obtained.judged.written.text, work.making, depth=depth)
    if _tokens(shorter) >= _tokens(items):
        return replace(before, failures=(*failures, "failed"))
    return Result(
        items=tuple(shorter),
        mechanisms=(*before.mechanisms, proposal.mechanism),
        mode="condense" if proposal.mechanism == condense.CONDENSE else "summary",
        first_changed=_first_difference(work.asked.items, shorter),
        judged=obtained.judged,
        failures=failures,
    )


def _again(work: Work, items: Sequence[Item], mechanism: str) -> Proposal | None:
    """Ask a mechanism anew: what was planned counted in items that are no longer there."""
    offers = propose(replace(work.asked, items=items))
    return next((proposal for proposal in offers.proposals if proposal.mechanism == mechanism), None)


def _first_difference(before: Sequence[Item], after: Sequence[Item]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (old, new) in pairs if old is not new), min(len(before), len(after)))


def _tokens(items: Sequence[Item]) -> int:
    return sum(item.tokens for item in items)
