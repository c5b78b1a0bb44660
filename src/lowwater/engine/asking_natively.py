"""Asking a provider to compact by itself, and judging the block that comes back: it cannot be repaired, only refused."""

from collections.abc import Callable, Generator
from typing import Literal

from msgspec.structs import replace

from lowwater.compact.summary import validate
from lowwater.compact.summary.critical import is_forbidden
from lowwater.compact.summary.sanitize import unknown_handles
from lowwater.engine.effects import Failure, Outcome, Summarize
from lowwater.engine.ladder import Ladder
from lowwater.engine.summaries import NEVER_BILLED, OVERSHOOT, Need, Obtained
from lowwater.values.decision import Reason
from lowwater.values.events import Rejected
from lowwater.values.message import Message
from lowwater.values.native_block import message_with, read_block
from lowwater.values.secrets import conceal
from lowwater.values.summaries import Judged, Verdict, VerdictCode, Written

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
    verdict = _verdict(outcome, need, size)
    if verdict.accepted:
        return Obtained(judged=Judged(written=outcome, verdict=verdict), written=(outcome,))
    told = Rejected(
        by=f"{name} (block)",
        code=verdict.because.code,
        missing=len(verdict.missing),
        first_missing=verdict.first_missing,
    )
    return Obtained(judged=None, written=(outcome,), rejected=(told,))


def _verdict(written: Written, need: Need, size: Callable[[Message], int]) -> Verdict:
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
