"""What the numbers recommend, each with the numbers it rests on (docs/specification.md: K).

None of it is said of fewer observations than the numbers below: chance makes patterns of a few.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, get_args

from msgspec import Struct

from lowwater.account.figures import Figures
from lowwater.account.repayment import Repayment
from lowwater.account.summarizing import Summarizing
from lowwater.values.decision import Fact

LEAST_TURNS = 20
LEAST_SUMMARIES = 5
LEAST_COMPACTIONS = 5
SAME_SCORE = 0.05
"""Scores that differ by no more are the same."""
DEARER = 2.0
"""From so many times the price on it is worth changing who writes."""
MANY_FAILED = 0.25
MANY_REJECTED = 0.25
SLOWER = 2.0
"""From so many times the predicted calls on the prediction was too hopeful."""
FAR_OFF = 0.05
"""From this share of the prompts on, what was read from the cache was not as foreseen."""

Code = Literal[
    "prices-unknown",
    "turns-unpriced",
    "summaries-dear",
    "summaries-rejected",
    "not-paid-back",
    "payback-slower",
    "net-negative",
    "cache-misjudged",
]
CODES: tuple[Code, ...] = get_args(Code)


class Advice(Struct, frozen=True, kw_only=True):
    """One recommendation: a stable code, and the numbers it rests on; money is in nano-dollars."""

    code: str
    facts: dict[str, Fact]


def advise(
    models: Sequence[Figures],
    summarizers: Sequence[Summarizing],
    paid: Repayment,
    *,
    unpriced: Collection[str] = (),
) -> Iterator[Advice]:
    """Yield what the numbers recommend; `unpriced` are the models that have no known price."""
    for each in models:
        yield from _missing_prices(each, unpriced)
    yield from _dear_summaries(summarizers)
    for writer in summarizers:
        yield from _rejected_summaries(writer)
    yield from _unpaid(paid)
    for each in models:
        yield from _losses(each)
        yield from _misjudged_cache(each)


def _missing_prices(of: Figures, unpriced: Collection[str]) -> Iterator[Advice]:
    if of.turns and of.unpriced_turns == of.turns and of.model in unpriced:
        yield _advice("prices-unknown", model=of.model, turns=of.turns)
    elif of.unpriced_turns:
        yield _advice("turns-unpriced", model=of.model, unpriced=of.unpriced_turns, turns=of.turns)


def _dear_summaries(summarizers: Sequence[Summarizing]) -> Iterator[Advice]:
    """Compare each summarizer with the cheapest that has the same score or a better one; what costs nothing is not compared.

    A summary without a model keeps references and tells no story, so that its score alone does not recommend it.
    """
    compared = [
        (each.cost_per_1000, each.score, each)
        for each in summarizers
        if each.cost_per_1000 and each.score is not None and min(each.priced, each.scored) >= LEAST_SUMMARIES
    ]
    for cost, score, dear in compared:
        as_good = [other for other in compared if other[1] >= score - SAME_SCORE]
        least, its_score, cheap = min(as_good, key=lambda other: other[0])
        if cost >= DEARER * least:
            yield _advice(
                "summaries-dear",
                dear=dear.by,
                cheap=cheap.by,
                factor=round(cost / least, 1),
                dear_cost=round(cost),
                cheap_cost=round(least),
                dear_score=round(score, 2),
                cheap_score=round(its_score, 2),
                dear_summaries=dear.summaries,
                cheap_summaries=cheap.summaries,
            )


def _rejected_summaries(of: Summarizing) -> Iterator[Advice]:
    # A summary that was repaired is counted on both sides, so that this is no more than there were.
    wrote = max(of.summaries, of.rejected)
    if wrote >= LEAST_SUMMARIES and of.rejected >= MANY_REJECTED * wrote:
        yield _advice("summaries-rejected", by=of.by, rejected=of.rejected, summaries=of.summaries)


def _unpaid(paid: Repayment) -> Iterator[Advice]:
    settled = paid.paid + paid.failed
    if settled >= LEAST_COMPACTIONS and paid.failed >= MANY_FAILED * settled:
        yield _advice(
            "not-paid-back",
            failed=paid.failed,
            settled=settled,
            undone=paid.undone,
            missing=paid.missing,
        )
    if paid.compared < LEAST_COMPACTIONS or paid.predicted is None or paid.realised is None:
        return
    if paid.realised >= 1 and paid.realised >= SLOWER * paid.predicted:
        yield _advice(
            "payback-slower",
            compactions=paid.compared,
            predicted=round(paid.predicted, 1),
            realised=round(paid.realised, 1),
        )


def _losses(of: Figures) -> Iterator[Advice]:
    if of.net is not None and of.net < 0 and of.passes >= LEAST_COMPACTIONS:
        yield _advice("net-negative", model=of.model, loss=-of.net, passes=of.passes, turns=of.turns)


def _misjudged_cache(of: Figures) -> Iterator[Advice]:
    if of.foreseen_turns >= LEAST_TURNS and of.foreseen_off is not None and of.foreseen_off >= FAR_OFF:
        off = round(of.foreseen_off, 3)
        yield _advice("cache-misjudged", model=of.model, off=off, turns=of.foreseen_turns)


def _advice(code: Code, **facts: Fact) -> Advice:
    return Advice(code=code, facts=facts)
