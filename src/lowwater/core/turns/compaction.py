"""Carrying out a decision to compact: prune, check whether that is enough, and only then summarise."""

from collections.abc import Generator, Iterator, Sequence
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Compact, scaled
from lowwater.core.events import Mode, Phase, Rejected
from lowwater.core.mechanisms import condense, native, summarize
from lowwater.core.mechanisms.mechanism import EditContext, ProposalRequest
from lowwater.core.mechanisms.registry import SUMMARIES, apply_edits, propose, reach_of
from lowwater.core.mechanisms.spans import numbers_of_items, replace_span, request_for
from lowwater.core.messages import Span, texts_of
from lowwater.core.proposals import Proposal
from lowwater.core.summary.request import Judged, SummaryRequest, Written
from lowwater.core.turns.effects import Summarize, SummaryOutcome
from lowwater.core.turns.state import Ladder, PrefetchedSummary
from lowwater.core.turns.summaries import (
    OVERSHOOT,
    UNREACHABLE,
    Need,
    ObtainedSummary,
    ask_for_block,
    need_for,
    obtain,
)
from lowwater.core.view import Item, first_difference, is_pin_block, tokens_of_items

_MAX_PASSES = 12
_LEAST_SCALE = 0.1
"""The smallest scale by which a squeeze divides: an implausibly small one would ask for the removal of everything."""


class CompactionWork(Struct, frozen=True, kw_only=True):
    """What a compaction works with: the view, who writes summaries, and why it is done."""

    request: ProposalRequest
    prompt: int
    """The size of the prompt before the compaction, in the model's tokens."""
    at: float
    ladder: Ladder = Ladder()
    prefetched_summary: PrefetchedSummary | None = None
    """A prefetched summary that may be used now."""
    focus: str = ""
    system: bytes = b""
    """The system prompt, which a summary may draw on."""
    by_hand: bool = False
    at_wall: bool = False
    """The prompt does not fit: it has to be made smaller, whatever it takes."""

    @property
    def context(self) -> EditContext:
        """What the mechanisms need to edit the view."""
        return self.request.context

    def size(self, items: Sequence[Item]) -> int:
        """Return the size of the prompt with these items instead, in the model's tokens."""
        return self.prompt - self.scaled(tokens_of_items(self.request.items) - tokens_of_items(items))

    def scaled(self, counted: int) -> int:
        """Return counted tokens as the model's tokens."""
        return scaled(counted, self.request.scale)

    def phase(self, mechanism: str, before: Sequence[Item], after: Sequence[Item]) -> Phase:
        """Return the record of what a mechanism removed."""
        return Phase(
            mechanism=mechanism, removed=self.scaled(tokens_of_items(before) - tokens_of_items(after))
        )


