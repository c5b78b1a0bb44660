"""The page of `lowwater replay --html`: its data and its texts."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappush, heappushpop
from itertools import accumulate
from time import time

from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import Model
from lowwater.core.wording import counted
from lowwater.lab.pages.document import HtmlDocument, Tile, listed, page_money, page_share, render_page, times
from lowwater.lab.peers import DECLARED, PEERS
from lowwater.lab.replay.as_recorded import AS_RECORDED
from lowwater.lab.replay.course_replay import (
    MATTERS,
    OPTIMUM,
    CourseEvent,
    OutcomeKind,
    Series,
    SessionResult,
)
from lowwater.lab.replay.live import CONFIGURATIONS
from lowwater.lab.replay.report import NANO, PolicyFigures, PolicyReport, ReplayReport, beside_recorded
from lowwater.lab.replay.script import ASSUMED, PAUSE

OURS = "rent-or-buy"
_ENGINE = ", real engine"
"""What follows the name of a policy that Lowwater itself played."""


def label(policy: str, kind: OutcomeKind) -> str:
    """Return a policy's name, and whether the real engine played it."""
    return f"{policy}{_ENGINE}" if kind == "full" and policy != AS_RECORDED else policy


def about(policy: str) -> str:
    """Return what a policy does in one sentence, from the docstring of its code; empty if it has none."""
    if policy == AS_RECORDED:
        return "The session with its client's own compactions."
    if policy == OPTIMUM:
        return "The cheapest schedule of prunes and summaries, found with hindsight."
    made = DECLARED.get(policy) or PEERS.get(policy)
    first, _, _ = (getattr(made, "__doc__", None) or "").partition("\n")
    return first.replace("`", "")


# Timelines: sessions drawn call by call

MOST_POINTS = 160
"""Calls of a timeline that are drawn; a few more where there are events."""
MOST_NUMBERS = 500_000
"""In all timelines together: about four megabytes."""
MOST_TIMELINES = 60
_LAYERS = 5
"""Lists of numbers in a line."""


class ChartMark(Struct, frozen=True, kw_only=True):
    """The compactions since the previous point, drawn as one."""

    index: int
    """The index of the point."""
    mode: str
    """The mode of the last compaction."""
    count: int
    before: int
    after: int


class ChartLine(Struct, frozen=True, kw_only=True):
    """One policy at the points of a timeline."""

    name: str
    read: list[int]
    written: list[int]
    elided: list[int]
    summarised: list[int]
    cost: list[int]
    """The cost so far, rework included."""
    marks: list[ChartMark]


class Timeline(Struct, frozen=True, kw_only=True):
    """One session under every policy, in the first arm."""

    name: str
    agent: str
    model: str
    calls: int
    at: list[int]
    """The numbers of the calls that are drawn, from 1."""
    lines: list[ChartLine]

    @property
    def numbers(self) -> int:
        """How many numbers it adds to the page."""
        return len(self.lines) * _LAYERS * len(self.at)


class _Candidate(Struct, frozen=True, kw_only=True, order=True):
    worth: int
    place: tuple[str, ...]
    timeline: Timeline


class Timelines:
    """Takes results in any order, and keeps the timelines that the page can show."""

    def __init__(self, most: int = MOST_TIMELINES) -> None:
        self._most = most
        self._kept: list[_Candidate] = []

    def add(self, result: SessionResult) -> None:
        """Take one result with its series."""
        if result.skipped or not result.bounds:
            return
        candidate = _worth(result), result.place
        if len(self._kept) >= self._most and candidate < (self._kept[0].worth, self._kept[0].place):
            return
        timeline = timeline_of(result)
        if not timeline.lines:
            return
        found = _Candidate(worth=candidate[0], place=candidate[1], timeline=timeline)
        if len(self._kept) < self._most:
            heappush(self._kept, found)
        else:
            heappushpop(self._kept, found)

    def chosen(self) -> tuple[Timeline, ...]:
        """Return the timelines that fit on a page; those in which compaction saves most come first."""
        return tuple(_within(sorted(self._kept, reverse=True)))


def _worth(result: SessionResult) -> int:
    """Return what the optimum saves compared with never compacting; 0 if one of them is not known."""
    bounds = result.bounds[0]
    return 0 if bounds.never is None or bounds.optimum is None else bounds.never - bounds.optimum


