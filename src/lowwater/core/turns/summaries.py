"""Obtaining a summary: which summarizers are asked in what order, how answers are judged, and what follows when all fail.

The summarizers form a ladder, and each is called a rung. The last resort, below all rungs, is the extractive summary, which
takes no model.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Reason
from lowwater.core.events import Rejected
from lowwater.core.messages import Message, message_with, read_block
from lowwater.core.secrets.redaction import conceal
from lowwater.core.summary.critical import KeptReferences, critical_references, is_forbidden
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.frame import static_marker
from lowwater.core.summary.grounding import Sources
from lowwater.core.summary.request import Critical, Judged, SummaryRequest, Verdict, VerdictCode, Written
from lowwater.core.summary.sanitize import unknown_handles, whole_characters
from lowwater.core.summary.validation import (
    REPAIRABLE,
    WEAK,
    open_request,
    rank,
    repair,
    restore_references,
    validate,
)
from lowwater.core.turns.effects import Failure, FailureKind, Summarize, SummaryOutcome
from lowwater.core.turns.state import Ladder
from lowwater.protocols import Tokenizer

EXTRACTIVE = "extractive"
MARKER = "marker"
"""Names of the two summarizers without a model; the marker only says how much was left out."""
_MAX_TRIES = 2
"""Calls of one summarizer for one summary."""
OVERSHOOT = 1.5
"""How many times longer than requested a summary may be: models count in other tokens than we do."""
_REQUEST_TOKENS = 80
"""The room that quoting the open request takes."""
_NAMED_TOKENS = 600
_NAMED_SHARE = 1 / 30
"""The room for listing paths and identifiers that a model's summary left out: in tokens, and as a share of what it replaces.

Of the names that were said before and used later, summaries that models wrote keep half, and 91 % with this list
(`python -m bench.judged_summaries`).
"""
_FORBIDDEN_SHARE = 0.25
"""The share of the replaced tokens that may be spent on restoring the user's prohibitions."""
_WORTH_RETRYING: frozenset[FailureKind] = frozenset({"failed", "network"})
_NO_MARKER_AFTER: frozenset[FailureKind] = frozenset({"auth", "network"})
"""Failures that say nothing about the text: it is not dropped for a marker because of them."""
NEVER_BILLED: frozenset[FailureKind] = frozenset({"auth", "network", "refused"})
"""Failures of calls that the provider does not bill."""
UNREACHABLE = frozenset({"auth", "network", "timeout"})
"""Failures after which the same summarizer is not asked for a text either."""


class Need(Struct, frozen=True, kw_only=True):
    """A summary that is needed, and what it is judged by."""

    request: SummaryRequest
    wanted: tuple[Critical, ...]
    """The critical references that it should contain."""
    replaces: int
    """Tokens of the messages that it would replace."""
    tokenizer: Tokenizer
    must: bool
    """The view does not fit without it."""
    handles: frozenset[int] = frozenset()
    """The numbers of all messages that it would replace."""
    sources: Sources
    """What it may draw on."""


class ObtainedSummary(Struct, frozen=True, kw_only=True):
    """The summary to use, if there is one, and what was learned about the summarizers."""

    judged: Judged | None
    failed_at: float | None = None
    """When the last summarizer failed, if none had an acceptable answer."""
    low: bool | None = None
    written: tuple[Written, ...] = ()
    """Everything that models wrote, used or not: all of it was billed."""
    lost: bool = False
    """Whether a call failed that may have been billed nevertheless."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as written."""


class _Answers(Struct, frozen=True, kw_only=True):
    """The summarizers' answers so far."""

    judged: tuple[Judged, ...] = ()
    failures: tuple[Failure, ...] = ()
    low: bool | None = None
    """Whether the first summarizer's answer missed too much before it was repaired; None if there was no answer."""
    lost: bool = False
    """Whether a call failed that may have been billed nevertheless."""
    rejected: tuple[Rejected, ...] = ()
    """The answers that were not accepted as written."""


