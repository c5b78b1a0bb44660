"""The ladder of summarizers: ask, judge, repair, go down a rung (SPEC C, J)."""

from collections.abc import Generator

from msgspec import Struct

from lowwater.compact.summary import extract, repair, static_marker, validate
from lowwater.engine.effects import Failure, FailureKind, Outcome, Summarize
from lowwater.ports import Tokenizer
from lowwater.values.summaries import Judged, SummaryRequest, Written

EXTRACTIVE = "extractive"
MARKER = "marker"
_TRIES = 2
_WORTH_RETRYING: frozenset[FailureKind] = frozenset({"failed", "network"})


class Obtained(Struct, frozen=True, kw_only=True):
    """What the ladder came up with, and how often it failed on the way."""

    judged: Judged | None
    failures: tuple[FailureKind, ...] = ()


def obtain(
    request: SummaryRequest, *, replaces: int, rungs: int, must: bool, tokenizer: Tokenizer
) -> Generator[Summarize, Outcome, Obtained]:
    """Return the first summary that is accepted; where one is needed (`must`), a marker rather than none.

    An answer that misses too much is repaired if it can be. A failure of access or network never leads to a marker.
    """
    failures: list[FailureKind] = []
    for rung in range(rungs):
        for _ in range(_TRIES):
            outcome = yield Summarize(request=request, rung=rung)
            if isinstance(outcome, Failure):
                failures.append(outcome.kind)
                if outcome.kind in _WORTH_RETRYING:
                    continue
                break
            judged = judge(outcome, request, replaces, tokenizer)
            if judged.verdict.accepted:
                return Obtained(judged=judged, failures=tuple(failures))
            failures.append("failed")
            break
    written = Written(text=extract(request, tokenizer), by=EXTRACTIVE)
    judged = judge(written, request, replaces, tokenizer)
    if judged.verdict.accepted:
        return Obtained(judged=judged, failures=tuple(failures))
    if must and not set(failures) & {"auth", "network"}:
        marker = Written(text=static_marker(request), by=MARKER)
        return Obtained(judged=Judged(written=marker, verdict=judged.verdict), failures=tuple(failures))
    return Obtained(judged=None, failures=(*failures, "failed"))


def judge(written: Written, request: SummaryRequest, replaces: int, tokenizer: Tokenizer) -> Judged:
    """Return the summary with the verdict on it, repaired if that makes it acceptable."""
    verdict = validate(written, request, tokenizer, replaces)
    if verdict.accepted or not verdict.missing:
        return Judged(written=written, verdict=verdict)
    text = repair(written.text, verdict.missing, request.max_tokens, tokenizer)
    mended = Written(text=text, by=written.by, cut_off=written.cut_off)
    again = validate(mended, request, tokenizer, replaces)
    return (
        Judged(written=mended, verdict=again) if again.accepted else Judged(written=written, verdict=verdict)
    )
