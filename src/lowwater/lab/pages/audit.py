"""The page of `lowwater audit --html`: its data and its texts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import time

from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.core.wording import counted
from lowwater.lab.audit.damage import (
    DAMAGE_COLUMNS,
    DAMAGE_MEANS,
    FEWEST,
    DamageLine,
    RepeatedSubject,
    damage_says,
)
from lowwater.lab.audit.findings import AuditedSession, Cause, Native, PromptKinds, sum_of_known
from lowwater.lab.audit.report import (
    AuditReport,
    ReportLine,
    by_model,
    by_project,
    dearest,
    estimate_gaps,
    report_line,
)
from lowwater.lab.pages.document import (
    NO_CONTENTS,
    HtmlDocument,
    Periods,
    Tile,
    listed,
    page_amount,
    page_money,
    page_share,
    page_tokens,
    periods_of,
    render_page,
)

# The data of charts and tables

MOST_SESSIONS = 2_000
MOST_NATIVES = 1_000
MOST_TIMELINES = 100
MOST_POINTS = 1_500
"""The most calls that are drawn of a session; of longer ones, evenly spaced calls, and those at misses and compactions."""
NO_PROJECT = "no folder recorded"
NO_MODEL = "not recorded"


class CauseWords(Struct, frozen=True, kw_only=True):
    """The name of a cause of cache misses, and what it means."""

    name: str
    means: str


CAUSES: Mapping[Cause, CauseWords] = {
    "first": CauseWords(name="First call", means="no other session had left the prompt in the cache"),
    "compaction": CauseWords(name="Compaction", means="the client replaced its history"),
    "model_changed": CauseWords(name="Model changed", means="each model has a cache of its own"),
    "expired": CauseWords(name="Expired", means="the pause was longer than the cache keeps a prompt"),
    "start_changed": CauseWords(
        name="Tools or system changed", means="the prompt began differently than before"
    ),
    "prefix_edited": CauseWords(
        name="Earlier messages edited", means="the client changed or dropped what had been sent"
    ),
    "uncached": CauseWords(name="No caching", means="no call of the session used the cache"),
    "boundary": CauseWords(
        name="Boundary", means="a few newest tokens behind the provider's last stored step"
    ),
    "evicted": CauseWords(
        name="Lost at the provider", means="evicted early or sent to another machine: what remains"
    ),
}


class CauseRow(Struct, frozen=True, kw_only=True):
    """The cache misses of one cause."""

    name: str
    means: str
    is_loss: bool
    """Whether the misses were avoidable; the first call of a session has to write its prompt."""
    misses: int
    tokens: int
    cost: int | None


class SpendingRow(Struct, frozen=True, kw_only=True):
    """What one kind of token cost."""

    name: str
    tokens: int
    cost: int


class ModelRow(Struct, frozen=True, kw_only=True):
    """One model over all sessions."""

    model: str
    sessions: int
    calls: int
    read: int
    written: int
    uncached: int
    output: int
    hit: float | None
    unpriced: int
    cost: int | None


class AuditSessionRow(Struct, frozen=True, kw_only=True):
    """One session."""

    name: str
    title: str
    """The beginning of what the user said first; empty unless contents may be shown."""
    project: str
    agent: str
    model: str
    relation: str
    started: float | None
    calls: int
    prompt: int
    peak: int
    hit: float | None
    missed: int | None
    saving: int | None
    cost: int | None


class NativeRow(Struct, frozen=True, kw_only=True):
    """One compaction of the client's own."""

    session: str
    at: float | None
    trigger: str
    before: int
    after: int
    served: int
    price: int | None
    saved: int | None
    net: int | None
    earlier: int | None


class DamageRow(Struct, frozen=True, kw_only=True):
    """What the compactions of one client, or of one version of it, made the agent read or do again."""

    name: str
    order: int
    """Clients come before their versions, and those before versions with few compactions."""
    is_telling: bool
    """Whether it is a client, or a version with enough compactions to say something; the others are folded."""
    compactions: int
    repeating: float | None
    repeating_elsewhere: float | None
    repeated: float | None
    repeated_elsewhere: float | None
    until_work: float | None
    until_work_elsewhere: float | None
    repeated_cost: int | None
    extra_cost: int | None


