"""Recommendations from the accounts of many sessions, each with the numbers it is based on."""

from collections.abc import Collection, Iterator, Sequence
from math import floor, log10
from string import Formatter
from typing import Literal, get_args

from msgspec import Struct

from lowwater.core.accounts.figures import Figures, Repayment, Summarizing
from lowwater.core.decisions import Fact

LEAST_TURNS = 20

LEAST_SUMMARIES = 5

LEAST_COMPACTIONS = 5

SAME_SCORE = 0.05
"""Scores that differ by no more count as the same."""

DEARER = 2.0
"""A summarizer this many times dearer than an equally good one is worth replacing."""

MANY_FAILED = 0.25

MANY_REJECTED = 0.25

SLOWER = 2.0
"""Paybacks that take this many times the predicted calls were predicted too optimistically."""

FAR_OFF = 0.05
"""The share of the prompts by which predicted cache reads may be wrong."""

_NANO = 1_000_000_000

AdviceCode = Literal[
    "prices-unknown",
    "turns-unpriced",
    "summaries-dear",
    "summaries-rejected",
    "not-paid-back",
    "payback-slower",
    "net-negative",
    "cache-misjudged",
]

CODES: tuple[AdviceCode, ...] = get_args(AdviceCode)

SENTENCES: dict[AdviceCode, str] = {
    "prices-unknown": "The prices of {model} are not known: what its turns cost (so many: {turns}) is missing from every sum.",
    "turns-unpriced": "What {unpriced} of {turns} turns on {model} cost is not known (their usage was not reported, or they were "
    "not billed at list prices) and is missing from every sum.",
    "summaries-dear": "Summaries by {dear} cost {factor}× those by {cheap} for the same score: {dear_cost:usd} against "
    "{cheap_cost:usd} per 1,000 tokens, scores {dear_score} and {cheap_score}, over {dear_summaries} and {cheap_summaries} "
    "summaries. Let {cheap} write them.",
    "summaries-rejected": "Of what {by} wrote, {rejected} summaries were not accepted as they were ({summaries} were put in place): "
    "another summarizer may need fewer repairs.",
    "not-paid-back": "Of {settled} compactions that are over, {failed} were undone, replaced or cut short before they had paid "
    "for themselves (undone: {undone}); {missing:usd} of what they cost was never saved. Compact later, or let the policy "
    "`rent-or-buy` decide when.",
    "payback-slower": "Compactions were to pay for themselves after {predicted} later calls and took {realised}, on average over "
    "{compactions}: expect less of them than is predicted.",
    "net-negative": "Compaction on {model} has cost {loss:usd} more than it saved, over {passes} compactions and {turns} turns: "
    "compact later or less often.",
    "cache-misjudged": "What {model} reads from its cache was foreseen {off:share} of the prompt off, over {turns} turns: see "
    "whether something at the start of the prompt changes from call to call, or calls go to different servers.",
}


class Advice(Struct, frozen=True, kw_only=True):
    """One recommendation: a stable code, and the numbers it is based on; money is in nano-dollars."""

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
    """Compare each summarizer with the cheapest one of the same or a better score; free ones are not compared.

    A summary without a model keeps references but tells no story, so its score alone does not recommend it.
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
    # A repaired summary counts both as rejected and as put in place, so the sum of both would be too high.
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


def _advice(code: AdviceCode, **facts: Fact) -> Advice:
    return Advice(code=code, facts=facts)


def advice_sentence(advice: Advice) -> str:
    """Return a recommendation in words, with all its numbers; an unknown code, of another version, is listed as it is."""
    words = {str(code): said for code, said in SENTENCES.items()}.get(advice.code)
    if words is None or advice.facts.keys() != _names_in(words):
        return f"{advice.code}: {', '.join(f'{name} {fact}' for name, fact in advice.facts.items())}."
    return _Words().vformat(words, (), advice.facts)


def _names_in(words: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(words) if name}


class _Words(Formatter):
    """Formats money (`:usd`) as dollars, shares (`:share`) as percentages, and other numbers with thousands separators."""

    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, str) or not isinstance(value, int | float):
            return str(value)
        match format_spec:
            case "usd":
                return advice_dollars(value)
            case "share":
                return f"{value:.1%}"
            case _:
                return f"{value:,}"


def advice_dollars(nano: float) -> str:
    """Return nano-dollars for people: with cents from one dollar on, with three significant digits below."""
    amount = abs(nano) / _NANO
    places = 2 if amount >= 1 or not amount else 2 - floor(log10(amount))
    return f"{'-' if nano < 0 else ''}${amount:,.{places}f}"
