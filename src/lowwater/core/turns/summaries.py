"""Getting a summary: whom to ask, in what order, and what to do when one fails."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Reason
from lowwater.core.events import Rejected
from lowwater.core.messages import Message, message_with, read_block
from lowwater.core.secrets.redaction import conceal
from lowwater.core.stored_form import stored_as
from lowwater.core.summary.critical import critical_references, is_forbidden
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.framing import static_marker
from lowwater.core.summary.request import Critical, Judged, SummaryRequest, Verdict, VerdictCode, Written
from lowwater.core.summary.safety import unknown_handles, whole_characters
from lowwater.core.summary.validation import repair, restore, validate
from lowwater.core.turns.effects import Failure, FailureKind, Outcome, Summarize
from lowwater.protocols import Tokenizer

_LOW_IN_A_ROW = 3
_RECOVERS = 3_600.0


class SummarizerBackoff(
    Struct, frozen=True, kw_only=True, rename=stored_as("standing"), forbid_unknown_fields=True
):
    """Where the ladder begins: repeatedly low scores move it down a rung, an hour moves it back to the top."""

    first: int = 0
    low: int = 0
    """Low scores in a row on that rung."""
    since: float = 0.0
    """When it was last moved."""
    no_block_since: float | None = None
    """When a provider was last asked for a block of its own and gave none that was of use; None if it never was."""

    def at(self, now: float) -> "SummarizerBackoff":
        """Return where it begins at this time."""
        recovered = self.first and not 0 <= now - self.since < _RECOVERS
        return SummarizerBackoff(no_block_since=self.no_block_since) if recovered else self

    def after(self, *, low: bool | None, now: float) -> "SummarizerBackoff":
        """Return it after an answer of its first rung was judged; None if none was."""
        if low is None:
            return self
        if low and self.low + 1 >= _LOW_IN_A_ROW:
            return replace(self, first=self.first + 1, low=0, since=now)
        return replace(self, low=self.low + 1 if low else 0)

    def asks_for_blocks(self, now: float) -> bool:
        """Return whether a provider may be asked to compact by itself: for an hour after it did no good it is not."""
        since = self.no_block_since
        return since is None or not 0 <= now - since < _RECOVERS


class Ladder(Struct, frozen=True, kw_only=True):
    """Which summarizers are asked before the extractive one, and what is made of their answers."""

    rungs: int = 0
    first: int = 0
    competing: bool = False
    """Ask all of them and take the best, rather than the first that is good enough."""
    order: tuple[int, ...] = ()
    """The rungs from top to bottom, if not as they are numbered: the cheapest first."""
    names: tuple[str, ...] = ()
    """What the summarizers are called, by rung."""
    riding: frozenset[int] = frozenset()
    """The rungs that are asked most cheaply by extending the request that was sent last."""
    native: int | None = None
    """The rung whose provider can be asked to compact by itself; None if there is none."""
    accepts_weak: bool = True
    """Go on with the best there is if all of them miss too much."""

    def name(self, rung: int) -> str:
        """Return what the summarizer of a rung is called."""
        return self.names[rung] if rung < len(self.names) else f"summarizer {rung + 1}"

    def without(self, rung: int) -> "Ladder":
        """Return the ladder with one rung left out."""
        order = tuple(each for each in self.order or range(self.rungs) if each != rung)
        return replace(self, order=order, rungs=self.rungs if order else 0)

    @property
    def asked(self) -> tuple[int, ...]:
        """The rungs to ask, in order."""
        rungs = self.order or range(self.rungs)
        return tuple(rung for rung in rungs if rung < self.rungs)[self.first :]


EXTRACTIVE = "extractive"
MARKER = "marker"
_TRIES = 2
OVERSHOOT = 1.5
"""Models count in other tokens: a summary may be this much longer than it was asked to be."""
REPAIRABLE = 0.4
"""Share of the critical references below which a summary is not repaired: it would be a list of them under somebody's text."""
_FORBIDDEN_SHARE = 0.25
"""Of what a summary replaces, at most so much is spent on putting prohibitions back."""
_WORTH_RETRYING: frozenset[FailureKind] = frozenset({"failed", "network"})
_NEVER_DROPS_TEXT: frozenset[FailureKind] = frozenset({"auth", "network"})
NEVER_BILLED: frozenset[FailureKind] = frozenset({"auth", "network", "refused"})


