"""Audits one recorded session."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage, together
from lowwater.core.costs.prices import cost_at
from lowwater.core.models.model import Prices
from lowwater.core.summary.activity import own_words
from lowwater.lab.audit.calls import AuditedCall, Miss, foreseen_bill, misses_of
from lowwater.lab.audit.carried import carried_by, held_by
from lowwater.lab.audit.damage import stretches_of
from lowwater.lab.audit.findings import (
    AuditedSession,
    AuditFigures,
    AuditRow,
    CallColumns,
    Cause,
    DayOf,
    Missed,
    Native,
    NotEstimated,
    PromptKinds,
    Saving,
    Spending,
    merged_missed,
    plus,
    total,
)
from lowwater.lab.audit.pauses import pauses_of
from lowwater.lab.audit.sizes import Sizes, natives_of, sizes_of
from lowwater.logs.recording import Recording

SAVINGS_TAIL = 20_000
"""Tokens of the protected tail in estimates."""
_MAX_BROKEN_PLACES = 5
_LONGEST_TITLE = 80


def rows_of(
    calls: Sequence[AuditedCall], misses: Sequence[Miss | None], day_of: DayOf
) -> tuple[AuditRow, ...]:
    """Return a sorted row for each day and model of the calls, without copies."""
    rows: dict[tuple[str, str], AuditRow] = {}
    for call, miss in zip(calls, misses, strict=True):
        if call.copied:
            continue
        day = "" if call.at is None else day_of(call.at)
        key = (day, call.model.name)
        one = AuditRow(
            day=day,
            model=call.model.name,
            figures=_figures(call),
            spending=_spending(call),
            missed=_missed(miss),
        )
        rows[key] = _row_sum(rows[key], one) if key in rows else one
    return tuple(rows[key] for key in sorted(rows))


def _row_sum(one: AuditRow, other: AuditRow) -> AuditRow:
    return replace(
        one,
        figures=plus(one.figures, other.figures),
        spending=plus(one.spending, other.spending),
        missed=merged_missed((one.missed, other.missed)),
    )


def _figures(call: AuditedCall) -> AuditFigures:
    usage = together(call.billed)
    output = call.output + sum(other.output for other in call.others)
    cost = call.cost
    return replace(_tokens(usage), calls=1, output=output, cost=cost, unpriced=int(cost is None))


def _tokens(usage: Usage) -> AuditFigures:
    return AuditFigures(
        uncached=usage.uncached,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        cache_write_long=usage.cache_write_long,
        output=usage.output,
    )


def _spending(call: AuditedCall) -> Spending:
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


def row_of_sum(usage: Usage, calls: Sequence[AuditedCall], day_of: DayOf) -> AuditRow:
    """Return the row of calls of which only the total usage was recorded.

    It has no price if the total is above a price cliff of the model, because prices then depend on the size of each call.
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
    return AuditRow(
        day="" if last.at is None else day_of(last.at),
        model=last.model.name,
        figures=figures,
        spending=Spending() if priced is None else _spent(usage, priced),
    )


def _missed(miss: Miss | None) -> dict[Cause, Missed]:
    return {} if miss is None else {miss.cause: Missed(misses=1, tokens=miss.tokens, cost=miss.cost)}


def audit_session(
    recording: Recording, calls: Sequence[AuditedCall], *, day_of: DayOf, with_contents: bool = False
) -> AuditedSession:
    """Return the audit of one session: usage and cost, cache misses, the client's compactions and possible savings."""
    misses = misses_of(calls)
    sizes = sizes_of(recording, calls, tail=SAVINGS_TAIL)
    natives = natives_of(recording, calls, misses, ratio=sizes.ratio, day_of=day_of)
    estimate = _estimate(sizes, calls, tuple(natives))
    times = [at for call in calls for at in (call.asked, call.answered) if at is not None and not call.copied]
    own = [call for call in calls if not call.copied]
    summed = recording.usage if own and not any(call.billed for call in own) else None
    return AuditedSession(
        id=recording.id,
        agent=recording.agent,
        path=recording.path,
        model=_main_model(own) or recording.model,
        parent=recording.parent,
        relation=recording.relation,
        project=recording.project,
        title=_title(recording),
        started_at=min(times, default=recording.started_at),
        ended_at=max(times, default=None),
        rows=(row_of_sum(summed, own, day_of),) if summed else rows_of(calls, misses, day_of),
        peak_prompt=max((call.usage.prompt for call in own if call.usage), default=0),
        natives=estimate.natives,
        stretches=tuple(stretches_of(recording, calls, day_of=day_of, with_contents=with_contents)),
        calls=_columns(calls, misses, held_by(recording, calls, sizes)),
        carried=carried_by(recording, calls, sizes.ratio),
        foreseen=foreseen_bill(calls),
        pauses=pauses_of(calls),
        saving=estimate.saving,
        not_estimated=estimate.why_not,
        broken=len(recording.broken),
        broken_at=tuple(line.place for line in recording.broken[:_MAX_BROKEN_PLACES]),
        copied=len(calls) - len(own),
    )