def _within(candidates: Sequence[_Candidate]) -> Iterator[Timeline]:
    left = MOST_NUMBERS
    for index, candidate in enumerate(candidates):
        left -= candidate.timeline.numbers
        if left < 0 and index:
            return
        yield candidate.timeline


def timeline_of(result: SessionResult) -> Timeline:
    """Return the timeline of a session, with no more points than a chart can show."""
    arm = result.bounds[0].arm
    told = [
        (label(each.policy, each.kind), each.series, each.events)
        for each in result.outcomes
        if each.arm == arm and each.fits and each.series is not None
    ]
    events = [
        event.turn for name, _, found in told if name.startswith(OURS) or name == OPTIMUM for event in found
    ]
    points = thinned(result.calls, MOST_POINTS, events)
    return Timeline(
        name=result.id,
        agent=result.agent,
        model=result.model,
        calls=result.calls,
        at=[point + 1 for point in points],
        lines=[_line(name, series, found, points) for name, series, found in told],
    )


def thinned(count: int, most: int, wanted: Collection[int] = ()) -> list[int]:
    """Return about `most` of `count` indices, evenly spread, plus the wanted ones and those before them."""
    if count <= most:
        return list(range(count))
    even = {round(step * (count - 1) / (most - 1)) for step in range(most)}
    near = {index for each in wanted for index in (each - 1, each) if 0 <= index < count}
    # Events at nearly every call would undo the thinning: then only the even indices are used.
    return sorted(even | near) if len(near) <= most else sorted(even)


def _line(name: str, series: Series, events: Sequence[CourseEvent], points: Sequence[int]) -> ChartLine:
    spent = list(accumulate(cost + rework for cost, rework in zip(series.cost, series.rework, strict=True)))
    return ChartLine(
        name=name,
        read=[series.read[point] for point in points],
        written=[series.written[point] for point in points],
        elided=[series.elided[point] for point in points],
        summarised=[series.summarised[point] for point in points],
        cost=[spent[point] for point in points],
        marks=list(_marks(events, points)),
    )


def _marks(events: Sequence[CourseEvent], points: Sequence[int]) -> Iterator[ChartMark]:
    """Yield the marks of events; those between two points are combined at the later one."""
    together: dict[int, list[CourseEvent]] = {}
    for event in events:
        together.setdefault(min(bisect_right(points, event.turn - 1), len(points) - 1), []).append(event)
    for index, found in together.items():
        yield ChartMark(
            index=index,
            mode=found[-1].mode,
            count=len(found),
            before=found[0].before,
            after=found[-1].after,
        )


# The data of charts and tables

MOST_SESSIONS = 2_000
MOST_STEPS = 240
"""Points of a curve of summed costs."""
_BESIDE = ("never", "threshold-50", "hermes-classic", "claude-code", "opencode", "langchain")
"""Policies that sessions are listed with, after ours: the first of these that were replayed."""
_COLUMNS = 3
"""How many other policies sessions are listed with."""


class PolicyRow(Struct, frozen=True, kw_only=True):
    """One policy in one arm; money in nano-dollars."""

    name: str
    policy: str
    kind: OutcomeKind
    """Whether it was played on numbers or by the real engine."""
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
    """The share in view or one recall away; None where recall was not measured."""
    mean_view: float | None = None
    peak_view: int | None = None
    events: float | None = None
    between: float | None = None
    summaries: int | None = None
    reclaimed: float | None = None
    rewritten: int | None = None
    tokens: int | None = None
    earliest: int | None = None
    prunes: float | None = None


class Cumulated(Struct, frozen=True, kw_only=True):
    """The cost of a policy, rework included, summed over sessions."""

    name: str
    cost: list[int]


class ArmData(Struct, frozen=True, kw_only=True):
    """One arm of the replay: all policies under one kind of cache."""

    name: str
    policies: list[PolicyRow]
    cumulated: list[Cumulated]
    steps: list[int]
    """The numbers of sessions after which sums are shown."""
    compared: int
    """How many sessions are in the sums: those that fit under every policy."""


