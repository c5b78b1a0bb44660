"""Carrying out what takes a summary: spans of the view, each replaced by a text that stands for it."""

from collections.abc import Generator, Sequence

from msgspec.structs import replace

from lowwater.compact import condense, native, summarize
from lowwater.compact.propose import EVERYTHING, propose
from lowwater.compact.spans import numbers_in, replace_span, request_for
from lowwater.engine.asking_natively import UNREACHABLE, ask_for_block
from lowwater.engine.effects import Outcome, Summarize
from lowwater.engine.summaries import OVERSHOOT, Need, Obtained, need_for, obtain
from lowwater.engine.work import Result, Work, first_difference, tokens_of
from lowwater.values.groups import Span
from lowwater.values.proposal import Proposal
from lowwater.values.summaries import Judged, SummaryRequest
from lowwater.values.view import Item

_PASSES = frozenset({condense.LEAF, condense.CONDENSE})
WHOLE = frozenset({summarize.NAME, EVERYTHING, native.NAME})
"""The mechanisms that replace everything between head and tail."""
REPLACING = _PASSES | WHOLE
"""The mechanisms that replace whole messages."""
_MOST_PASSES = 12


def replace_spans(
    work: Work, result: Result, planned: Sequence[Proposal], *, enough: int
) -> Generator[Summarize, Outcome, Result]:
    """Replace spans by summaries, as planned; where there is an end to reach, passes are repeated until it is.

    A plan counts in items that are no longer there once a span was replaced, so all but the first are asked for anew.
    """
    sweeping = enough > 0 and all(proposal.mechanism in _PASSES for proposal in planned)
    passes = fruitless = 0
    while planned and fruitless < len(planned) and passes < (_MOST_PASSES if sweeping else len(planned)):
        mechanism = planned[passes % len(planned)].mechanism
        proposal = planned[0] if passes == 0 else _again(work, result.items, mechanism)
        before = result
        if proposal is not None:
            result = yield from _summarized(work, result, proposal)
        if result.changed and work.size(result.items) <= enough:
            break
        passes, fruitless = passes + 1, 0 if result.summaries > before.summaries else fruitless + 1
    return result


def _summarized(work: Work, before: Result, proposal: Proposal) -> Generator[Summarize, Outcome, Result]:
    """Replace a span by a summary of its originals; without one, what was reached so far stays.

    Summarizers that failed in this event are not asked again, and none is where what it would write is parked.
    """
    if proposal.mechanism == native.NAME:
        return (yield from _natively(work, before, proposal))
    span, items = proposal.span, before.items
    assert span is not None
    making = work.making
    parked = work.parked if proposal.mechanism in WHOLE else None
    request = _request(work, items, proposal)
    if parked is not None and parked.answers(request):
        obtained = Obtained(judged=parked.judged)
    else:
        ladder = work.ladder if before.failed_at is None else replace(work.ladder, rungs=0)
        obtained = yield from obtain(need_of(work, items, proposal), ladder, at=work.at)
    before = _billed(before, obtained)
    failed_at = before.failed_at if obtained.failed_at is None else obtained.failed_at
    low = before.low if obtained.low is None else obtained.low
    if obtained.judged is None:
        return replace(before, failed_at=failed_at, low=low)
    text = obtained.judged.written.text
    depth = condense.depth_of(items, span) if proposal.mechanism == condense.CONDENSE else 1
    shorter = replace_span(items, span, text, making, depth=depth)
    if tokens_of(shorter) >= tokens_of(items):
        return replace(before, failed_at=work.at if failed_at is None else failed_at, low=low)
    return replace(_shortened(work, before, proposal, shorter, obtained.judged), failed_at=failed_at, low=low)


