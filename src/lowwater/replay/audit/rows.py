"""What calls consumed, cost and missed, by day and model."""

from collections.abc import Sequence

from msgspec.structs import replace

from lowwater.core.api_calls import Usage, together
from lowwater.core.costs.prices import cost_at
from lowwater.core.models.model import Prices
from lowwater.replay.audit.audited import Cause, DayOf, Figures, Missed, Row, Spending
from lowwater.replay.audit.calls import Call
from lowwater.replay.audit.causes import Miss
from lowwater.replay.audit.summing import known_sum, merged_missed, plus, total


def rows_of(calls: Sequence[Call], misses: Sequence[Miss | None], day_of: DayOf) -> tuple[Row, ...]:
    """Return a row for each day and model of the calls, in order; copies are left out."""
    rows: dict[tuple[str, str], Row] = {}
    for call, miss in zip(calls, misses, strict=True):
        if call.copied:
            continue
        day = "" if call.at is None else day_of(call.at)
        key = (day, call.model.name)
        one = Row(
            day=day,
            model=call.model.name,
            figures=_figures(call),
            spending=_spending(call),
            missed=_missed(miss),
        )
        rows[key] = _together(rows[key], one) if key in rows else one
    return tuple(rows[key] for key in sorted(rows))


def _together(one: Row, other: Row) -> Row:
    return replace(
        one,
        figures=plus(one.figures, other.figures),
        spending=plus(one.spending, other.spending),
        missed=merged_missed((one.missed, other.missed)),
    )


def _figures(call: Call) -> Figures:
    usage = together(call.billed)
    output = call.output + sum(other.output for other in call.others)
    priced = [(each, call.prices_of(each)) for each in call.billed]
    costs = [None if prices is None else cost_at(each, prices) for each, prices in priced]
    cost = None if call.usage is None or None in costs else known_sum(costs)
    return replace(_tokens(usage), calls=1, output=output, cost=cost, unpriced=int(cost is None))


def _tokens(usage: Usage) -> Figures:
    return Figures(
        uncached=usage.uncached,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        cache_write_long=usage.cache_write_long,
        output=usage.output,
    )


def _spending(call: Call) -> Spending:
    if call.usage is None:
        return Spending()
    priced = ((each, call.prices_of(each)) for each in call.billed)
    return total(Spending, (_spent(usage, prices) for usage, prices in priced if prices is not None))


def _spent(usage: Usage, prices: Prices) -> Spending:
    return Spending(
        reads=cost_at(Usage(cache_read=usage.cache_read), prices),
        writes=cost_at(Usage(cache_write=usage.cache_write, cache_write_long=usage.cache_write_long), prices),
        uncached=cost_at(Usage(uncached=usage.uncached), prices),
        output=cost_at(Usage(output=usage.output), prices),
    )


def row_of_sum(usage: Usage, calls: Sequence[Call], day_of: DayOf) -> Row:
    """Return the row of calls of which only the sum was recorded.

    It has no price if the sum is above a cliff of the model: then the size of each call decides.
    """
    last = calls[-1]
    prices = last.model.prices_at(0, last.at)
    priced = prices if prices == last.model.prices_at(usage.prompt, last.at) else None
    figures = replace(
        _tokens(usage),
        calls=len(calls),
        cost=None if priced is None else cost_at(usage, priced),
        unpriced=len(calls) if priced is None else 0,
    )
    return Row(
        day="" if last.at is None else day_of(last.at),
        model=last.model.name,
        figures=figures,
        spending=Spending() if priced is None else _spent(usage, priced),
    )


def _missed(miss: Miss | None) -> dict[Cause, Missed]:
    return {} if miss is None else {miss.cause: Missed(misses=1, tokens=miss.tokens, cost=miss.cost)}