class CompactionResult(Struct, frozen=True, kw_only=True):
    """The outcome of a compaction; `items` are as before if nothing was gained."""

    items: tuple[Item, ...]
    phases: tuple[Phase, ...] = ()
    mode: Mode = "prune"
    first_changed: int = 0
    judged: Judged | None = None
    """The last summary that was used."""
    summaries: int = 0
    summary_tokens: int = 0
    failed_at: float | None = None
    """When the summarizers failed; None if they did not, or none was asked."""
    low: bool | None = None
    """Whether the first summarizer's last answer missed too much."""
    written: tuple[Written, ...] = ()
    """Everything that models wrote, used or not: all of it was billed."""
    lost: bool = False
    """Whether a call failed that may have been billed nevertheless."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as written."""
    no_block: bool = False
    """Whether a provider was asked to compact by itself and returned no usable block."""

    @property
    def changed(self) -> bool:
        """Whether the view got smaller."""
        return bool(self.phases)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that made it smaller, each once."""
        return tuple(dict.fromkeys(phase.mechanism for phase in self.phases))


def carry_out(
    work: CompactionWork, decision: Compact
) -> Generator[Summarize, SummaryOutcome, CompactionResult]:
    """Prune, check whether that is enough, and only then summarise (docs/specification.md: C, D); squeeze at the end if planned.

    If no pruning can be enough, messages that the summary will replace are not pruned, unless it turns out that there is none.
    """
    spans = [proposal for proposal in decision.proposals if proposal.span is not None]
    summarised = tuple(proposal.span for proposal in spans if proposal.span is not None)
    context = replace(work.request.context, summarised=summarised)
    work = replace(work, request=replace(work.request, items=tuple(work.request.items), context=context))
    others = [proposal for proposal in decision.proposals if proposal.span is None]
    edits = [proposal for proposal in others if reach_of(proposal.mechanism) != "last-resort"]
    last = [proposal for proposal in others if reach_of(proposal.mechanism) == "last-resort"]
    least = _size_of_unedited(work, edits)
    summary_first = _is_summary_certain(work, edits, spans, least=least, enough=decision.enough)
    result = prune(work, _outside(edits, spans) if summary_first else edits)
    if not (result.changed and work.size(result.items) <= decision.enough):
        result = yield from replace_spans(work, result, spans, enough=decision.enough)
    if summary_first and tokens_of_items(result.items) >= least:
        result = _smaller(result, prune(work, edits), at=work.at)
    for proposal in last:
        result = shorten_to_fit(work, result, proposal, fit=decision.fit)
    if tokens_of_items(result.items) < tokens_of_items(work.request.items):
        return result
    return CompactionResult(
        items=tuple(work.request.items),
        failed_at=result.failed_at,
        low=result.low,
        written=result.written,
        lost=result.lost,
        rejected=result.rejected,
        no_block=result.no_block,
    )


def _size_of_unedited(work: CompactionWork, edits: Sequence[Proposal]) -> int:
    """Return the counted size of the items that no edit touches: pruning cannot leave less."""
    items = work.request.items
    touched = {target.item for proposal in edits for target in proposal.targets}
    return tokens_of_items(items) - sum(items[at].tokens for at in touched)


def _is_summary_certain(
    work: CompactionWork, edits: Sequence[Proposal], spans: Sequence[Proposal], *, least: int, enough: int
) -> bool:
    """Return whether the middle will be summarised however much the edits remove, into less than the edits would leave.

    Edits outside the span must not depend on those inside, as they do when pruning has to reclaim some minimum to count.
    """
    if not edits or [SUMMARIES[proposal.mechanism].in_passes for proposal in spans] != [False]:
        return False
    if not (work.by_hand or work.at_wall) and _outside(edits, spans):
        return False
    span, items = spans[0].span, work.request.items
    assert span is not None
    removed = tokens_of_items(items) - least
    left = tokens_of_items(items[span.start : span.stop]) - removed
    return work.prompt - work.scaled(removed) > enough and left > _longest_summary(work, spans[0])


def _outside(edits: Sequence[Proposal], spans: Sequence[Proposal]) -> list[Proposal]:
    """Return the edits restricted to targets outside all spans."""
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
    """Return the smaller of two results, a summary's and pruning's, with what was learned and billed for the first."""
    if not pruned.changed or tokens_of_items(pruned.items) > tokens_of_items(result.items):
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


def prune(work: CompactionWork, proposals: Sequence[Proposal]) -> CompactionResult:
    """Carry out all edits, or none if together they reclaim too little to count."""
    if not proposals:
        return CompactionResult(items=tuple(work.request.items))
    items: list[Item] = list(work.request.items)
    phases: list[Phase] = []
    for proposal in proposals:
        edited = apply_edits(work.request, items, proposal)
        if tokens_of_items(edited) < tokens_of_items(items):
            phases.append(work.phase(proposal.mechanism, items, edited))
            items = list(edited)
    is_enough_to_count = work.prompt - work.size(items) >= work.request.limits.minimum_prune
    if not phases or not (is_enough_to_count or work.by_hand or work.at_wall):
        return CompactionResult(items=tuple(work.request.items))
    return CompactionResult(
        items=tuple(items),
        phases=tuple(phases),
        first_changed=first_difference(work.request.items, items),
    )


def shorten_to_fit(
    work: CompactionWork, result: CompactionResult, proposal: Proposal, *, fit: int
) -> CompactionResult:
    """Carry out a last resort: it shortens whatever is left until the prompt has at most `fit` tokens.

    What the model has not seen yet, and summaries, are cut to the bone only as far as two more turns need it: what is left is an
    estimate, and a turn may be larger than usual.
    """
    over = work.size(result.items) - fit
    if over <= 0:
        return result
    scale, limits = max(work.request.scale, _LEAST_SCALE), work.request.limits
    removes = max(1, ceil(over / scale))
    two_more = max(fit, min(limits.most - 2 * limits.growth, limits.threshold - 1))
    must_fit = tokens_of_items(result.items) - ceil((work.size(result.items) - two_more) / scale)
    request = replace(work.request, context=replace(work.context, must_fit=max(0, must_fit)))
    items = apply_edits(request, result.items, replace(proposal, removes=removes))
    if tokens_of_items(items) >= tokens_of_items(result.items):
        return result
    return replace(
        result,
        items=tuple(items),
        phases=(*result.phases, work.phase(proposal.mechanism, result.items, items)),
        first_changed=first_difference(work.request.items, items),
    )


def replace_spans(
    work: CompactionWork, result: CompactionResult, planned: Sequence[Proposal], *, enough: int
) -> Generator[Summarize, SummaryOutcome, CompactionResult]:
    """Replace spans by summaries as planned; passes are repeated until the prompt is down to `enough`, if that is set.

    Replacing a span shifts the indexes of all later items, so every proposal but the first is made anew.
    """
    repeats = enough > 0 and all(SUMMARIES[proposal.mechanism].in_passes for proposal in planned)
    passes = fruitless = 0
    while planned and fruitless < len(planned) and passes < (_MAX_PASSES if repeats else len(planned)):
        mechanism = planned[passes % len(planned)].mechanism
        proposal = planned[0] if passes == 0 else _propose_again(work, result.items, mechanism)
        before = result
        if proposal is not None:
            result = yield from _replace_by_summary(work, result, proposal)
        if result.changed and work.size(result.items) <= enough:
            break
        passes, fruitless = passes + 1, 0 if result.summaries > before.summaries else fruitless + 1
    return result


def _propose_again(work: CompactionWork, items: Sequence[Item], mechanism: str) -> Proposal | None:
    """Return what a mechanism proposes for these items."""
    offers = propose(replace(work.request, items=items))
    return next((proposal for proposal in offers.proposals if proposal.mechanism == mechanism), None)


def _replace_by_summary(
    work: CompactionWork, before: CompactionResult, proposal: Proposal
) -> Generator[Summarize, SummaryOutcome, CompactionResult]:
    """Replace a span by a summary of its original messages; if there is none, return what was reached before.

    A prefetched summary that fits is used without a call. Summarizers that failed in this compaction are not asked again.
    """
    mechanism = SUMMARIES[proposal.mechanism]
    if mechanism.by_provider:
        return (yield from _replace_by_block(work, before, proposal))
    span, items = proposal.span, before.items
    assert span is not None
    context = work.context
    prefetched = None if mechanism.in_passes else work.prefetched_summary
    request = _summary_request(work, items, proposal)
    if prefetched is not None and prefetched.answers(request):
        obtained = ObtainedSummary(judged=prefetched.judged)
    else:
        ladder = work.ladder if before.failed_at is None else replace(work.ladder, rungs=0)
        obtained = yield from obtain(need_for_proposal(work, items, proposal), ladder, at=work.at)
    before = _with_bill(before, obtained)
    failed_at = before.failed_at if obtained.failed_at is None else obtained.failed_at
    low = before.low if obtained.low is None else obtained.low
    if obtained.judged is None:
        return replace(before, failed_at=failed_at, low=low)
    text = obtained.judged.written.text
    depth = condense.depth_of(items, span) if mechanism.merges else 1
    shorter = replace_span(items, span, text, context, depth=depth)
    if tokens_of_items(shorter) >= tokens_of_items(items):
        return replace(before, failed_at=work.at if failed_at is None else failed_at, low=low)
    return replace(
        _with_span_replaced(work, before, proposal, shorter, obtained.judged), failed_at=failed_at, low=low
    )


def _replace_by_block(
    work: CompactionWork, before: CompactionResult, proposal: Proposal
) -> Generator[Summarize, SummaryOutcome, CompactionResult]:
    """Have the provider replace a span by a compaction block; if no usable block comes, ask for a summary as usual.

    The provider is shown the view before this compaction's edits, because that is cached and complete.
    """
    span, ladder = proposal.span, work.ladder
    assert span is not None
    if ladder.native is not None and before.failed_at is None:
        need = need_for_proposal(work, work.request.items, proposal)
        obtained = yield from ask_for_block(need, ladder, upto=span.stop, size=work.context.size)
        before = _with_bill(before, obtained)
        if obtained.judged is not None:
            shorter = native.put_block(before.items, span, obtained.judged.written.block, work.context)
            if tokens_of_items(shorter) < tokens_of_items(before.items):
                return _with_span_replaced(work, before, proposal, shorter, obtained.judged)
        before = replace(before, no_block=True)
        if any(rejected.code in UNREACHABLE for rejected in obtained.rejected):
            work = replace(work, ladder=ladder.without(ladder.native))
            before = before if work.ladder.asked else replace(before, failed_at=obtained.failed_at)
    instead = _propose_again(work, before.items, summarize.NAME)
    return before if instead is None else (yield from _replace_by_summary(work, before, instead))


def _with_bill(before: CompactionResult, obtained: ObtainedSummary) -> CompactionResult:
    """Return the result so far with what was written, and so billed, and what was rejected."""
    return replace(
        before,
        written=(*before.written, *obtained.written),
        lost=before.lost or obtained.lost,
        rejected=(*before.rejected, *obtained.rejected),
    )


def _with_span_replaced(
    work: CompactionWork,
    before: CompactionResult,
    proposal: Proposal,
    shorter: Sequence[Item],
    judged: Judged,
) -> CompactionResult:
    """Return the result with a summary or a block in place of the span."""
    return CompactionResult(
        items=tuple(shorter),
        phases=(*before.phases, work.phase(proposal.mechanism, before.items, shorter)),
        mode="condense" if SUMMARIES[proposal.mechanism].merges else "summary",
        first_changed=first_difference(work.request.items, shorter),
        judged=judged,
        summaries=before.summaries + 1,
        summary_tokens=before.summary_tokens + work.context.tokenizer.count(judged.written.text),
        written=before.written,
        lost=before.lost,
        rejected=before.rejected,
        no_block=before.no_block,
    )


def need_for_proposal(work: CompactionWork, items: Sequence[Item], proposal: Proposal) -> Need:
    """Return the summary that a proposal needs."""
    span = proposal.span
    assert span is not None
    return need_for(
        _summary_request(work, items, proposal),
        replaces=tokens_of_items(items[span.start : span.stop]),
        tokenizer=work.context.tokenizer,
        must=work.at_wall,
        handles=numbers_of_items(items[span.start : span.stop]),
        background=_background(work, items, span),
    )


def _background(work: CompactionWork, items: Sequence[Item], span: Span) -> Iterator[str]:
    """Yield what a summarizer may have been shown besides the messages of a span: the rest of the view, and the system prompt."""
    yield work.system.decode(errors="replace")
    for item in (*items[: span.start], *items[span.stop :]):
        yield from texts_of(item.message)
    for item in work.request.items:
        if is_pin_block(item):
            yield item.message.text


def _summary_request(work: CompactionWork, items: Sequence[Item], proposal: Proposal) -> SummaryRequest:
    span = proposal.span
    assert span is not None
    return request_for(
        items,
        span,
        max_tokens=_budget(work, items, span, proposal.mechanism),
        focus=work.focus,
        recall=work.context.offers_recall,
        redact=work.context.redact,
        instructions=work.request.settings.compression.summary_instructions or "",
    )


def _budget(work: CompactionWork, items: Sequence[Item], span: Span, mechanism: str) -> int:
    """Return how long a summary may be; edits of what it replaces do not make it shorter."""
    whole = work.request.items if len(items) == len(work.request.items) else items
    return SUMMARIES[mechanism].budget(work.request, whole[span.start : span.stop])


def _longest_summary(work: CompactionWork, proposal: Proposal) -> float:
    """Return the length of the longest summary that would be accepted for this proposal, in counted tokens."""
    assert proposal.span is not None
    return OVERSHOOT * _budget(work, work.request.items, proposal.span, proposal.mechanism)
