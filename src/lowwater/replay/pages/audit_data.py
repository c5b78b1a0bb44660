"""The numbers of an audit as its page needs them: put together, and no more sessions than a browser shows at once."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from lowwater.replay.audit.audited import AuditedSession, Cause, Native
from lowwater.replay.audit.report import Line, Report, by_model, line_of
from lowwater.replay.audit.summing import known_sum
from lowwater.replay.pages.periods import Periods, periods_of

MOST_SESSIONS = 2_000
MOST_NATIVES = 1_000
NO_MODEL = "not recorded"


class CauseWords(Struct, frozen=True, kw_only=True):
    """A cause of a miss in words."""

    name: str
    means: str


CAUSES: Mapping[Cause, CauseWords] = {
    "first": CauseWords(name="First call", means="no other session had left the prompt in the cache"),
    "compaction": CauseWords(name="Compaction", means="the client replaced its history"),
    "model_changed": CauseWords(name="Model changed", means="each model has a cache of its own"),
    "expired": CauseWords(name="Expired", means="the pause was longer than the cache keeps a prompt"),
    "start_changed": CauseWords(
        name="Tools or system changed", means="the prompt began otherwise than before"
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
    """Misses of one cause."""

    name: str
    means: str
    is_loss: bool
    """Whether it need not have been; the first call of a session has to write its prompt."""
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


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session."""

    name: str
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


class SavingRow(Struct, frozen=True, kw_only=True):
    """What the same sessions would have cost in another way."""

    name: str
    cost: int
    is_estimated: bool = True
    is_ours: bool = False


class AuditData(Struct, frozen=True, kw_only=True):
    """Everything the page's scripts draw."""

    periods: Periods
    spending: list[SpendingRow]
    causes: list[CauseRow]
    savings: list[SavingRow]
    sessions: list[SessionRow]
    natives: list[NativeRow]
    models: list[ModelRow]


def data_of(report: Report) -> AuditData:
    """Return what the page of a report shows."""
    sessions = report.sessions
    listed = sorted(map(_session, sessions), key=lambda row: (-(row.cost or 0), -row.prompt, row.name))
    natives = [_native(session, native) for session in sessions for native in session.natives]
    natives.sort(key=lambda row: (-(row.price or 0), row.session, row.at or 0.0))
    return AuditData(
        periods=_periods(sessions),
        spending=_spending(report.total),
        causes=_causes(report.total),
        savings=_savings(report),
        sessions=listed[:MOST_SESSIONS],
        natives=natives[:MOST_NATIVES],
        models=[_model(line) for line in by_model(sessions)],
    )


def _periods(sessions: Iterable[AuditedSession]) -> Periods:
    costs: dict[tuple[str, str], int] = {}
    for row in (row for session in sessions for row in session.rows):
        if row.day and row.figures.cost is not None:
            costs[row.day, row.model] = costs.get((row.day, row.model), 0) + row.figures.cost
    return periods_of(costs)


def _spending(line: Line) -> list[SpendingRow]:
    used, spent = line.figures, line.spending
    found = [
        SpendingRow(name="cache reads", tokens=used.cache_read, cost=spent.reads),
        SpendingRow(name="cache writes", tokens=used.written, cost=spent.writes),
        SpendingRow(name="uncached input", tokens=used.uncached, cost=spent.uncached),
        SpendingRow(name="output", tokens=used.output, cost=spent.output),
    ]
    return sorted(found, key=lambda row: -row.cost)


def _causes(line: Line) -> list[CauseRow]:
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


def _savings(report: Report) -> list[SavingRow]:
    """Return what the sessions that could be estimated cost, and would have cost otherwise."""
    possible = report.possible
    if possible is None:
        return []
    return [
        SavingRow(name="as recorded", cost=possible.recorded, is_estimated=False),
        SavingRow(name="rent-or-buy", cost=possible.rent_or_buy, is_ours=True),
        SavingRow(name="never compacting", cost=possible.never),
    ]


def _session(session: AuditedSession) -> SessionRow:
    line = line_of(session)
    used = line.figures
    return SessionRow(
        name=session.id,
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


def _native(session: AuditedSession, native: Native) -> NativeRow:
    known = native.summary_cost is not None and native.rewrite_cost is not None
    return NativeRow(
        session=session.id,
        at=native.at,
        trigger=native.trigger if native.kind == "summary" else f"{native.trigger} {native.kind}".strip(),
        before=native.before,
        after=native.after,
        served=native.served,
        price=known_sum((native.summary_cost, native.rewrite_cost)) if known else None,
        saved=native.saved,
        net=native.net,
        earlier=native.earlier,
    )


def _model(line: Line) -> ModelRow:
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
