"""The numbers of a replay as its page needs them: policies by arm, dollars over the sessions, sessions, timelines."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lowwater.replay.pages.naming import OURS, about, label
from lowwater.replay.pages.timelines import Timeline, thinned
from lowwater.replay.running.figures import NANO, Figures
from lowwater.replay.running.on_course import OPTIMUM
from lowwater.replay.running.report import PolicyReport, Report
from lowwater.replay.running.results import Kind, SessionResult

MOST_SESSIONS = 2_000
MOST_STEPS = 240
_BESIDE = ("never", "threshold-50", "hermes-classic", "claude-code", "opencode", "langchain")
"""Policies that sessions are listed with beside ours, as far as they were played: the first three of these."""
_COLUMNS = 3


class PolicyRow(Struct, frozen=True, kw_only=True):
    """One policy in one arm; money in nano-dollars."""

    name: str
    policy: str
    kind: Kind
    """What played it."""
    about: str = ""
    is_ours: bool = False
    is_optimum: bool = False
    is_bounded: bool = False
    sessions: int
    unfit: int = 0
    cost: int | None = None
    with_rework: int | None = None
    mean: float | None = None
    """Cost with rework ÷ optimum over the sessions where compaction matters."""
    p95: float | None = None
    worst: float | None = None
    summed: float | None = None
    """Σ cost with rework ÷ Σ optimum over all sessions."""
    in_view: float | None = None
    reach: float | None = None
    """In view or one recall away; None where recall was not measured."""
    mean_view: float | None = None
    peak_view: int | None = None
    events: float | None = None
    between: float | None = None
    summaries: int | None = None
    reclaimed: float | None = None
    tokens: int | None = None
    earliest: int | None = None
    prunes: float | None = None


class ArmData(Struct, frozen=True, kw_only=True):
    """One arm."""

    name: str
    policies: list[PolicyRow]
    cumulated: list["Cumulated"]
    steps: list[int]
    """The sessions after which the sums are told."""
    compared: int
    """Sessions in the sums: those that fit under every policy."""


class Cumulated(Struct, frozen=True, kw_only=True):
    """What a policy has cost so far, rework included, as sessions add up."""

    name: str
    cost: list[int]


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session in the first arm."""

    name: str
    agent: str
    model: str
    calls: int
    peak: int
    optimum: int | None
    costs: list[int | None]
    """Of the policies in `columns`."""
    over: float | None
    """Ours ÷ optimum."""
    never_over: float | None
    """What never compacting costs ÷ optimum."""


class ReplayData(Struct, frozen=True, kw_only=True):
    """Everything the page's scripts draw."""

    arms: list[ArmData]
    columns: list[str]
    sessions: list[SessionRow]
    timelines: list[Timeline]


def data_of(report: Report, timelines: Sequence[Timeline]) -> ReplayData:
    """Return what the page of a report shows."""
    columns = _columns(report)
    rows = [_session(each, columns) for each in report.replayed]
    rows.sort(key=lambda row: (-(row.optimum or 0) * ((row.never_over or 1) - 1), row.name))
    return ReplayData(
        arms=[_arm(report, arm) for arm in report.arms],
        columns=columns,
        sessions=rows[:MOST_SESSIONS],
        timelines=list(timelines),
    )


def _columns(report: Report) -> list[str]:
    played = [each.policy for each in report.policies if each.course]
    beside = [name for name in (*_BESIDE, *played) if name in played and name not in (OURS, OPTIMUM)]
    return [*(name for name in played if name == OURS), *dict.fromkeys(beside)][: _COLUMNS + 1]


def _arm(report: Report, arm: str) -> ArmData:
    kind: Kind = "course" if any(each.course for each in report.policies) else "full"
    names = [
        each.policy
        for each in report.policies
        if (each.course if kind == "course" else each.full) and each.policy != OPTIMUM
    ]
    sessions = sorted(report.replayed, key=lambda each: (each.calls, each.place))
    found = [costs for each in sessions if (costs := _costs(each, arm, kind, names)) is not None]
    steps = [step + 1 for step in thinned(len(found), MOST_STEPS)]
    return ArmData(
        name=arm,
        policies=_policies(report, arm),
        cumulated=[
            Cumulated(name=name, cost=_sums([costs[index] for costs in found], steps))
            for index, name in enumerate([*(label(name, kind) for name in names), OPTIMUM])
        ],
        steps=steps,
        compared=len(found),
    )