class Need(Struct, frozen=True, kw_only=True):
    """A summary that is needed, and by what it is judged."""

    request: SummaryRequest
    wanted: tuple[Critical, ...]
    """What it should still say."""
    replaces: int
    """Tokens it would stand for."""
    tokenizer: Tokenizer
    must: bool
    """Without it the view does not fit."""
    handles: frozenset[int] = frozenset()
    """The numbers of all messages that it would stand for."""


def need_for(
    request: SummaryRequest,
    *,
    replaces: int,
    tokenizer: Tokenizer,
    must: bool,
    handles: Iterable[int] = (),
) -> Need:
    """Return what is needed, with the critical references found once for all who try."""
    return Need(
        request=request,
        wanted=tuple(critical_references(request)),
        replaces=replaces,
        tokenizer=tokenizer,
        must=must,
        handles=frozenset(handles),
    )


class Answers(Struct, frozen=True, kw_only=True):
    """What the rungs came up with so far."""

    judged: tuple[Judged, ...] = ()
    failures: tuple[Failure, ...] = ()
    low: bool | None = None
    """Whether the first rung's answer missed too much before it was repaired; None if it gave none."""
    lost: bool = False
    """Whether a call failed that may have been billed all the same."""
    rejected: tuple[Rejected, ...] = ()
    """The answers that were not accepted as they were."""

    @property
    def accepted(self) -> tuple[Judged, ...]:
        """The answers that may stand for what they replace."""
        return tuple(judged for judged in self.judged if judged.verdict.accepted)


class Obtained(Struct, frozen=True, kw_only=True):
    """The summary to use, if there is one, and what was learned about the ladder."""

    judged: Judged | None
    failed_at: float | None = None
    """When the last summarizer failed, if none of those that were asked had a good one."""
    low: bool | None = None
    written: tuple[Written, ...] = ()
    """Everything that models wrote, good or not: all of it was billed."""
    lost: bool = False
    """Whether a call failed that may have been billed all the same."""
    rejected: tuple[Rejected, ...] = ()
    """The summaries that were not accepted as they were."""


def obtain(need: Need, ladder: Ladder, *, at: float) -> Generator[Summarize, Outcome, Obtained]:
    """Return the first summary that is good, or the best if they compete; below the models stands the extractive one.

    A summary is judged as it was written, and that score is what it competes by and what is recorded. One that is nearly
    good is repaired unless the ladder refuses weak ones. Whatever is taken, what the user forbade is put back. If none is
    good, the best there is goes on, or none, as the ladder says; where the view must fit, a marker rather than none. A
    failure of access or network never leads to a marker.
    """
    answers = Answers()
    for rung in ladder.asked:
        answers = yield from _ask(need, ladder, rung, answers)
        if answers.accepted and not ladder.competing:
            break
    if answers.accepted:
        return _obtained(answers, _best(answers.accepted))
    extracted = _extracted(need)
    mended = _mended(extracted, need, ladder)
    judged: Judged | None = mended
    if not mended.verdict.accepted:
        judged = _last_resort(need, ladder, (mended, *answers.judged), answers.failures)
    answers = replace(answers, rejected=(*answers.rejected, *_rejected(extracted)))
    failed_at = max([at, *(failure.at for failure in answers.failures)])
    done = judged is not None and not ladder.asked
    return replace(_obtained(answers, judged), failed_at=None if done else failed_at)


