"""The page of `lowwater replay --html`."""

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
from lowwater.lab.pages.document import Document, Tile, listed, money, share, times, written
from lowwater.lab.peers import DECLARED, PEERS
from lowwater.lab.replay.on_course import MATTERS, OPTIMUM, Event, Kind, Series, SessionResult
from lowwater.lab.replay.report import NANO, PolicyFigures, PolicyReport, ReplayReport
from lowwater.lab.replay.script import ASSUMED, PAUSE

OURS = "rent-or-buy"
_ENGINE = ", real engine"
MOST_POINTS = 160
MOST_NUMBERS = 500_000
"""All numbers of all timelines: some four megabytes."""
MOST_TIMELINES = 60
_LAYERS = 5
MOST_SESSIONS = 2_000
MOST_STEPS = 240
_BESIDE = ("never", "threshold-50", "hermes-classic", "claude-code", "opencode", "langchain")
"""Policies that sessions are listed with beside ours, as far as they were played: the first three of these."""
_COLUMNS = 3
_MOST_PRICES = 12
_MOST_REASONS = 3


def label(policy: str, kind: Kind) -> str:
    """Return a policy's name, with what played it if that was the real engine."""
    return f"{policy}{_ENGINE}" if kind == "full" else policy


def about(policy: str) -> str:
    """Return in one sentence what a policy does, in the words of its code; empty if that says nothing."""
    if policy == OPTIMUM:
        return "The cheapest schedule of prunes and summaries, found with hindsight."
    made = DECLARED.get(policy) or PEERS.get(policy)
    first, _, _ = (getattr(made, "__doc__", None) or "").partition("\n")
    return first.replace("`", "")


class Mark(Struct, frozen=True, kw_only=True):
    """The compactions since the point before, drawn as one."""

    index: int
    """Of the point."""
    mode: str
    """Of the last."""
    count: int
    before: int
    after: int


class Line(Struct, frozen=True, kw_only=True):
    """One policy at the points of a timeline."""

    name: str
    read: list[int]
    written: list[int]
    elided: list[int]
    summarised: list[int]
    cost: list[int]
    """Spent so far, rework included."""
    marks: list[Mark]


class Timeline(Struct, frozen=True, kw_only=True):
    """One session under every policy, in the arm without bad luck."""

    name: str
    agent: str
    model: str
    calls: int
    at: list[int]
    """The calls that are drawn, from 1."""
    lines: list[Line]

    @property
    def numbers(self) -> int:
        """How many numbers it takes."""
        return len(self.lines) * _LAYERS * len(self.at)


class _Candidate(Struct, frozen=True, kw_only=True, order=True):
    worth: int
    place: tuple[str, ...]
    timeline: Timeline


class Timelines:
    """Takes results as they come, and keeps of them what the page can show; the order does not matter."""

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
        """Return the timelines that fit a page, those in which compaction saves most first."""
        return tuple(_within(sorted(self._kept, reverse=True)))


def timeline_of(result: SessionResult) -> Timeline:
    """Return a session's series at no more points than a chart can show."""
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
    """Return about `most` of `count` indices, evenly spread, with the wanted ones and those before them."""
    if count <= most:
        return list(range(count))
    even = {round(step * (count - 1) / (most - 1)) for step in range(most)}
    near = {index for each in wanted for index in (each - 1, each) if 0 <= index < count}
    # Events at every call would undo the thinning: then the even ones stand for them.
    return sorted(even | near) if len(near) <= most else sorted(even)


def _worth(result: SessionResult) -> int:
    """Return what the optimum saves beside doing nothing; without one of them, nothing is known."""
    bounds = result.bounds[0]
    return 0 if bounds.never is None or bounds.optimum is None else bounds.never - bounds.optimum


def _within(candidates: Sequence[_Candidate]) -> Iterator[Timeline]:
    left = MOST_NUMBERS
    for index, candidate in enumerate(candidates):
        left -= candidate.timeline.numbers
        if left < 0 and index:
            return
        yield candidate.timeline


def _line(name: str, series: Series, events: Sequence[Event], points: Sequence[int]) -> Line:
    spent = list(accumulate(cost + rework for cost, rework in zip(series.cost, series.rework, strict=True)))
    return Line(
        name=name,
        read=[series.read[point] for point in points],
        written=[series.written[point] for point in points],
        elided=[series.elided[point] for point in points],
        summarised=[series.summarised[point] for point in points],
        cost=[spent[point] for point in points],
        marks=list(_marks(events, points)),
    )


def _marks(events: Sequence[Event], points: Sequence[int]) -> Iterator[Mark]:
    """Yield the events, those between two points put together at the later one."""
    together: dict[int, list[Event]] = {}
    for event in events:
        together.setdefault(min(bisect_right(points, event.turn - 1), len(points) - 1), []).append(event)
    for index, found in together.items():
        yield Mark(
            index=index,
            mode=found[-1].mode,
            count=len(found),
            before=found[0].before,
            after=found[-1].after,
        )


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


def data_of(report: ReplayReport, timelines: Sequence[Timeline]) -> ReplayData:
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


def _columns(report: ReplayReport) -> list[str]:
    played = [each.policy for each in report.policies if each.course]
    beside = [name for name in (*_BESIDE, *played) if name in played and name not in (OURS, OPTIMUM)]
    return [*(name for name in played if name == OURS), *dict.fromkeys(beside)][: _COLUMNS + 1]