class SavingRow(Struct, frozen=True, kw_only=True):
    """What the same sessions would have cost with another policy."""

    name: str
    cost: int
    is_estimated: bool = True
    is_ours: bool = False


class TimelineMark(Struct, frozen=True, kw_only=True):
    """One of the client's own compactions in a session's timeline."""

    call: int
    """The number of the first call after it."""
    before: int
    after: int
    trigger: str


class MissRow(Struct, frozen=True, kw_only=True):
    """One cache miss of a session."""

    call: int
    at: float | None
    cause: str
    means: str
    tokens: int
    cost: int | None


class AuditTimeline(Struct, frozen=True, kw_only=True):
    """One session call by call."""

    session: str
    call: list[int]
    at: list[float | None]
    read: list[int]
    written: list[int]
    uncached: list[int]
    output: list[int]
    cost: list[int | None]
    held: dict[str, list[int]]
    """What the prompts held, by kind of content."""
    marks: list[TimelineMark]
    misses: list[MissRow]


class ProjectRow(Struct, frozen=True, kw_only=True):
    """All sessions in one folder."""

    name: str
    sessions: int
    calls: int
    prompt: int
    hit: float | None
    missed: int | None
    cost: int | None


class AuditData(Struct, frozen=True, kw_only=True):
    """Everything that the page's scripts draw."""

    periods: Periods
    spending: list[SpendingRow]
    causes: list[CauseRow]
    savings: list[SavingRow]
    projects: list[ProjectRow]
    sessions: list[AuditSessionRow]
    timelines: list[AuditTimeline]
    """Only of the most expensive sessions."""
    natives: list[NativeRow]
    damage: list[DamageRow]
    repeated: list[RepeatedSubject]
    models: list[ModelRow]


def audit_page_data(report: AuditReport, *, with_contents: bool = False) -> AuditData:
    """Return the data for the page of a report; titles of sessions only `with_contents`."""
    sessions = report.sessions
    rows = (_session(session, title=session.title if with_contents else "") for session in sessions)
    listed = sorted(rows, key=lambda row: (-(row.cost or 0), -row.prompt, row.name))
    natives = [_native(session, native) for session in sessions for native in session.natives]
    natives.sort(key=lambda row: (-(row.price or 0), row.session, row.at or 0.0))
    return AuditData(
        periods=_periods(sessions),
        spending=_spending(report.total),
        causes=_causes(report.total),
        savings=_savings(report),
        projects=[_project_row(line) for line in by_project(sessions)[:MOST_SESSIONS]],
        sessions=listed[:MOST_SESSIONS],
        timelines=[_timeline(session) for session in dearest(sessions)[:MOST_TIMELINES] if session.calls],
        natives=natives[:MOST_NATIVES],
        damage=[
            _damage(line, order)
            for order, line in enumerate(sorted(report.damage, key=lambda line: bool(line.version)))
        ],
        repeated=list(report.repeated[:MOST_NATIVES]),
        models=[_model(line) for line in by_model(sessions)],
    )


def _periods(sessions: Iterable[AuditedSession]) -> Periods:
    costs: dict[tuple[str, str], int] = {}
    for row in (row for session in sessions for row in session.rows):
        if row.day and row.figures.cost is not None:
            costs[row.day, row.model] = costs.get((row.day, row.model), 0) + row.figures.cost
    return periods_of(costs)


def _spending(line: ReportLine) -> list[SpendingRow]:
    used, spent = line.figures, line.spending
    found = [
        SpendingRow(name="cache reads", tokens=used.cache_read, cost=spent.reads),
        SpendingRow(name="cache writes", tokens=used.written, cost=spent.writes),
        SpendingRow(name="uncached input", tokens=used.uncached, cost=spent.uncached),
        SpendingRow(name="output", tokens=used.output, cost=spent.output),
    ]
    return sorted(found, key=lambda row: -row.cost)


def _causes(line: ReportLine) -> list[CauseRow]:
    found = [
        CauseRow(
            name=CAUSES[cause].name,
            means=CAUSES[cause].means,
            is_loss=cause != "first",
            misses=one.misses,
            tokens=one.tokens,
            cost=one.cost,
        )
        for cause, one in line.missed.items()
    ]
    return sorted(found, key=lambda row: -(row.cost or 0))