def _obtained(answers: Answers, judged: Judged | None) -> Obtained:
    written = tuple(each.written for each in answers.judged)
    return Obtained(
        judged=judged, low=answers.low, written=written, lost=answers.lost, rejected=answers.rejected
    )


def _ask(need: Need, ladder: Ladder, rung: int, before: Answers) -> Generator[Summarize, Outcome, Answers]:
    """Ask one summarizer, a second time if that may help."""
    failures, lost = list(before.failures), before.lost
    for _ in range(_TRIES):
        share = 1 / (len(ladder.asked) - ladder.asked.index(rung))
        outcome = yield Summarize(request=need.request, rung=rung, share=share, rides=rung in ladder.riding)
        if isinstance(outcome, Failure):
            failures.append(outcome)
            lost = lost or outcome.kind not in NEVER_BILLED
            if outcome.kind in _WORTH_RETRYING:
                continue
            break
        if need.request.redact:
            outcome = replace(outcome, text=conceal(outcome.text))
        answer = Judged(written=outcome, verdict=_verdict(outcome, need))
        judged = _mended(answer, need, ladder)
        if not judged.verdict.accepted:
            failures.append(Failure(kind="failed", said=judged.verdict.because.code))
        return Answers(
            judged=(*before.judged, judged),
            failures=tuple(failures),
            low=_is_weak(answer.verdict) if rung == ladder.asked[0] else before.low,
            lost=lost,
            rejected=(*before.rejected, *_rejected(answer)),
        )
    told = Rejected(
        by=ladder.name(rung), code=failures[-1].kind, missing=0, first_missing=(), said=failures[-1].said
    )
    return replace(before, failures=tuple(failures), lost=lost, rejected=(*before.rejected, told))


def _extracted(need: Need) -> Judged:
    """Return the summary without a model; where there is next to nothing to tell, it says what was left out."""
    written = Written(text=whole_characters(extract(need.request, need.tokenizer)), by=EXTRACTIVE)
    verdict = _verdict(written, need)
    if verdict.because.code == "too_short":
        fuller = replace(written, text=f"{written.text}\n\n{_marker(need)}".strip())
        if not _is_too_long(fuller, need):
            written, verdict = fuller, _verdict(fuller, need)
    return Judged(written=written, verdict=verdict)


def _last_resort(
    need: Need, ladder: Ladder, candidates: Sequence[Judged], failures: Sequence[Failure]
) -> Judged | None:
    """Return what to go on with when nothing is good: the best that only misses too much, a marker, or nothing.

    A text that has nothing of what matters is no summary of it, however fluent.
    """
    weak = [judged for judged in candidates if _is_weak(judged.verdict) and judged.verdict.score > 0]
    if weak and ladder.accepts_weak:
        return _restored(_best(weak), need)
    if need.must and not {failure.kind for failure in failures} & _NEVER_DROPS_TEXT:
        marker = Written(text=_marker(need), by=MARKER)
        return _restored(Judged(written=marker, verdict=_verdict(marker, need)), need)
    return None


def _marker(need: Need) -> str:
    return whole_characters(static_marker(need.request, tokens=need.replaces))


def _mended(judged: Judged, need: Need, ladder: Ladder) -> Judged:
    """Return a good summary with what the user forbade, and one that is nearly good with what it missed appended.

    The score stays that of what was written.
    """
    verdict = judged.verdict
    if verdict.accepted:
        return _restored(judged, need)
    if not (_is_weak(verdict) and verdict.score >= REPAIRABLE and ladder.accepts_weak):
        return judged
    restored = _restored(judged, need).written
    left = [each for each in verdict.missing if not is_forbidden(each)]
    text = repair(restored.text, left, need.request.max_tokens, need.tokenizer)
    mended = replace(restored, text=text)
    if not _verdict(mended, need).accepted:
        return judged
    because = Reason(code="repaired", facts=verdict.because.facts)
    return Judged(written=mended, verdict=replace(verdict, accepted=True, because=because))