def _columns(
    calls: Sequence[AuditedCall], misses: Sequence[Miss | None], held: Mapping[int, PromptKinds]
) -> CallColumns:
    """Return the session's own calls as columns."""
    own = [(at, call, misses[at]) for at, call in enumerate(calls) if not call.copied]
    usages = [call.usage or Usage() for _, call, _ in own]
    return CallColumns(
        number=tuple(at + 1 for at, _, _ in own),
        at=tuple(call.at for _, call, _ in own),
        read=tuple(usage.cache_read for usage in usages),
        written=tuple(usage.cache_write + usage.cache_write_long for usage in usages),
        uncached=tuple(usage.uncached for usage in usages),
        output=tuple(call.output for _, call, _ in own),
        cost=tuple(call.cost for _, call, _ in own),
        held=tuple(held.get(call.index, PromptKinds()) for _, call, _ in own),
        cause=tuple(miss.cause if miss else None for _, _, miss in own),
        missed=tuple(miss.tokens if miss else 0 for _, _, miss in own),
        missed_cost=tuple(miss.cost if miss else None for _, _, miss in own),
    )


def _title(recording: Recording) -> str:
    """Return the beginning of what the user said first in this session, on one line; empty if nothing is recorded."""
    said = (
        own_words(each.message)
        for each in recording.messages
        if each.message.role == "user" and not each.kind
    )
    first = " ".join(next((text for text in said if text.strip()), "").split())
    return first if len(first) <= _LONGEST_TITLE else f"{first[: _LONGEST_TITLE - 1]}…"


class _Estimate(Struct, frozen=True, kw_only=True):
    natives: tuple[Native, ...]
    saving: Saving | None = None
    why_not: NotEstimated | None = None


def _estimate(sizes: Sizes, calls: Sequence[AuditedCall], natives: tuple[Native, ...]) -> _Estimate:
    """Return the possible saving, and the client's compactions compared with rent-or-buy; or why there is no estimate.

    The saving of a session that continues another one is counted with the other.
    """
    if not sizes.course.turns:
        return _Estimate(natives=natives, why_not="no_sizes")
    from lowwater.lab.audit.savings import (  # noqa: PLC0415 - numpy takes a while to load
        calls_earlier,
        recorded_sheet,
        saving_of,
    )

    sheet = recorded_sheet(calls)
    if sheet is None:
        return _Estimate(natives=natives, why_not="no_prices")
    summaries = [native.call for native in natives if native.kind == "summary"]
    prunes = [native.call for native in natives if native.kind == "prune"]
    compared = tuple(
        replace(
            native,
            earlier=calls_earlier(
                sizes.course, sheet, since=_last_summary_before(summaries, native), turn=native.call
            ),
        )
        for native in natives
    )
    if any(call.copied for call in calls):
        return _Estimate(natives=compared, why_not="copied")
    saving = saving_of(sizes.course, sheet, summaries, prunes)
    return _Estimate(natives=compared, saving=saving, why_not="too_large" if saving is None else None)


def _last_summary_before(summaries: Sequence[int], native: Native) -> int:
    """Return the call after the last summary before a compaction, else the first call."""
    return max((call for call in summaries if call < native.call), default=0)


def _main_model(calls: Sequence[AuditedCall]) -> str:
    names = [call.model.name for call in calls]
    return max(sorted(set(names)), key=names.count, default="")