def need_for(
    request: SummaryRequest,
    *,
    replaces: int,
    tokenizer: Tokenizer,
    must: bool,
    handles: Iterable[int] = (),
    background: Iterable[str] = (),
) -> Need:
    """Return the need for a summary, with its critical references, which are found once for all summarizers.

    `background` is what else the summarizer may be shown: the rest of the view, and the system prompt.
    """
    return Need(
        request=request,
        wanted=tuple(critical_references(request)),
        replaces=replaces,
        tokenizer=tokenizer,
        must=must,
        handles=frozenset(handles),
        sources=Sources(request, background),
    )


def obtain(need: Need, ladder: Ladder, *, at: float) -> Generator[Summarize, SummaryOutcome, ObtainedSummary]:
    """Return the first usable summary, or the best one if they compete; if no model's is usable, the extractive one.

    A summary is judged as written: that score is recorded, and decides a competition, in which the extractive summary takes
    part. One that only leaves something out is repaired, unless the ladder refuses weak ones; of competing summaries, the
    best one only. If none is usable, the best weak one is used if the ladder allows that; if not, a marker is, but only
    where the view must fit. A failure of credentials or network never leads to a marker.
    """
    answers = _Answers()
    chosen: Judged | None = None
    for rung in ladder.asked:
        answers = yield from _ask(need, ladder, rung, answers)
        if not ladder.competing and (chosen := _usable(answers.judged[-1:], need, ladder)) is not None:
            return _obtained(answers, chosen)
    if ladder.competing and any(_is_usable(judged, ladder) for judged in answers.judged):
        entrants = (*answers.judged, _extracted(need))
        chosen = _usable(sorted(entrants, key=rank, reverse=True), need, ladder)
        if chosen is not None:
            return _obtained(answers, chosen)
    extracted = _extracted(need)
    judged = _usable((extracted,), need, ladder)
    if judged is None:
        judged = _last_resort(need, ladder, (extracted, *answers.judged), answers.failures)
    answers = replace(answers, rejected=(*answers.rejected, *_rejected(extracted)))
    failed_at = max([at, *(failure.at for failure in answers.failures)])
    nobody_failed = judged is not None and not ladder.asked
    return replace(_obtained(answers, judged), failed_at=None if nobody_failed else failed_at)


def _usable(ranked: Sequence[Judged], need: Need, ladder: Ladder) -> Judged | None:
    """Return the first of these summaries that may be used, repaired if necessary, followed by the names that it left out."""
    for judged in ranked:
        if judged.verdict.accepted:
            return _with_names(judged, need)
        if _is_usable(judged, ladder):
            repaired = _repaired(judged, need)
            if repaired.verdict.accepted:
                return _with_names(repaired, need)
    return None


def _with_names(judged: Judged, need: Need) -> Judged:
    """Return a model's summary with a list of the paths and identifiers that it left out, as far as there is room."""
    if judged.written.by == EXTRACTIVE:
        return judged
    text, kept = judged.written.text, KeptReferences(judged.written.text)
    names = [each for each in need.wanted if each.kind in {"path", "identifier"} and not kept.has(each)]
    room = min(_NAMED_TOKENS, int(_NAMED_SHARE * need.replaces))
    text = repair(text, names, need.tokenizer.count(text) + room, need.tokenizer)
    return replace(judged, written=replace(judged.written, text=text))


def _is_usable(judged: Judged, ladder: Ladder) -> bool:
    """Return whether a summary is accepted, or only leaves out what can be quoted."""
    verdict = judged.verdict
    return verdict.accepted or (
        ladder.accepts_weak and verdict.because.code in WEAK and verdict.coverage >= REPAIRABLE
    )


def _obtained(answers: _Answers, judged: Judged | None) -> ObtainedSummary:
    written = tuple(each.written for each in answers.judged)
    return ObtainedSummary(
        judged=judged, low=answers.low, written=written, lost=answers.lost, rejected=answers.rejected
    )


