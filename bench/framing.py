"""What recorded usage says about framing and scale: the figures behind `core/tokens/counting.py` and `core/tokens/counting.py`."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import msgspec
from msgspec import Struct

from bench.prompts import calls_of
from bench.transcripts import Recorded, Session
from lowwater.adapters.tokenizer import SplintrTokenizer
from lowwater.core.messages import texts_of

ENOUGH_GROWTH = 5_000
"""Counted tokens a session must have grown by before its ratio says anything."""


class CodexUsage(Struct):
    """What Codex notes about what the model wrote."""

    output_tokens: int = 0
    reasoning_output_tokens: int | None = None


class Around(Struct, frozen=True, kw_only=True):
    """What a model wrote beyond its content and reasoning, for one shape of answer."""

    has_text: bool
    calls: int
    tokens: int
    """The commonest figure."""
    share: float
    """How many of the answers have it."""
    answers: int


def codex_framing(measured: list[Session]) -> Iterator[Around]:
    """Yield, for each shape of answer without reasoning, the output tokens that are neither text, name nor argument."""
    found: dict[tuple[bool, int], Counter[int]] = defaultdict(Counter)
    tokenizer = SplintrTokenizer("o200k")
    for session in measured:
        for recorded in session.messages:
            written = _written(recorded)
            if written:
                shape = (bool(recorded.message.text), len(recorded.message.calls))
                found[shape][written - sum(map(tokenizer.count, texts_of(recorded.message)))] += 1
    for (has_text, calls), figures in sorted(found.items()):
        [(tokens, times)] = figures.most_common(1)
        answers = figures.total()
        yield Around(has_text=has_text, calls=calls, tokens=tokens, share=times / answers, answers=answers)


def growth_of(session: Session) -> float | None:
    """Return by how much the reported prompt grew for one counted token, or None if the session is too short."""
    counted = reported = 0
    calls = calls_of(session)
    for before, now in pairwise(calls):
        if not now.rewritten and now.counted > before.counted and now.reported > before.reported:
            counted += now.counted - before.counted
            reported += now.reported - before.reported
    return reported / counted if counted > ENOUGH_GROWTH else None


def _written(recorded: Recorded) -> int:
    if b'"reasoning_output_tokens"' not in recorded.usage:
        return 0
    usage = msgspec.json.decode(recorded.usage, type=CodexUsage)
    return 0 if usage.reasoning_output_tokens else usage.output_tokens
