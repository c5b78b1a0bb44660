"""Carrying out a decision: prune, see whether that is enough, and only then summarise."""

from collections.abc import Generator, Sequence
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Compact, scaled
from lowwater.core.events import Mode, Phase, Rejected
from lowwater.core.groups import Span
from lowwater.core.mechanisms import condense, dedupe, elide, images, native, reasoning, summarize, truncate
from lowwater.core.mechanisms.editing import EditContext
from lowwater.core.mechanisms.registry import EVERYTHING, ProposalRequest, applied, propose, wall_limit
from lowwater.core.mechanisms.spans import numbers_in, replace_span, request_for
from lowwater.core.proposals import Proposal
from lowwater.core.summary.request import Judged, SummaryRequest, Written
from lowwater.core.turns.effects import Outcome, Summarize
from lowwater.core.turns.state import PrefetchedSummary
from lowwater.core.turns.summaries import (
    OVERSHOOT,
    UNREACHABLE,
    Ladder,
    Need,
    Obtained,
    ask_for_block,
    need_for,
    obtain,
)
from lowwater.core.view import Item


class CompactionWork(Struct, frozen=True, kw_only=True):
    """What a compaction works with."""

    asked: ProposalRequest
    prompt: int
    """The size of the prompt before it, in the model's tokens."""
    at: float
    ladder: Ladder = Ladder()
    parked: PrefetchedSummary | None = None
    """A summary that stands ready and may be published now."""
    focus: str = ""
    by_hand: bool = False
    at_wall: bool = False
    """It has to fit, whatever it takes."""

    @property
    def making(self) -> EditContext:
        """What the mechanisms need."""
        return self.asked.making

    def size(self, items: Sequence[Item]) -> int:
        """Return the size of the prompt with these items instead, in the model's tokens."""
        return self.prompt - self.scaled(tokens_of(self.asked.items) - tokens_of(items))

    def scaled(self, counted: int) -> int:
        """Return counted tokens as the model's."""
        return scaled(counted, self.asked.scale)

    def phase(self, mechanism: str, before: Sequence[Item], after: Sequence[Item]) -> Phase:
        """Return what a mechanism did."""
        return Phase(mechanism=mechanism, removed=self.scaled(tokens_of(before) - tokens_of(after)))


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What came of it; `items` are as before if nothing was gained."""

    items: tuple[Item, ...]
    phases: tuple[Phase, ...] = ()
    mode: Mode = "prune"
    first_changed: int = 0
    judged: Judged | None = None
    """The last summary of those that were made."""
    summaries: int = 0
    summary_tokens: int = 0
    failed_at: float | None = None
    """When the summarizers failed; None if they did not, or none was asked."""
    low: bool | None = None
    """Whether the first summarizer's last answer missed too much."""
    written: tuple[Written, ...] = ()
    """Everything that models wrote for it, used or not: all of it was billed."""
    lost: bool = False
    """Whether a call failed that may have been billed all the same."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as they were."""
    no_block: bool = False
    """Whether a provider was asked to compact by itself and gave nothing that was of use."""

    @property
    def changed(self) -> bool:
        """The view got smaller."""
        return bool(self.phases)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that made it so, each once."""
        return tuple(dict.fromkeys(phase.mechanism for phase in self.phases))


def first_difference(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return the index of the first item that is not the same."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (old, new) in pairs if old is not new), min(len(before), len(after)))


def tokens_of(items: Sequence[Item]) -> int:
    """Return the size of these items, as counted."""
    return sum([item.tokens for item in items])


_LEAST_SCALE = 0.1


def prune(work: CompactionWork, proposals: Sequence[Proposal]) -> CompactionResult:
    """Make every edit, or none if together they reclaim too little to count."""
    if not proposals:
        return CompactionResult(items=tuple(work.asked.items))
    items: list[Item] = list(work.asked.items)
    done: list[Phase] = []
    for proposal in proposals:
        edited = _edit(work, items, proposal)
        if tokens_of(edited) < tokens_of(items):
            done.append(work.phase(proposal.mechanism, items, edited))
            items = edited
    counts = work.prompt - work.size(items) >= work.asked.limits.minimum_prune
    if not done or not (counts or work.by_hand or work.at_wall):
        return CompactionResult(items=tuple(work.asked.items))
    return CompactionResult(
        items=tuple(items),
        phases=tuple(done),
        first_changed=first_difference(work.asked.items, items),
    )


def squeeze(work: CompactionWork, result: CompactionResult, *, fit: int) -> CompactionResult:
    """Shorten whatever is left but the users' words until the prompt has at most `fit` tokens; none, if it has no more already."""
    over = work.size(result.items) - fit
    if over <= 0:
        return result
    tokens = tokens_of(result.items) - max(1, ceil(over / max(work.asked.scale, _LEAST_SCALE)))
    items = truncate.squeeze(result.items, work.making, tokens=tokens)
    if tokens_of(items) >= tokens_of(result.items):
        return result
    return replace(
        result,
        items=tuple(items),
        phases=(*result.phases, work.phase(truncate.SQUEEZE, result.items, items)),
        first_changed=first_difference(work.asked.items, items),
    )