def _restored(judged: Judged, need: Need) -> Judged:
    """Return a summary with every prohibition of the user that it dropped, word for word."""
    room = max(need.request.max_tokens, int(_FORBIDDEN_SHARE * need.replaces))
    text = restore(judged.written.text, judged.verdict.missing, room, need.tokenizer)
    return replace(judged, written=replace(judged.written, text=text))


def _rejected(judged: Judged) -> tuple[Rejected, ...]:
    """Return what there is to tell about a summary that is not accepted as it is; nothing about any other."""
    verdict = judged.verdict
    if verdict.accepted:
        return ()
    told = Rejected(
        by=judged.written.by,
        code=verdict.because.code,
        missing=len(verdict.missing),
        first_missing=verdict.first_missing,
    )
    return (told,)


def _verdict(written: Written, need: Need) -> Verdict:
    """Judge a summary; one far beyond the length that was asked for is none, however much it keeps."""
    verdict = validate(written, need.request, need.tokenizer, need.replaces, wanted=need.wanted)
    if not verdict.accepted or not _is_too_long(written, need):
        return verdict
    facts = {**verdict.because.facts, "max_tokens": need.request.max_tokens}
    return replace(verdict, accepted=False, because=Reason(code="too_long", facts=facts))


def _is_too_long(written: Written, need: Need) -> bool:
    return need.tokenizer.count(written.text) > OVERSHOOT * need.request.max_tokens


def _is_weak(verdict: Verdict) -> bool:
    return verdict.because.code == "references_missing"


def _best(judged: Sequence[Judged]) -> Judged:
    return max(judged, key=lambda each: (each.verdict.score, -len(each.written.text)))


UNREACHABLE = frozenset({"auth", "network", "timeout"})
"""Failures after which the same summarizer is not asked for text either."""


def ask_for_block(
    need: Need, ladder: Ladder, *, upto: int, size: Callable[[Message], int]
) -> Generator[Summarize, Outcome, Obtained]:
    """Return a block for the first `upto` items of the view, if one came that may stand for them.

    It is judged like any summary, by what it says; and it has to be signed, smaller than what it stands for, and free of
    secrets, none of which can be mended.
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
        told = Rejected(by=name, code=outcome.kind, missing=0, first_missing=(), said=outcome.said)
        billed = (
            () if outcome.usage is None else (Written(text="", by=name, model=name, usage=outcome.usage),)
        )
        lost = not billed and outcome.kind not in NEVER_BILLED
        return Obtained(judged=None, failed_at=outcome.at, written=billed, lost=lost, rejected=(told,))
    verdict = _native_verdict(outcome, need, size)
    if verdict.accepted:
        return Obtained(judged=Judged(written=outcome, verdict=verdict), written=(outcome,))
    told = Rejected(
        by=f"{name} (block)",
        code=verdict.because.code,
        missing=len(verdict.missing),
        first_missing=verdict.first_missing,
    )
    return Obtained(judged=None, written=(outcome,), rejected=(told,))


def _native_verdict(written: Written, need: Need, size: Callable[[Message], int]) -> Verdict:
    verdict = validate(written, need.request, need.tokenizer, need.replaces, wanted=need.wanted)
    wrong = _wrong_with(written, need, size)
    if not wrong and verdict.accepted and any(map(is_forbidden, verdict.missing)):
        wrong = "prohibition_dropped"
    if not wrong:
        return verdict
    return replace(verdict, accepted=False, because=Reason(code=wrong, facts=verdict.because.facts))


def _wrong_with(written: Written, need: Need, size: Callable[[Message], int]) -> VerdictCode | Literal[""]:
    """Return what is wrong with a block whatever it says, as a code; nothing if it may stand."""
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
    return "too_long" if need.tokenizer.count(written.text) > OVERSHOOT * need.request.max_tokens else ""