class ReplaySessionRow(Struct, frozen=True, kw_only=True):
    """One session in the first arm."""

    name: str
    agent: str
    model: str
    calls: int
    peak: int
    optimum: int | None
    costs: list[int | None]
    """One for each policy in `columns`."""
    over: float | None
    """Ours ÷ optimum."""
    never_over: float | None
    """Never compacting ÷ optimum."""


class ReplayData(Struct, frozen=True, kw_only=True):
    """Everything that the page's scripts draw."""

    arms: list[ArmData]
    columns: list[str]
    sessions: list[ReplaySessionRow]
    timelines: list[Timeline]


def replay_page_data(report: ReplayReport, timelines: Sequence[Timeline]) -> ReplayData:
    """Return the data for the page of a report."""
    columns = _columns(report)
    rows = [_session(each, columns) for each in report.replayed]
    rows.sort(key=lambda row: (-(row.optimum or 0) * ((row.never_over or 1) - 1), row.name))
    return ReplayData(
        arms=[_arm(report, arm) for arm in report.arms],
        columns=columns,
        sessions=rows[:MOST_SESSIONS],
        timelines=list(timelines),
    )


def _columns(report: ReplayReport) -> list[str]:
    played = [each.policy for each in report.policies if each.course]
    beside = [name for name in (*_BESIDE, *played) if name in played and name not in (OURS, OPTIMUM)]
    return [*(name for name in played if name == OURS), *dict.fromkeys(beside)][: _COLUMNS + 1]