def _ask(
    need: Need, ladder: Ladder, rung: int, before: _Answers
) -> Generator[Summarize, SummaryOutcome, _Answers]:
    """Ask one summarizer, and once more if the failure may pass."""
    failures, lost = list(before.failures), before.lost
    for _ in range(_MAX_TRIES):
        share = 1 / (len(ladder.asked) - ladder.asked.index(rung))
        outcome = yield Summarize(
            request=need.request, rung=rung, share=share, extends_last_request=rung in ladder.cached_prefix
        )
        if isinstance(outcome, Failure):
            failures.append(outcome)
            lost = lost or outcome.kind not in NEVER_BILLED
            if outcome.kind in _WORTH_RETRYING:
                continue
            break
        if need.request.redact:
            outcome = replace(outcome, text=conceal(outcome.text))
        answer = Judged(written=outcome, verdict=_verdict(outcome, need))
        if not _is_usable(answer, ladder):
            failures.append(Failure(kind="failed", error=answer.verdict.because.code))
        return _Answers(
            judged=(*before.judged, answer),
            failures=tuple(failures),
            low=_is_weak(answer.verdict) if rung == ladder.asked[0] else before.low,
            lost=lost,
            rejected=(*before.rejected, *_rejected(answer)),
        )
    rejected = _failed(ladder.name(rung), failures[-1])
    return replace(before, failures=tuple(failures), lost=lost, rejected=(*before.rejected, rejected))


def _failed(name: str, failure: Failure) -> Rejected:
    """Return the report of a summarizer that gave no summary."""
    return Rejected(by=name, code=failure.kind, missing=0, first_missing=(), error=failure.error)


def _rejected(judged: Judged) -> tuple[Rejected, ...]:
    """Return the report of a summary that is not accepted as written; empty if it is."""
    verdict = judged.verdict
    if verdict.accepted:
        return ()
    return (_refused(judged.written.by, verdict),)


def _refused(name: str, verdict: Verdict) -> Rejected:
    return Rejected(
        by=name,
        code=verdict.because.code,
        missing=len(verdict.missing),
        first_missing=verdict.first_missing,
        score=verdict.score,
    )


def _extracted(need: Need) -> Judged:
    """Return the extractive summary; if it is too short, it also says how much was left out."""
    written = Written(text=whole_characters(extract(need.request, need.tokenizer)), by=EXTRACTIVE)
    verdict = _verdict(written, need, quotes=True)
    if verdict.because.code == "too_short":
        fuller = replace(written, text=f"{written.text}\n\n{_marker(need)}".strip())
        if not _is_too_long(fuller, need):
            written, verdict = fuller, _verdict(fuller, need, quotes=True)
    return Judged(written=written, verdict=verdict)


def _last_resort(
    need: Need, ladder: Ladder, candidates: Sequence[Judged], failures: Sequence[Failure]
) -> Judged | None:
    """Return what to use if no summary is accepted: the best weak one, a marker, or None.

    A text without a single critical reference is not used, however fluent it is.
    """
    weak = [judged for judged in candidates if _is_weak(judged.verdict) and judged.verdict.score > 0]
    if weak and ladder.accepts_weak:
        return _restored(_best(weak), need)
    if need.must and not {failure.kind for failure in failures} & _NO_MARKER_AFTER:
        marker = Written(text=_marker(need), by=MARKER)
        return _restored(Judged(written=marker, verdict=_verdict(marker, need, quotes=True)), need)
    return None


def _marker(need: Need) -> str:
    return whole_characters(static_marker(need.request, tokens=need.replaces))


def _repaired(judged: Judged, need: Need) -> Judged:
    """Return a summary with what it left out quoted: all of it if it kept too little, else prohibitions and the open request.

    It is accepted if that is enough, and keeps the score of the text as written; the score of the repaired text stands beside it.
    """
    verdict = judged.verdict
    if _is_too_long(judged.written, need):
        return judged
    written = _restored(judged, need).written
    left = [each for each in verdict.missing if not is_forbidden(each)]
    most = need.request.max_tokens
    if verdict.because.code != "references_missing":
        asked = open_request(left, need.request)
        left = [] if asked is None else [asked]
        most = max(most, need.tokenizer.count(written.text) + _REQUEST_TOKENS)
    written = replace(written, text=repair(written.text, left, most, need.tokenizer))
    after = _verdict(written, need, quotes=written.by == EXTRACTIVE)
    # Prohibitions have room of their own; of a list that is too long for it, the rest is left to recall.
    if not after.accepted and (left or after.because.code not in {"prohibition_dropped", "too_long"}):
        return judged
    because = Reason(code="repaired", facts=verdict.because.facts)
    return Judged(
        written=written,
        verdict=replace(verdict, accepted=True, because=because, repaired_score=after.score),
    )