def _arm(report: ReplayReport, arm: str) -> ArmData:
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


def _policies(report: ReplayReport, arm: str) -> list[PolicyRow]:
    """Return a row for each policy and what played it, and one for the optimum whether it was asked for or not."""
    rows = [
        _policy(each.policy, kind, figures[arm])
        for each in report.policies
        for kind, figures in _by_kind(each).items()
        if arm in figures
    ]
    return rows if any(row.is_optimum for row in rows) else [*rows, _optimum(report.replayed, arm)]


def _by_kind(policy: PolicyReport) -> dict[Kind, dict[str, PolicyFigures]]:
    return {"course": policy.course, "full": policy.full}


def _policy(policy: str, kind: Kind, found: PolicyFigures) -> PolicyRow:
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


def replay_page(
    report: ReplayReport, *, timelines: Sequence[Timeline] = (), made_at: float | None = None
) -> str:
    """Return a report as one HTML file that needs no network; contents of messages are not in it.

    `timelines` are the sessions to be drawn call by call (`Timelines`); without any, it is the one the report has.
    """
    drawn = timelines or ((timeline_of(report.shown),) if report.shown is not None else ())
    data = data_of(report, drawn)
    first = data.arms[0] if data.arms else None
    return written(
        Document(
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


def _ours(arm: ArmData) -> PolicyRow | None:
    return next((row for row in arm.policies if row.name == OURS), None)


def _others(arm: ArmData) -> list[PolicyRow]:
    """Return the other policies of the same kind that can be compared in dollars, the cheapest first."""
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


def _headline(arm: ArmData | None) -> str:
    if arm is None:
        return "No session could be replayed"
    ours, others = _ours(arm), _others(arm)
    if ours is None or ours.with_rework is None or ours.summed is None:
        return f"{counted(len(arm.policies) - 1, 'policy')} beside the cheapest schedule possible"
    within = f"Rent-or-buy comes within {share(ours.summed - 1)} of the cheapest schedule possible"
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
    return f"{said}{by}, played again under every policy at the prices of {models or 'no model'}, against the schedule that hindsight finds."


def _tiles(arm: ArmData) -> Iterator[Tile]:
    ours, others = _ours(arm), _others(arm)
    best = next((row for row in arm.policies if row.is_optimum), None)
    if ours is not None and ours.with_rework is not None:
        note = f"{money(ours.cost or 0)} for calls and summaries, the rest rework"
        yield Tile(name="Rent-or-buy", figure=money(ours.with_rework), note=note, is_ours=True)
        mean = f"mean where compaction matters; p95 {times(ours.p95)}"
        yield Tile(name="Cost ÷ optimum", figure=times(ours.mean), note=mean, is_ours=True)
    if best is not None and best.with_rework is not None:
        yield Tile(name="Optimum", figure=money(best.with_rework), note="with hindsight, rework included")
    if others:
        yield Tile(name="Next cheapest", figure=money(others[0].with_rework or 0), note=others[0].name)
        yield Tile(name="Dearest", figure=money(others[-1].with_rework or 0), note=others[-1].name)
    engine = next((row for row in arm.policies if row.is_ours and row.reach is not None), None)
    if engine is not None:
        note = f"of later uses in view ({share(engine.in_view)}) or one recall away, real engine"
        yield Tile(name="Within reach", figure=share(engine.reach), note=note)


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
            "session (with an arrow: beyond the scale). Filled dots have the optimum's own actions and cannot cost less than 1; hollow ones have others."
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
        f" Long ones are thinned to about {MOST_POINTS} calls; an event stands at the next call drawn."
        if thin
        else ""
    )
    return f"{which}{thinned}"


def _notes(report: ReplayReport, data: ReplayData) -> Iterator[str]:
    yield (
        "Measured: each recorded session, its messages and the times of its calls, played again against a simulated provider with the "
        "model's prices and cache rules. The answers are those recorded: a policy changes what a call costs, not what it says."
    )
    yield (
        "Played in numbers, a session is what each call added, at the prices of the default cache lifetime and without surcharges for long "
        "prompts or busy hours."
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
    if any(row.kind == "full" for arm in data.arms for row in arm.policies):
        yield (
            "“Real engine” is Lowwater itself on the real messages. Only there is recall measured: by a handle that is visible in the view, "
            "or by a search worded with text at hand; elsewhere what left the view counts as gone."
        )
    yield "Estimated: token counts where a model has no public tokenizer, the system prompt and tools where they were not recorded, and the size of summaries on the course."
    if len(data.arms) > 1:
        yield "The unkind cache loses prefixes early and sends some calls to the wrong machine, by draws that are the same for all policies."
    cut = [each.beyond for each in report.replayed if each.beyond]
    if cut:
        yield (
            f"{counted(len(cut), 'session')} of very many calls, played up to a limit: {counted(sum(cut), 'call')} beyond it are left "
            "out under every policy alike."
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
    """Return the models that sessions were replayed with, the most used first."""
    calls: Counter[str] = Counter()
    for each in report.replayed:
        calls[each.model] += each.calls
    return [model for model, _ in calls.most_common()]


def _models(report: ReplayReport) -> tuple[Model, ...]:
    registry = load_registry()
    found = {(model := registry.find(name)).name: model for name in _by_use(report)[:_MOST_PRICES]}
    return tuple(found.values())
