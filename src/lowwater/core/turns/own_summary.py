"""A summary in the user's own words, in place of the one that stands in the view."""

from lowwater.core.decisions import Compact, because
from lowwater.core.events import Rejected
from lowwater.core.mechanisms import summarize
from lowwater.core.mechanisms.spans import replace_span, request_for
from lowwater.core.messages import Span
from lowwater.core.summary.request import Judged, Written
from lowwater.core.summary.sanitize import whole_characters
from lowwater.core.summary.validation import validate
from lowwater.core.turns.commit import commit
from lowwater.core.turns.compaction import CompactionResult, CompactionWork
from lowwater.core.turns.decision_context import DecisionInputs
from lowwater.core.turns.state import Acted, Setup, State
from lowwater.core.turns.summaries import need_for
from lowwater.core.view import Item, Original, Summary, first_difference, is_own_block, is_pin_block
from lowwater.errors import BadInput

BY = "you"
"""Who wrote such a summary, in reports."""


def put_own_summary(state: State, inputs: DecisionInputs, setup: Setup, text: str) -> Acted:
    """Put a text in place of the last summary in view, or raise BadInput if there is none.

    It is judged like a summarizer's and used whatever the verdict, which is reported with the compaction. Nothing is added to it.
    """
    items = list(inputs.request.items)
    place = last_summary(items)
    if place is None:
        raise BadInput("there is no summary in view to replace: compress first")
    summary = items[place]
    assert isinstance(summary, Summary)
    work = CompactionWork(request=inputs.request, prompt=inputs.now.prompt, at=inputs.now.at, by_hand=True)
    judged = _judged(text, summary, state, work)
    span = Span(start=place, stop=place + 1)
    changed = replace_span(items, span, judged.written.text, work.context, depth=summary.depth)
    verdict = judged.verdict
    rejected = (
        ()
        if verdict.accepted
        else (
            Rejected(
                by=BY,
                code=verdict.because.code,
                missing=len(verdict.missing),
                first_missing=verdict.first_missing,
            ),
        )
    )
    result = CompactionResult(
        items=tuple(changed),
        phases=(work.phase(summarize.NAME, items, changed),),
        mode="summary",
        first_changed=first_difference(items, changed),
        judged=judged,
        summaries=1,
        summary_tokens=work.context.tokenizer.count(judged.written.text),
        rejected=rejected,
    )
    reason = because("by-hand", prompt=work.prompt, expected=work.size(changed))
    decision = Compact(proposals=(), because=reason, below=0, fit=0)
    return commit(state, result, setup, work=work, now=inputs.now, decision=decision, whatever_size=True)


def last_summary(items: list[Item]) -> int | None:
    """Return the place of the last summary that somebody wrote; None if there is none."""
    for at in reversed(range(len(items))):
        item = items[at]
        if isinstance(item, Summary) and item.sources and not (is_pin_block(item) or is_own_block(item)):
            return at
    return None


def _judged(text: str, summary: Summary, state: State, work: CompactionWork) -> Judged:
    """Return the text with the verdict on it, by the original messages that it stands for."""
    covered: list[Item] = [
        Original(number=number, message=one.message, tokens=one.tokens)
        for span in summary.sources
        for number, one in enumerate(state.ledger.messages[span.first - 1 : span.last], start=span.first)
    ]
    request = request_for(
        covered,
        Span(start=0, stop=len(covered)),
        max_tokens=max(summary.tokens, work.context.tokenizer.count(text)),
        focus="",
        recall=work.context.offers_recall,
        redact=work.context.redact,
    )
    replaces = sum(item.tokens for item in covered)
    need = need_for(request, replaces=replaces, tokenizer=work.context.tokenizer, must=False)
    written = Written(text=whole_characters(text), by=BY)
    verdict = validate(written, request, work.context.tokenizer, replaces, wanted=need.wanted)
    return Judged(written=written, verdict=verdict)