def _costs(session: SessionResult, arm: str, kind: Kind, names: Sequence[str]) -> list[int] | None:
    """Return what a session costs under each policy and at least; None if it does not fit under one of them."""
    least = session.bound(arm).optimum
    told = {
        each.policy: each.total
        for each in session.outcomes
        if each.arm == arm and each.kind == kind and each.fits
    }
    return None if least is None or set(names) - set(told) else [*(told[name] for name in names), least]


def _sums(costs: Iterable[int], steps: Sequence[int]) -> list[int]:
    wanted, summed, told = set(steps), 0, []
    for count, cost in enumerate(costs, start=1):
        summed += cost
        if count in wanted:
            told.append(summed)
    return told


def _policies(report: Report, arm: str) -> list[PolicyRow]:
    """Return a row for each policy and what played it, and one for the optimum whether it was asked for or not."""
    rows = [
        _policy(each.policy, kind, figures[arm])
        for each in report.policies
        for kind, figures in _by_kind(each).items()
        if arm in figures
    ]
    return rows if any(row.is_optimum for row in rows) else [*rows, _optimum(report.replayed, arm)]


def _by_kind(policy: PolicyReport) -> dict[Kind, dict[str, Figures]]:
    return {"course": policy.course, "full": policy.full}


def _policy(policy: str, kind: Kind, found: Figures) -> PolicyRow:
    ratios, recall, metrics = found.cost_over_optimum, found.recall, found.metrics
    reach = None if recall.one_recall is None else (recall.in_view or 0) + recall.one_recall
    return PolicyRow(
        name=label(policy, kind),
        policy=policy,
        kind=kind,
        about=about(policy) if kind == "course" else "",
        is_ours=policy == OURS,
        is_optimum=policy == OPTIMUM,
        is_bounded=found.bound == OPTIMUM,
        sessions=found.sessions,
        unfit=found.unfit,
        cost=round(found.cost_usd * NANO) if found.sessions else None,
        with_rework=round(found.cost_with_rework_usd * NANO) if found.sessions else None,
        mean=ratios.mean,
        p95=ratios.p95,
        worst=ratios.max,
        summed=found.sum_over_optimum,
        in_view=recall.in_view,
        reach=reach,
        mean_view=found.mean_view,
        peak_view=found.peak_view,
        events=metrics.events_per_100_turns,
        between=metrics.turns_between_events,
        summaries=metrics.summary_calls,
        reclaimed=metrics.reclaimed_per_event,
        tokens=metrics.prompt_and_summary_tokens,
        earliest=metrics.earliest_changed,
        prunes=metrics.prunes_per_summary,
    )


def _optimum(sessions: Sequence[SessionResult], arm: str) -> PolicyRow:
    known = [least for each in sessions if (least := each.bound(arm).optimum) is not None]
    return PolicyRow(
        name=OPTIMUM,
        policy=OPTIMUM,
        kind="course",
        about=about(OPTIMUM),
        is_optimum=True,
        is_bounded=True,
        sessions=len(known),
        unfit=len(sessions) - len(known),
        with_rework=sum(known) if known else None,
        mean=1.0 if known else None,
        summed=1.0 if known else None,
    )


def _session(session: SessionResult, columns: Sequence[str]) -> SessionRow:
    bounds = session.bounds[0]
    told = [each for each in session.outcomes if each.arm == bounds.arm]
    costs = {each.policy: each.total for each in told if each.kind == "course" and each.fits}
    least, ours = bounds.optimum, costs.get(OURS)
    return SessionRow(
        name=session.id,
        agent=session.agent,
        model=session.model,
        calls=session.calls,
        peak=max((each.peak_view for each in told if each.fits), default=0),
        optimum=least,
        costs=[costs.get(name) for name in columns],
        over=ours / least if ours is not None and least else None,
        never_over=bounds.never / least if bounds.never is not None and least else None,
    )
