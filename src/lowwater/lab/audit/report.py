"""The report of an audit: totals over all sessions, and by session, model and day."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from statistics import median, quantiles

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.wording import counted
from lowwater.lab.audit.damage import DamageLine, RepeatedSubject, damage_by_client, repeated_subjects
from lowwater.lab.audit.files import AuditedFile, UnreadFile, merge_pieces
from lowwater.lab.audit.findings import (
    AuditedSession,
    AuditFigures,
    AuditRow,
    Carried,
    Cause,
    Missed,
    Native,
    NotEstimated,
    PauseCosts,
    Spending,
    merged_missed,
    sum_of_known,
    total,
)
from lowwater.lab.audit.pauses import total_pauses

_WHY_NOT: dict[NotEstimated, str] = {
    "no_prices": "no price is known",
    "no_sizes": "no prompt's size was recorded",
    "copied": "they continue another session and are estimated with it",
    "too_large": "they do not fit the model's window",
    "cut": "some of their days are left out",
}


class ReportLine(Struct, frozen=True, kw_only=True):
    """One session, model or day, or all of them."""

    name: str
    sessions: int
    figures: AuditFigures
    spending: Spending
    missed: dict[Cause, Missed]

    @property
    def lost(self) -> int | None:
        """The cost of avoidable misses: all but those of a session's first call."""
        return sum_of_known(one.cost for cause, one in self.missed.items() if cause != "first")


class CompactionTotals(Struct, frozen=True, kw_only=True):
    """Totals of the clients' own compactions; money only for those with known prices."""

    compactions: int
    cost: int | None
    """Summaries (partly estimated) and rewriting the cache."""
    saved: int | None
    net: int | None
    late: int
    """Compactions before which rent-or-buy would have acted."""
    calls_late: float | None
    """The median number of calls by which they were late."""


class Possible(Struct, frozen=True, kw_only=True):
    """The cost of all sessions with an estimate, and their estimated cost under other schedules."""

    sessions: int
    recorded: int
    never: int
    rent_or_buy: int
    actions: int
    modelled: int
    """The modelled cost of the recorded schedules, to compare with `recorded`."""


class Accuracy(Struct, frozen=True, kw_only=True):
    """How well the cache rules predict the input bill of a session from sizes and times."""

    sessions: int
    median_error: float
    p90_error: float


class AuditReport(Struct, frozen=True, kw_only=True):
    """The findings of all files."""

    files: int
    kept: int
    """Files whose findings came from the cache."""
    total: ReportLine
    sessions: tuple[AuditedSession, ...]
    compacted: CompactionTotals
    damage: tuple[DamageLine, ...]
    repeated: tuple[RepeatedSubject, ...]
    """What was read or done again after compactions, if the audit was to name it."""
    pauses: PauseCosts
    possible: Possible | None
    not_estimated: dict[NotEstimated, int]
    """The number of sessions that `possible` leaves out, by reason."""
    accuracy: Accuracy | None
    broken: int
    broken_at: tuple[str, ...]
    unread: tuple[UnreadFile, ...]
    copied: int


_LAST_DAY = "9999"


def report_of(files: Sequence[AuditedFile], *, since: str = "", until: str = _LAST_DAY) -> AuditReport:
    """Return the report on audited files, without the days before `since` and those from `until` on."""
    every = merge_pieces(session for file in files for session in file.sessions)
    sessions = [left for session in every if (left := _within(session, since, until)) is not None]
    unread = [one for file in files for one in file.unread]
    return AuditReport(
        files=len(files),
        kept=sum(file.from_cache for file in files),
        total=_line("", sessions, [row for session in sessions for row in session.rows]),
        sessions=tuple(sessions),
        compacted=_compacted([native for session in sessions for native in session.natives]),
        damage=tuple(damage_by_client(sessions)),
        repeated=tuple(repeated_subjects(sessions)),
        pauses=total_pauses([session.pauses for session in sessions]),
        possible=_possible(sessions),
        not_estimated=dict(Counter(why for session in sessions if (why := session.not_estimated))),
        accuracy=_accuracy(sessions),
        broken=sum(session.broken for session in every) + sum(one.broken for one in unread),
        broken_at=tuple(place for session in every for place in session.broken_at),
        unread=tuple(unread),
        copied=sum(file.repeated for file in files),
    )


def estimate_gaps(report: AuditReport) -> str:
    """Return a sentence on the sessions without an estimate; empty if there are none."""
    missing = report.not_estimated
    if not missing:
        return ""
    said = ", ".join(f"{why} ({count:,})" if len(missing) > 1 else why for count, why in _counts(missing))
    whom = "any session" if report.possible is None else counted(sum(missing.values()), "session")
    return f"What compaction could do is not estimated for {whom}: {said}."


def _counts(missing: Mapping[NotEstimated, int]) -> list[tuple[int, str]]:
    return sorted(((count, _WHY_NOT[why]) for why, count in missing.items()), reverse=True)


def report_line(session: AuditedSession) -> ReportLine:
    """Return one session as a line, named by its id."""
    return _line(session.id, [session], session.rows)


def dearest(sessions: Iterable[AuditedSession]) -> list[AuditedSession]:
    """Return the sessions, the most expensive first."""
    return sorted(sessions, key=lambda session: _dear(report_line(session)))