def _savings(report: AuditReport) -> list[SavingRow]:
    """Return what the sessions that could be estimated cost, and what other policies would have cost."""
    possible = report.possible
    if possible is None:
        return []
    return [
        SavingRow(name="as recorded", cost=possible.recorded, is_estimated=False),
        SavingRow(name="rent-or-buy", cost=possible.rent_or_buy, is_ours=True),
        SavingRow(name="never compacting", cost=possible.never),
    ]


def _session(session: AuditedSession, *, title: str) -> AuditSessionRow:
    line = report_line(session)
    used = line.figures
    return AuditSessionRow(
        name=session.id,
        title=title,
        project=_project(session.project),
        agent=session.agent,
        model=session.model,
        relation=session.relation,
        started=session.started_at,
        calls=used.calls,
        prompt=used.prompt,
        peak=session.peak_prompt,
        hit=used.hit_share,
        missed=line.lost,
        saving=None if session.saving is None else session.saving.rent_or_buy,
        cost=used.cost,
    )


def _project(folder: str) -> str:
    """Return the last two parts of a folder's path, whichever operating system it is from."""
    return "/".join(re.split(r"[\\/]", folder.rstrip("\\/"))[-2:]) or NO_PROJECT


def _project_row(line: ReportLine) -> ProjectRow:
    used = line.figures
    return ProjectRow(
        name=_project(line.name),
        sessions=line.sessions,
        calls=used.calls,
        prompt=used.prompt,
        hit=used.hit_share,
        missed=line.lost,
        cost=used.cost,
    )


def _timeline(session: AuditedSession) -> AuditTimeline:
    of = session.calls
    assert of is not None
    places = {number: at for at, number in enumerate(of.number)}
    marks = [
        TimelineMark(call=native.call + 1, before=native.before, after=native.after, trigger=native.trigger)
        for native in session.natives
        if native.call + 1 in places
    ]
    missed = [
        at for at, cause in enumerate(of.cause) if cause is not None and cause not in ("first", "boundary")
    ]
    shown = _shown(len(of.number), [*missed, *(places[mark.call] for mark in marks)])
    return AuditTimeline(
        session=session.id,
        call=[of.number[at] for at in shown],
        at=[of.at[at] for at in shown],
        read=[of.read[at] for at in shown],
        written=[of.written[at] for at in shown],
        uncached=[of.uncached[at] for at in shown],
        output=[of.output[at] for at in shown],
        cost=[of.cost[at] for at in shown],
        held={kind: [getattr(of.held[at], kind) for at in shown] for kind in PromptKinds.__struct_fields__},
        marks=marks,
        misses=[
            MissRow(
                call=of.number[at],
                at=of.at[at],
                cause=CAUSES[cause].name,
                means=CAUSES[cause].means,
                tokens=of.missed[at],
                cost=of.missed_cost[at],
            )
            for at in missed
            if (cause := of.cause[at]) is not None
        ],
    )


def _shown(count: int, wanted: Sequence[int]) -> list[int]:
    """Return the indexes of the calls that are drawn."""
    if count <= MOST_POINTS:
        return list(range(count))
    even = {round(at * (count - 1) / (MOST_POINTS - 1)) for at in range(MOST_POINTS)}
    around = {at + off for at in wanted[:MOST_POINTS] for off in (-1, 0)}
    return sorted(at for at in even | around if 0 <= at < count)


def _native(session: AuditedSession, native: Native) -> NativeRow:
    known = native.summary_cost is not None and native.rewrite_cost is not None
    return NativeRow(
        session=session.id,
        at=native.at,
        trigger=native.trigger if native.kind == "summary" else f"{native.trigger} {native.kind}".strip(),
        before=native.before,
        after=native.after,
        served=native.served,
        price=sum_of_known((native.summary_cost, native.rewrite_cost)) if known else None,
        saved=native.saved,
        net=native.net,
        earlier=native.earlier,
    )


def _damage(line: DamageLine, order: int) -> DamageRow:
    return DamageRow(
        name=line.name,
        order=order,
        is_telling=not line.version or line.compactions >= FEWEST,
        compactions=line.compactions,
        repeating=line.repeating_share,
        repeating_elsewhere=line.repeating_elsewhere,
        repeated=line.repeated,
        repeated_elsewhere=line.repeated_elsewhere,
        until_work=line.until_work,
        until_work_elsewhere=line.until_work_elsewhere,
        repeated_cost=line.repeated_cost,
        extra_cost=line.extra_cost,
    )