def _arm(report: ReplayReport, arm: str) -> ArmData:
    kind: OutcomeKind = "course" if any(each.course for each in report.policies) else "full"
    names = [
        each.policy
        for each in report.policies
        if arm in (each.course if kind == "course" else each.full) and each.policy != OPTIMUM
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


def _costs(session: SessionResult, arm: str, kind: OutcomeKind, names: Sequence[str]) -> list[int] | None:
    """Return the costs of a session under each policy, then the optimum; None if it does not fit under one of them."""
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


def _policies(report: ReplayReport, arm: str) -> list[PolicyRow]:
    """Return a row for each policy and kind of replay; the optimum has one even if it was not asked for."""
    rows = [
        _policy(each.policy, kind, figures[arm])
        for each in report.policies
        for kind, figures in _by_kind(each).items()
        if arm in figures
    ]
    return rows if any(row.is_optimum for row in rows) else [*rows, _optimum(report.replayed, arm)]


def _by_kind(policy: PolicyReport) -> dict[OutcomeKind, dict[str, PolicyFigures]]:
    return {"course": policy.course, "full": policy.full}


def _policy(policy: str, kind: OutcomeKind, found: PolicyFigures) -> PolicyRow:
    ratios, recall, metrics = found.cost_over_optimum, found.recall, found.metrics
    reach = None if recall.one_recall is None else (recall.in_view or 0) + recall.one_recall
    return PolicyRow(
        name=label(policy, kind),
        policy=policy,
        kind=kind,
        about=about(policy) if kind == "course" or policy == AS_RECORDED else "",
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
        rewritten=metrics.rewritten,
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


def _session(session: SessionResult, columns: Sequence[str]) -> ReplaySessionRow:
    bounds = session.bounds[0]
    told = [each for each in session.outcomes if each.arm == bounds.arm]
    costs = {each.policy: each.total for each in told if each.kind == "course" and each.fits}
    least, ours = bounds.optimum, costs.get(OURS)
    return ReplaySessionRow(
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


# The page and its texts

_MOST_PRICES = 12
_MOST_REASONS = 3


def replay_page(
    report: ReplayReport, *, timelines: Sequence[Timeline] = (), made_at: float | None = None
) -> str:
    """Return a report as one HTML file that needs no network and contains no message.

    `timelines` are the sessions to draw call by call (`Timelines`); without any, the page draws the session that the report shows.
    """
    drawn = timelines or ((timeline_of(report.shown),) if report.shown is not None else ())
    data = replay_page_data(report, drawn)
    first = data.arms[0] if data.arms else None
    return render_page(
        HtmlDocument(
            report="replay",
            headline=_headline(first),
            lead=_lead(report),
            tiles=tuple(_tiles(first)) if first else (),
            texts=_texts(report, data),
            notes=tuple(_notes(report, data)),
            models=_models(report),
            made_at=time() if made_at is None else made_at,
            data=data,
        )
    )


def _headline(arm: ArmData | None) -> str:
    if arm is None:
        return "No session could be replayed"
    ours, others = _ours(arm), _others(arm)
    if ours is None or ours.with_rework is None or ours.summed is None:
        return f"{counted(len(arm.policies) - 1, 'policy')} beside the cheapest schedule possible"
    within = f"Rent-or-buy comes within {page_share(ours.summed - 1)} of the cheapest schedule possible"
    dearer = [row.with_rework or 0 for row in others if (row.with_rework or 0) > ours.with_rework]
    if not dearer:
        return within
    least, most = (
        f"{cost / ours.with_rework - 1:.0%}".replace("%", " %") for cost in (dearer[0], dearer[-1])
    )
    more = least if least == most else f"{least} to {most}"
    who = "the others cost" if len(dearer) == len(others) else f"{len(dearer)} of {len(others)} others cost"
    return f"{within}; {who} {more} more"


def _lead(report: ReplayReport) -> str:
    done = report.replayed
    calls = sum(each.calls for each in done)
    models = listed(_by_use(report)[:3])
    agents = listed(sorted({each.agent for each in done}))
    said = f"{counted(len(done), 'recorded session')} with {counted(calls, 'call')}"
    by = f" of {agents}" if agents else ""
    return f"{said}{by}, replayed under every policy at the prices of {models or 'no model'}, and compared with the cheapest schedule in hindsight."


def _tiles(arm: ArmData) -> Iterator[Tile]:
    ours, others = _ours(arm), _others(arm)
    best = next((row for row in arm.policies if row.is_optimum), None)
    if ours is not None and ours.with_rework is not None:
        note = f"{page_money(ours.cost or 0)} for calls and summaries, the rest rework"
        yield Tile(name="Rent-or-buy", figure=page_money(ours.with_rework), note=note, is_ours=True)
        mean = f"mean where compaction matters; p95 {times(ours.p95)}"
        yield Tile(name="Cost ÷ optimum", figure=times(ours.mean), note=mean, is_ours=True)
    if best is not None and best.with_rework is not None:
        yield Tile(
            name="Optimum", figure=page_money(best.with_rework), note="with hindsight, rework included"
        )
    if others:
        yield Tile(name="Next cheapest", figure=page_money(others[0].with_rework or 0), note=others[0].name)
        yield Tile(name="Dearest", figure=page_money(others[-1].with_rework or 0), note=others[-1].name)
    engine = next((row for row in arm.policies if row.is_ours and row.reach is not None), None)
    if engine is not None:
        note = f"of later uses in view ({page_share(engine.in_view)}) or one recall away, real engine"
        yield Tile(name="Within reach", figure=page_share(engine.reach), note=note)


def _ours(arm: ArmData) -> PolicyRow | None:
    return next((row for row in arm.policies if row.name == OURS), None)


def _others(arm: ArmData) -> list[PolicyRow]:
    """Return the other policies played on numbers that fit in every session, the cheapest first."""
    found = [
        row
        for row in arm.policies
        if not row.is_ours
        and not row.is_optimum
        and row.kind == "course"
        and row.with_rework
        and not row.unfit
    ]
    return sorted(found, key=lambda row: row.with_rework or 0)


def _texts(report: ReplayReport, data: ReplayData) -> dict[str, str]:
    matter = sum(each.bounds[0].matters for each in report.replayed)
    compared = data.arms[0].compared if data.arms else 0
    done = len(report.replayed)
    missing = counted(done - compared, "session")
    verb = "does" if done - compared == 1 else "do"
    left = f" Left out: {missing} that {verb} not fit under every policy." if done > compared else ""
    listing = (
        f"The {MOST_SESSIONS:,} of {done:,} in which compaction saves most are listed. "
        if done > MOST_SESSIONS
        else ""
    )
    return {
        "ranges_says": (
            f"Compaction matters in {matter:,} of {counted(done, 'session')}: without it they cost more than {MATTERS:.2f} times the "
            "optimum. The dot is the mean over these, the band reaches to the 95th percentile, the thin line to the worst "
            "session (with an arrow: beyond the scale); the last column is over all sessions. Filled dots have the optimum's own actions and cannot cost less than 1; hollow ones have others."
        ),
        "cumulated_says": (
            f"Rework included, over {counted(compared, 'session')}, from the shortest to the longest: what long sessions add is on the right.{left}"
        ),
        "timelines_says": _timelines_says(done, data.timelines),
        "sessions_says": f"{listing}Costs include rework. A name that is underlined opens the session above.",
    }


def _timelines_says(done: int, timelines: Sequence[Timeline]) -> str:
    if not timelines:
        return ""
    thin = sum(len(each.at) < each.calls for each in timelines)
    which = (
        f"The {len(timelines):,} of {counted(done, 'session')} in which compaction saves most can be chosen."
        if len(timelines) < done
        else "Every session can be chosen."
    )
    thinned = (
        f" Long ones are thinned to about {MOST_POINTS} calls; an event is drawn at the next call."
        if thin
        else ""
    )
    return f"{which}{thinned}"


def _notes(report: ReplayReport, data: ReplayData) -> Iterator[str]:
    yield (
        "Measured: each recorded session, its messages and the times of its calls, replayed against a simulated provider with the "
        "model's prices and cache rules. The answers are those recorded: a policy changes what a call costs, not what it says."
    )
    yield (
        "Where a session is played in numbers, it consists of the tokens that each call added, at the prices of the default cache lifetime "
        "and without surcharges for long prompts or busy hours."
    )
    yield (
        "Rework is what it costs to get back what a later call demonstrably used and the view no longer had: one recall each, a read "
        "of the prompt and a write of the content."
    )
    yield (
        "The optimum is the cheapest schedule of prunes and summaries with hindsight, by dynamic programming. Policies with the same "
        "actions cannot cost less, which is asserted on every session; policies with other actions can."
    )
    yield "Policies named after other programs are models of them, played on the session in numbers; they are not those programs."
    names = {row.policy for arm in data.arms for row in arm.policies if row.kind == "full"}
    if names - {AS_RECORDED}:
        how = CONFIGURATIONS[report.configuration]
        yield (
            f"“Real engine” is Lowwater itself on the real messages, in the configuration “{how.name}”: {how.about.replace('`', '')}. Only there is recall measured: by a handle that is visible in the view, "
            "or by a search worded with text at hand; elsewhere, what left the view counts as lost."
        )
    if AS_RECORDED in names:
        difference = beside_recorded(report, OURS)
        yield (
            "“As-recorded” is the session with its client's own compactions, at the same prices, with the cache lifetime that it asked for; what the client did "
            f"again after them is among the calls of every policy. {f'{difference}.' if difference else ''}"
        ).rstrip()
    yield "Estimated: token counts where a model has no public tokenizer, the system prompt and tools where they were not recorded, and the size of summaries where a session is played in numbers."
    if len(data.arms) > 1:
        yield "The unkind cache loses prefixes early and sends some calls to the wrong machine, by draws that are the same for all policies."
    cut = [each.beyond for each in report.replayed if each.beyond]
    if cut:
        yield (
            f"{counted(len(cut), 'session')} with very many calls, played up to a limit: {counted(sum(cut), 'call')} beyond it are left "
            "out under every policy."
        )
    assumed = Counter(what for each in report.replayed for what in each.assumed)
    if assumed["times"]:
        yield f"{counted(assumed['times'], 'session')} without times: played with {PAUSE:.0f} seconds between calls."
    if assumed["model"]:
        yield f"{counted(assumed['model'], 'session')} without a model whose prices are known: charged as {ASSUMED}."
    skipped = Counter(each.skipped for each in report.sessions if each.skipped)
    for why, count in skipped.most_common(_MOST_REASONS):
        yield f"{counted(count, 'session')} could not be replayed: {why}."
    rest = sum(skipped.values()) - sum(count for _, count in skipped.most_common(_MOST_REASONS))
    if rest:
        yield f"{counted(rest, 'session')} more could not be replayed, for other reasons."


def _by_use(report: ReplayReport) -> list[str]:
    """Return the models of the replayed sessions, the most used first."""
    calls: Counter[str] = Counter()
    for each in report.replayed:
        calls[each.model] += each.calls
    return [model for model, _ in calls.most_common()]


def _models(report: ReplayReport) -> tuple[Model, ...]:
    registry = load_registry()
    found = {(model := registry.find(name)).name: model for name in _by_use(report)[:_MOST_PRICES]}
    return tuple(found.values())