def by_model(sessions: Sequence[AuditedSession]) -> list[ReportLine]:
    """Return a line for each model, the most expensive first."""
    return sorted(_grouped(sessions, lambda row: row.model), key=_dear)


def by_week(sessions: Sequence[AuditedSession]) -> list[ReportLine]:
    """Return a line for each calendar week, as 2026-W27, in order."""
    return sorted(_grouped(sessions, lambda row: _week_of(row.day)), key=lambda line: line.name)


def by_project(sessions: Sequence[AuditedSession]) -> list[ReportLine]:
    """Return a line for each folder that agents worked in, the most expensive first."""
    folders = dict.fromkeys(session.project for session in sessions)
    every = [[session for session in sessions if session.project == folder] for folder in folders]
    lines = [
        _line(folder, found, [row for session in found for row in session.rows])
        for folder, found in zip(folders, every, strict=True)
    ]
    return sorted(lines, key=_dear)


def by_tool(sessions: Sequence[AuditedSession]) -> list[Carried]:
    """Return what filled the prompts of all sessions, the dearest first."""
    sums: dict[str, Carried] = {}
    for each in (carried for session in sessions for carried in session.carried):
        known = sums.get(each.name, Carried(name=each.name, calls=0, tokens=0, cost=0))
        sums[each.name] = replace(
            known,
            calls=known.calls + each.calls,
            tokens=known.tokens + each.tokens,
            cost=known.cost + each.cost,
        )
    return sorted(sums.values(), key=lambda one: (-one.cost, -one.tokens, one.name))


def _week_of(day: str) -> str:
    if not day:
        return ""
    week = date.fromisoformat(day).isocalendar()
    return f"{week.year}-W{week.week:02}"


def by_day(sessions: Sequence[AuditedSession]) -> list[ReportLine]:
    """Return a line for each day, in order."""
    return sorted(_grouped(sessions, lambda row: row.day), key=lambda line: line.name)


def _within(session: AuditedSession, since: str, until: str) -> AuditedSession | None:
    """Return the session without the days before `since` and from `until` on; predictions and savings exist for whole sessions only."""
    rows = tuple(row for row in session.rows if since <= row.day < until)
    if len(rows) == len(session.rows):
        return session
    if not rows:
        return None
    natives = tuple(native for native in session.natives if since <= native.day < until)
    stretches = tuple(stretch for stretch in session.stretches if since <= stretch.day < until)
    return replace(
        session,
        rows=rows,
        natives=natives,
        stretches=stretches,
        carried=(),
        calls=None,
        foreseen=None,
        pauses=None,
        saving=None,
        not_estimated="cut",
    )


def _dear(line: ReportLine) -> tuple[int, int, str]:
    return -(line.figures.cost or 0), -line.figures.prompt, line.name


def _grouped(sessions: Sequence[AuditedSession], name: Callable[[AuditRow], str]) -> list[ReportLine]:
    rows: dict[str, list[AuditRow]] = {}
    of: dict[str, dict[int, AuditedSession]] = {}
    for session in sessions:
        for row in session.rows:
            rows.setdefault(name(row), []).append(row)
            of.setdefault(name(row), {})[id(session)] = session
    return [_line(group, list(of[group].values()), found) for group, found in rows.items()]


def _line(name: str, sessions: Sequence[AuditedSession], rows: Sequence[AuditRow]) -> ReportLine:
    return ReportLine(
        name=name,
        sessions=len(sessions),
        figures=total(AuditFigures, (row.figures for row in rows)),
        spending=total(Spending, (row.spending for row in rows)),
        missed=merged_missed(row.missed for row in rows),
    )


def _compacted(natives: Sequence[Native]) -> CompactionTotals:
    earlier = [native.earlier for native in natives if native.earlier is not None]
    priced = [native for native in natives if native.net is not None]
    return CompactionTotals(
        compactions=len(natives),
        cost=sum_of_known((native.summary_cost or 0) + (native.rewrite_cost or 0) for native in priced),
        saved=sum_of_known(native.saved for native in priced),
        net=sum_of_known(native.net for native in priced),
        late=len(earlier),
        calls_late=float(median(earlier)) if earlier else None,
    )


def _possible(sessions: Sequence[AuditedSession]) -> Possible | None:
    found = [(session, session.saving) for session in sessions if session.saving is not None]
    if not found:
        return None
    recorded = sum(row.figures.cost or 0 for session, _ in found for row in session.rows)
    return Possible(
        sessions=len(found),
        recorded=recorded,
        never=recorded - sum(saving.never for _, saving in found),
        rent_or_buy=recorded - sum(saving.rent_or_buy for _, saving in found),
        actions=sum(saving.actions for _, saving in found),
        modelled=sum(saving.modelled for _, saving in found),
    )


def _accuracy(sessions: Sequence[AuditedSession]) -> Accuracy | None:
    errors = [abs(session.foreseen.error) for session in sessions if session.foreseen]
    if not errors:
        return None
    p90 = quantiles(errors, n=10, method="inclusive")[-1] if len(errors) > 1 else errors[0]
    return Accuracy(sessions=len(errors), median_error=median(errors), p90_error=p90)