def _restored(judged: Judged, need: Need) -> Judged:
    """Return the summary with every prohibition of the user that it dropped, word for word."""
    room = max(need.request.max_tokens, int(_FORBIDDEN_SHARE * need.replaces))
    text = restore_references(judged.written.text, judged.verdict.missing, room, need.tokenizer)
    return replace(judged, written=replace(judged.written, text=text))


def _verdict(written: Written, need: Need, *, quotes: bool = False) -> Verdict:
    """Judge a summary, which may be one that only `quotes`; one that is far too long is rejected, however much it contains."""
    verdict = validate(
        written,
        need.request,
        need.tokenizer,
        need.replaces,
        wanted=need.wanted,
        sources=need.sources,
        quotes_only=quotes,
    )
    if not verdict.accepted or not _is_too_long(written, need):
        return verdict
    facts = {**verdict.because.facts, "max_tokens": need.request.max_tokens}
    return replace(verdict, accepted=False, because=Reason(code="too_long", facts=facts))


def _is_too_long(written: Written, need: Need) -> bool:
    return need.tokenizer.count(written.text) > OVERSHOOT * need.request.max_tokens


def _is_weak(verdict: Verdict) -> bool:
    return verdict.because.code in WEAK


def _best(judged: Sequence[Judged]) -> Judged:
    return max(judged, key=lambda each: (each.verdict.score, -len(each.written.text)))


# A block that the provider compacts by itself


def ask_for_block(
    need: Need, ladder: Ladder, *, upto: int, size: Callable[[Message], int]
) -> Generator[Summarize, SummaryOutcome, ObtainedSummary]:
    """Ask the provider to compact the first `upto` items of the view into a block, and return it if it is usable.

    A block is judged by its text like any summary. It must also be signed, smaller than what it replaces, and free of
    secrets; a signed block cannot be repaired.
    """
    rung = ladder.native
    assert rung is not None
    outcome = yield Summarize(
        request=replace(need.request, native=True),
        rung=rung,
        upto=upto,
        share=1 / (1 + len(ladder.asked)),
    )
    name = ladder.name(rung)
    if isinstance(outcome, Failure):
        billed = (
            () if outcome.usage is None else (Written(text="", by=name, model=name, usage=outcome.usage),)
        )
        lost = not billed and outcome.kind not in NEVER_BILLED
        return ObtainedSummary(
            judged=None, failed_at=outcome.at, written=billed, lost=lost, rejected=(_failed(name, outcome),)
        )
    verdict = _native_verdict(outcome, need, size)
    if verdict.accepted:
        return ObtainedSummary(judged=Judged(written=outcome, verdict=verdict), written=(outcome,))
    rejected = _refused(f"{name} (block)", verdict)
    return ObtainedSummary(judged=None, written=(outcome,), rejected=(rejected,))


def _native_verdict(written: Written, need: Need, size: Callable[[Message], int]) -> Verdict:
    """Judge a block by its text, and by what makes it unusable whatever the text says."""
    verdict = validate(
        written, need.request, need.tokenizer, need.replaces, wanted=need.wanted, sources=need.sources
    )
    defect = _block_defect(written, need, size)
    if not defect:
        return verdict
    return replace(verdict, accepted=False, because=Reason(code=defect, facts=verdict.because.facts))


def _block_defect(written: Written, need: Need, size: Callable[[Message], int]) -> VerdictCode | Literal[""]:
    """Return the code of what makes a block unusable whatever its text says; empty if nothing does."""
    try:
        message = message_with(written.block)
    except UnicodeDecodeError:
        return "no_block"
    block = read_block(message.parts[0])
    if block is None or not block.content or block.content != written.text:
        return "no_block"
    if not block.signature:
        return "unsigned"
    if need.request.redact and conceal(written.text) != written.text:
        return "holds_secrets"
    if unknown_handles(written.text, need.handles):
        return "unknown_handles"
    if size(message) >= need.replaces:
        return "not_smaller"
    return "too_long" if _is_too_long(written, need) else ""