def _natively(work: Work, before: Result, proposal: Proposal) -> Generator[Summarize, Outcome, Result]:
    """Have the provider replace a span by a block of its own; without one that may stand, a summary is asked for as usual.

    What it is shown is the view as it stands, not what the edits before made of it: that is cached, and whole.
    """
    span, ladder = proposal.span, work.ladder
    assert span is not None
    if ladder.native is not None and before.failed_at is None:
        need = need_of(work, work.asked.items, proposal)
        obtained = yield from ask_for_block(need, ladder, upto=span.stop, size=work.making.size)
        before = _billed(before, obtained)
        if obtained.judged is not None:
            shorter = native.put_block(before.items, span, obtained.judged.written.block, work.making)
            if tokens_of(shorter) < tokens_of(before.items):
                return _shortened(work, before, proposal, shorter, obtained.judged)
        before = replace(before, no_block=True)
        if any(rejected.code in UNREACHABLE for rejected in obtained.rejected):
            work = replace(work, ladder=ladder.without(ladder.native))
            before = before if work.ladder.asked else replace(before, failed_at=obtained.failed_at)
    instead = _again(work, before.items, summarize.NAME)
    return before if instead is None else (yield from _summarized(work, before, instead))


def _billed(before: Result, obtained: Obtained) -> Result:
    """Return what was reached so far with what asking cost and what was refused."""
    return replace(
        before,
        written=(*before.written, *obtained.written),
        lost=before.lost or obtained.lost,
        rejected=(*before.rejected, *obtained.rejected),
    )


def _shortened(
    work: Work, before: Result, proposal: Proposal, shorter: Sequence[Item], judged: Judged
) -> Result:
    """Return what was reached once a summary stands in place of a span."""
    return Result(
        items=tuple(shorter),
        phases=(*before.phases, work.phase(proposal.mechanism, before.items, shorter)),
        mode="condense" if proposal.mechanism == condense.CONDENSE else "summary",
        first_changed=first_difference(work.asked.items, shorter),
        judged=judged,
        summaries=before.summaries + 1,
        summary_tokens=before.summary_tokens + work.making.tokenizer.count(judged.written.text),
        written=before.written,
        lost=before.lost,
        rejected=before.rejected,
        no_block=before.no_block,
    )


def need_of(work: Work, items: Sequence[Item], proposal: Proposal) -> Need:
    """Return the summary that a proposal needs to be carried out on these items."""
    span = proposal.span
    assert span is not None
    return need_for(
        _request(work, items, proposal),
        replaces=tokens_of(items[span.start : span.stop]),
        tokenizer=work.making.tokenizer,
        must=work.at_wall,
        handles=numbers_in(items[span.start : span.stop]),
    )


def longest_summary(work: Work, proposal: Proposal) -> float:
    """Return how many tokens a summary has at most that is accepted for what this would replace."""
    assert proposal.span is not None
    return OVERSHOOT * _budget(work, work.asked.items, proposal.span, proposal.mechanism)


def _request(work: Work, items: Sequence[Item], proposal: Proposal) -> SummaryRequest:
    span = proposal.span
    assert span is not None
    return request_for(
        items,
        span,
        max_tokens=_budget(work, items, span, proposal.mechanism),
        focus=work.focus,
        recall=work.making.offers_recall,
        redact=work.making.redact,
    )


def _budget(work: Work, items: Sequence[Item], span: Span, mechanism: str) -> int:
    """Return how long a summary may be: sized by the originals for the middle, fixed for a pass."""
    if mechanism in _PASSES:
        return work.asked.settings.leaf.leaf_target_tokens
    compression = work.asked.settings.compression
    whole = work.asked.items if len(items) == len(work.asked.items) else items
    return summarize.budget(
        whole[span.start : span.stop],
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=work.asked.counted(work.asked.limits.summary),
    )


def _again(work: Work, items: Sequence[Item], mechanism: str) -> Proposal | None:
    """Ask a mechanism anew."""
    offers = propose(replace(work.asked, items=items))
    return next((proposal for proposal in offers.proposals if proposal.mechanism == mechanism), None)