def _model(line: ReportLine) -> ModelRow:
    used = line.figures
    return ModelRow(
        model=line.name or NO_MODEL,
        sessions=line.sessions,
        calls=used.calls,
        read=used.cache_read,
        written=used.written,
        uncached=used.uncached,
        output=used.output,
        hit=used.hit_share,
        unpriced=used.unpriced,
        cost=used.cost,
    )


# The page and its texts

_WITH_CONTENTS = (
    "numbers, names of models, names and titles of sessions, and what was repeated after compactions"
)
_MOST_PRICES = 12
"""Models whose prices the page lists."""


def audit_page(report: AuditReport, *, made_at: float | None = None, with_contents: bool = False) -> str:
    """Return a report as one HTML file that needs no network and contains no message; `with_contents`, titles of sessions."""
    data = audit_page_data(report, with_contents=with_contents)
    return render_page(
        HtmlDocument(
            report="audit",
            headline=_headline(report),
            lead=_lead(report),
            tiles=tuple(_tiles(report)),
            texts=_texts(report, data),
            notes=tuple(_notes(report, data)),
            models=_models(data),
            holds=_WITH_CONTENTS if with_contents else NO_CONTENTS,
            made_at=time() if made_at is None else made_at,
            data=data,
        )
    )


def _headline(report: AuditReport) -> str:
    line, possible = report.total, report.possible
    if line.figures.cost is None:
        return f"{counted(line.figures.calls, 'call')} in {counted(line.sessions, 'session')}, no price known"
    paid = f"{counted(line.sessions, 'session')} cost {page_money(line.figures.cost)}"
    if possible is not None and possible.rent_or_buy < possible.recorded:
        saved = possible.recorded - possible.rent_or_buy
        return f"{paid}; about {page_money(saved)} of it could have been saved"
    lost = line.lost
    return f"{paid}, {page_money(lost)} of it for cache misses" if lost else paid


def _lead(report: AuditReport) -> str:
    days = [row.day for session in report.sessions for row in session.rows if row.day]
    when = f" from {min(days)} to {max(days)}" if days else ""
    agents = listed(sorted({session.agent for session in report.sessions}))
    by = f", recorded by {agents}" if agents else ""
    return (
        f"{counted(report.total.figures.calls, 'call')}{when}{by}, read from {counted(report.files, 'file')}."
    )


def _tiles(report: AuditReport) -> Iterator[Tile]:
    line = report.total
    used, possible = line.figures, report.possible
    calls = counted(used.calls - used.unpriced, "priced call")
    yield Tile(name="Paid", figure=page_amount(used.cost), note=calls)
    yield Tile(
        name="Input",
        figure=page_tokens(used.prompt),
        note=f"tokens, and {page_tokens(used.output)} of output",
    )
    yield Tile(name="From the cache", figure=page_share(used.hit_share), note="of all input")
    yield Tile(name="Cache misses", figure=page_amount(line.lost), note=_dearest_cause(report))
    if report.compacted.compactions:
        net = page_amount(report.compacted.net)
        note = f"saved by {counted(report.compacted.compactions, 'compaction')}, net"
        yield Tile(name="Own compactions", figure=net, note=note)
    if possible is not None:
        saved = possible.recorded - possible.rent_or_buy
        note = (
            f"estimated, {page_share(saved / possible.recorded if possible.recorded else None)} of the bill"
        )
        yield Tile(name="Rent-or-buy saves", figure=page_money(saved), note=note, is_ours=True)


def _dearest_cause(report: AuditReport) -> str:
    known = {cause: one.cost for cause, one in report.total.missed.items() if one.cost and cause != "first"}
    if not known:
        return "beside first calls"
    most = max(known, key=lambda cause: known[cause])
    return f"{CAUSES[most].name.lower()}: {page_money(known[most])}"


