"""The page of `lowwater audit --html`: what the sessions cost, why, and what could be saved."""

from collections.abc import Iterator
from time import time

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.core.wording import counted
from lowwater.replay.audit.report import Report, estimate_gaps
from lowwater.replay.pages.audit_data import CAUSES, MOST_NATIVES, MOST_SESSIONS, NO_MODEL, AuditData, data_of
from lowwater.replay.pages.document import Document, Tile, written
from lowwater.replay.pages.words import amount, listed, money, share, short

_MOST_PRICES = 12
"""Models whose prices the page lists."""


def audit_page(report: Report, *, made_at: float | None = None) -> str:
    """Return a report as one HTML file that needs no network; contents of messages are not in it."""
    data = data_of(report)
    return written(
        Document(
            report="audit",
            headline=_headline(report),
            lead=_lead(report),
            tiles=tuple(_tiles(report)),
            texts=_texts(report, data),
            notes=tuple(_notes(report, data)),
            models=_models(data),
            made_at=time() if made_at is None else made_at,
            data=data,
        )
    )


def _headline(report: Report) -> str:
    line, possible = report.total, report.possible
    if line.figures.cost is None:
        return f"{counted(line.figures.calls, 'call')} in {counted(line.sessions, 'session')}, no price known"
    paid = f"{counted(line.sessions, 'session')} cost {money(line.figures.cost)}"
    if possible is not None and possible.rent_or_buy < possible.recorded:
        saved = possible.recorded - possible.rent_or_buy
        return f"{paid}; about {money(saved)} of it could have been saved"
    lost = line.lost
    return f"{paid}, {money(lost)} of it for cache misses" if lost else paid


def _lead(report: Report) -> str:
    days = [row.day for session in report.sessions for row in session.rows if row.day]
    when = f" from {min(days)} to {max(days)}" if days else ""
    agents = listed(sorted({session.agent for session in report.sessions}))
    by = f", recorded by {agents}" if agents else ""
    return (
        f"{counted(report.total.figures.calls, 'call')}{when}{by}, read from {counted(report.files, 'file')}."
    )


def _tiles(report: Report) -> Iterator[Tile]:
    line = report.total
    used, possible = line.figures, report.possible
    calls = counted(used.calls - used.unpriced, "priced call")
    yield Tile(name="Paid", figure=amount(used.cost), note=calls)
    yield Tile(
        name="Input",
        figure=short(used.prompt),
        note=f"tokens, and {short(used.output)} of output",
    )
    yield Tile(name="From the cache", figure=share(used.hit_share), note="of all input")
    yield Tile(name="Cache misses", figure=amount(line.lost), note=_dearest_cause(report))
    if report.compacted.compactions:
        net = amount(report.compacted.net)
        note = f"saved by {counted(report.compacted.compactions, 'compaction')}, net"
        yield Tile(name="Own compactions", figure=net, note=note)
    if possible is not None:
        saved = possible.recorded - possible.rent_or_buy
        note = f"estimated, {share(saved / possible.recorded if possible.recorded else None)} of the bill"
        yield Tile(name="Rent-or-buy saves", figure=money(saved), note=note, is_ours=True)


def _dearest_cause(report: Report) -> str:
    known = {cause: one.cost for cause, one in report.total.missed.items() if one.cost and cause != "first"}
    if not known:
        return "beside first calls"
    most = max(known, key=lambda cause: known[cause])
    return f"{CAUSES[most].name.lower()}: {money(known[most])}"


def _texts(report: Report, data: AuditData) -> dict[str, str]:
    line, possible = report.total, report.possible
    unit = data.periods.unit
    together = "" if unit == "day" else f" The period is long, so that days are put together into {unit}s."
    lost = f" Without the first calls they cost {amount(line.lost)}." if line.lost is not None else ""
    return {
        "unit": unit,
        "periods_says": f"What calls were billed, by the {unit} they were made.{together}",
        "misses_says": (
            "A miss is input that the call before had left in the cache and that was paid for again. "
            f"The cost is what that was more than reading.{lost}"
        ),
        "savings_says": _savings_says(report),
        "savings_caption": (
            "Told on a model of each session at its own prices, expected rework included; the model puts them at "
            f"{money(possible.modelled)} as recorded."
            if possible is not None
            else ""
        ),
        "sessions_says": f"Sub-agents and forks are sessions of their own.{_part(len(report.sessions), MOST_SESSIONS, 'session')}",
        "natives_says": _natives_says(report),
    }


def _savings_says(report: Report) -> str:
    possible = report.possible
    gaps = estimate_gaps(report)
    if possible is None:
        return gaps
    said = "The same session" if possible.sessions == 1 else f"The same {possible.sessions:,} sessions"
    return f"{said} with compactions bought by rent-or-buy, which would have acted {possible.actions:,} times, and with none at all below the wall. {gaps}".rstrip()


def _natives_says(report: Report) -> str:
    found = report.compacted
    if not found.compactions:
        return ""
    said = f"{counted(found.compactions, 'compaction')} cost {amount(found.cost)} and saved {amount(found.saved)}."
    if found.late and found.calls_late is not None:
        said += f" Before {found.late:,} of them rent-or-buy would have acted, {found.calls_late:,.0f} calls earlier in the median."
    return f"{said}{_part(found.compactions, MOST_NATIVES, 'compaction')}"


def _part(total: int, most: int, noun: str) -> str:
    """Return what is to be said where a list does not have all of them."""
    if total <= most:
        return ""
    return f" The {most:,} dearest of {counted(total, noun)} are listed; every sum is over all."


def _notes(report: Report, data: AuditData) -> Iterator[str]:
    used = report.total.figures
    yield (
        "Calls, tokens and cache counters are as the recordings report them, each call counted once; dollars are those "
        "counters times the model's prices of the day of the call."
    )
    yield "Output is as recorded; some clients record it too low, so that the bill may have been higher."
    if used.unpriced:
        yield f"{counted(used.unpriced, 'call')} have no dollar figure: no price or no prompt size is known. They are in no sum of dollars."
    yield (
        "Causes of misses follow from sizes, times and the provider's published lifetimes. What was lost at the provider "
        "cannot be seen from outside and is what remains."
    )
    yield "Estimated: what the client's own summaries cost where that is not recorded, what its compactions saved, and what other schedules would have cost."
    if report.accuracy is not None:
        found = report.accuracy
        yield (
            f"How far the cache rules can be trusted: over {counted(found.sessions, 'session')} they foresee the input "
            f"bill within {share(found.median_error)} in the median, {share(found.p90_error)} for nine in ten."
        )
    if report.copied:
        yield f"{counted(report.copied, 'call')} stand in several files, because a fork or a resumed session copies what came before; they are counted once."
    if report.broken:
        yield f"{counted(report.broken, 'line')} could not be read and were left out."
    if report.unread:
        yield f"{counted(len(report.unread), 'file')} gave no session."
    if not all(row.day for session in report.sessions for row in session.rows):
        yield "Calls without a recorded time are in the sums and in no day."
    if len(data.models) > _MOST_PRICES:
        yield f"Prices are listed for the {_MOST_PRICES} dearest models."


def _models(data: AuditData) -> tuple[Model, ...]:
    registry = load_registry()
    found = {
        (model := registry.find(row.model)).name: model
        for row in data.models[:_MOST_PRICES]
        if row.model != NO_MODEL
    }
    return tuple(found.values())