def _edit(work: CompactionWork, items: Sequence[Item], proposal: Proposal) -> list[Item]:
    match proposal.mechanism:
        case dedupe.NAME:
            return dedupe.apply(items, proposal, work.making)
        case images.NAME:
            return images.apply(items, proposal, work.making)
        case reasoning.NAME:
            return reasoning.apply(items, proposal, work.making)
        case truncate.NAME:
            limit = wall_limit(work.asked.limits, work.asked.scale)
            return truncate.apply(items, proposal, work.making, limit=limit)
        case elide.NAME:
            return elide.apply(items, proposal, work.making)
        case name:
            theirs = next(mechanism for mechanism in work.asked.mechanisms if mechanism.name == name)
            return applied(theirs, items, proposal, work.making)


_PASSES = frozenset({condense.LEAF, condense.CONDENSE})
WHOLE = frozenset({summarize.NAME, EVERYTHING, native.NAME})
"""The mechanisms that replace everything between head and tail."""
REPLACING = _PASSES | WHOLE
"""The mechanisms that replace whole messages."""
_MOST_PASSES = 12


def replace_spans(
    work: CompactionWork, result: CompactionResult, planned: Sequence[Proposal], *, enough: int
) -> Generator[Summarize, Outcome, CompactionResult]:
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


def _summarized(
    work: CompactionWork, before: CompactionResult, proposal: Proposal
) -> Generator[Summarize, Outcome, CompactionResult]:
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


def _natively(
    work: CompactionWork, before: CompactionResult, proposal: Proposal
) -> Generator[Summarize, Outcome, CompactionResult]:
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


def _billed(before: CompactionResult, obtained: Obtained) -> CompactionResult:
    """Return what was reached so far with what asking cost and what was refused."""
    return replace(
        before,
        written=(*before.written, *obtained.written),
        lost=before.lost or obtained.lost,
        rejected=(*before.rejected, *obtained.rejected),
    )


def _shortened(
    work: CompactionWork,
    before: CompactionResult,
    proposal: Proposal,
    shorter: Sequence[Item],
    judged: Judged,
) -> CompactionResult:
    """Return what was reached once a summary stands in place of a span."""
    return CompactionResult(
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


def need_of(work: CompactionWork, items: Sequence[Item], proposal: Proposal) -> Need:
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


def longest_summary(work: CompactionWork, proposal: Proposal) -> float:
    """Return how many tokens a summary has at most that is accepted for what this would replace."""
    assert proposal.span is not None
    return OVERSHOOT * _budget(work, work.asked.items, proposal.span, proposal.mechanism)


def _request(work: CompactionWork, items: Sequence[Item], proposal: Proposal) -> SummaryRequest:
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


def _budget(work: CompactionWork, items: Sequence[Item], span: Span, mechanism: str) -> int:
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


def _again(work: CompactionWork, items: Sequence[Item], mechanism: str) -> Proposal | None:
    """Ask a mechanism anew."""
    offers = propose(replace(work.asked, items=items))
    return next((proposal for proposal in offers.proposals if proposal.mechanism == mechanism), None)


def carry_out(work: CompactionWork, decision: Compact) -> Generator[Summarize, Outcome, CompactionResult]:
    """Prune, see whether that is enough, and only then ask for a summary (docs/specification.md: C, D); squeeze what is still too large, where it must fit.

    Where no prune can be enough, what the summary will replace is left alone until there turns out to be none.
    """
    work = replace(work, asked=replace(work.asked, items=tuple(work.asked.items)))
    edits = [
        proposal
        for proposal in decision.proposals
        if proposal.mechanism not in REPLACING and proposal.mechanism != truncate.SQUEEZE
    ]
    spans = [proposal for proposal in decision.proposals if proposal.mechanism in REPLACING]
    least = _untouched(work, edits)
    waits = _can_wait(work, edits, spans, least=least, enough=decision.enough)
    result = prune(work, _outside(edits, spans) if waits else edits)
    if not (result.changed and work.size(result.items) <= decision.enough):
        result = yield from replace_spans(work, result, spans, enough=decision.enough)
    if waits and tokens_of(result.items) >= least:
        result = _smaller(result, prune(work, edits), at=work.at)
    if any(proposal.mechanism == truncate.SQUEEZE for proposal in decision.proposals):
        result = squeeze(work, result, fit=decision.fit)
    if tokens_of(result.items) < tokens_of(work.asked.items):
        return result
    return replace(
        CompactionResult(items=tuple(work.asked.items), failed_at=result.failed_at, low=result.low),
        written=result.written,
        lost=result.lost,
        rejected=result.rejected,
        no_block=result.no_block,
    )


def _untouched(work: CompactionWork, edits: Sequence[Proposal]) -> int:
    """Return the size, as counted, of the items that no edit touches: no prune leaves less."""
    items = work.asked.items
    touched = {target.item for proposal in edits for target in proposal.targets}
    return tokens_of(items) - sum(items[at].tokens for at in touched)


def _can_wait(
    work: CompactionWork, edits: Sequence[Proposal], spans: Sequence[Proposal], *, least: int, enough: int
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


def _smaller(result: CompactionResult, pruned: CompactionResult, *, at: float) -> CompactionResult:
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