def _texts(report: AuditReport, data: AuditData) -> dict[str, str]:
    line, possible = report.total, report.possible
    unit = data.periods.unit
    together = "" if unit == "day" else f" The period is long, so days are combined into {unit}s."
    lost = f" Without first calls, misses cost {page_amount(line.lost)}." if line.lost is not None else ""
    return {
        "unit": unit,
        "periods_says": f"The cost of calls, by the {unit} they were made.{together}",
        "misses_says": (
            "A miss is input that the previous call had left in the cache and that was paid for again. "
            f"Its cost is what was paid beyond the price of a cache read.{lost}"
        ),
        "savings_says": _savings_says(report),
        "savings_caption": (
            "Estimated with a model of each session at its own prices, expected rework included; by the same model, the sessions "
            f"as recorded cost {page_money(possible.modelled)}."
            if possible is not None
            else ""
        ),
        "timeline_says": (
            "What each call's prompt held, and how much of it was read from the cache, written to it, or neither, with the client's own compactions; the "
            f"table below lists every miss with its cause. Click a chart to see one call.{_part(len(report.sessions), MOST_TIMELINES, 'session')}"
        ),
        "sessions_says": f"Click a project to see only its sessions, or a session to see its calls. Sub-agents and forks are sessions of their own.{_part(len(report.sessions), MOST_SESSIONS, 'session')}",
        "natives_says": _natives_says(report),
        "damage_says": "\n".join(damage_says(line) for line in report.damage if not line.version),
        "damage_means": f"{DAMAGE_MEANS} {DAMAGE_COLUMNS}" if report.damage else "",
    }


def _savings_says(report: AuditReport) -> str:
    possible = report.possible
    gaps = estimate_gaps(report)
    if possible is None:
        return gaps
    said = "The same session" if possible.sessions == 1 else f"The same {possible.sessions:,} sessions"
    return f"{said} with the compactions of rent-or-buy, which would have acted {possible.actions:,} times, and with no compaction until the context is full. Rent-or-buy is played on the sessions as numbers, with summaries by a model at the moment they are needed; lowwater replay plays the messages in the configuration that ships. {gaps}".rstrip()


def _natives_says(report: AuditReport) -> str:
    found = report.compacted
    if not found.compactions:
        return ""
    often = 100 * found.compactions / max(1, report.total.figures.calls)
    said = (
        f"{counted(found.compactions, 'compaction')}, {often:.1f} in 100 calls, cost {page_amount(found.cost)} and saved "
        f"{page_amount(found.saved)}."
    )
    if found.late and found.calls_late is not None:
        said += f" Rent-or-buy would have acted before {found.late:,} of them, {found.calls_late:,.0f} calls earlier in the median."
    return f"{said}{_part(found.compactions, MOST_NATIVES, 'compaction')}"


def _part(total: int, most: int, noun: str) -> str:
    """Return a sentence for a list that does not have all of them."""
    if total <= most:
        return ""
    return f" The {most:,} dearest of {counted(total, noun)} are listed; every sum is over all."


def _notes(report: AuditReport, data: AuditData) -> Iterator[str]:
    used = report.total.figures
    yield (
        "Calls, tokens and cache counters are as recorded, each call counted once; dollars are those counters times the "
        "model's prices on the day of the call."
    )
    yield "Output is as recorded; some clients record too little, so the bill may have been higher."
    if used.unpriced:
        yield f"{counted(used.unpriced, 'call')} have no dollar figure, because the price or the prompt size is not known. Sums of dollars do not include them."
    yield (
        "Causes of misses are inferred from sizes, times and the provider's published cache lifetimes. A miss that none of these "
        "explains counts as lost at the provider, which cannot be seen from outside."
    )
    yield "Estimated: what the client's own summaries cost where that is not recorded, what its compactions saved, and what other schedules would have cost."
    if report.accuracy is not None:
        found = report.accuracy
        yield (
            f"Accuracy of the cache rules: over {counted(found.sessions, 'session')} they predict the input bill within "
            f"{page_share(found.median_error)} in the median, and within {page_share(found.p90_error)} for nine in ten."
        )
    if report.copied:
        yield f"{counted(report.copied, 'call')} are in several files, because a fork or a resumed session copies earlier calls; they are counted once."
    if report.broken:
        yield f"{counted(report.broken, 'line')} could not be read and were left out."
    if report.unread:
        yield f"{counted(len(report.unread), 'file')} gave no session."
    if not all(row.day for session in report.sessions for row in session.rows):
        yield "Calls without a recorded time are in the sums, but in no day."
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
