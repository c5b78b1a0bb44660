"""The report of a replay run: figures by policy over all sessions, and the same as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, quantiles
from typing import Any

from msgspec import Struct, field, structs
from msgspec.structs import replace

from lowwater.lab.references.reachability import LOST_TO, LostTo
from lowwater.lab.replay.as_recorded import AS_RECORDED
from lowwater.lab.replay.course_replay import (
    Bounds,
    CadenceSums,
    OutcomeKind,
    PolicyOutcome,
    SessionResult,
    UsesFound,
)
from lowwater.lab.replay.live import CONFIGURATIONS, SHIPPED
from lowwater.logs.importers import Skipped

NANO = 1_000_000_000


class CostRatios(Struct, frozen=True, kw_only=True):
    """Cost ratios over the sessions where compaction matters; None if there are none."""

    mean: float | None = None
    p95: float | None = None
    max: float | None = None


class RecallShares(Struct, frozen=True, kw_only=True):
    """Shares of all later uses; None if not measured."""

    in_view: float | None = None
    one_recall: float | None = None
    gone: float | None = None
    reached: float | None = None
    """Of the uses that left the view, the share that one recall gets back."""
    uses: int = 0
    causes: dict[str, int] = {}
    """Why the uses that are gone could not be recalled, with their number."""
    measured_on: OutcomeKind = "course"
    recent: "LostUses | None" = None
    """The uses of results at most five calls old; None if not measured."""
    late: "LostUses | None" = None
    """The uses of older results."""


class LostUses(Struct, frozen=True, kw_only=True):
    """Uses of results of one age, and the share that is not in view, by what replaced the results."""

    uses: int
    lost: dict[LostTo, float]


class CadenceMetrics(Struct, frozen=True, kw_only=True):
    """The cadence metrics over all sessions."""

    events_per_100_turns: float | None
    turns_between_events: float | None
    summary_calls: int
    reclaimed_per_event: float | None
    rewritten: int
    prompt_and_summary_tokens: int
    earliest_changed: int | None
    prunes_per_summary: float | None


class PolicyFigures(Struct, frozen=True, kw_only=True):
    """One policy in one arm and of one kind, over all sessions in which its prompts fit."""

    sessions: int
    unfit: int
    """Sessions in which a prompt did not fit the window; the other fields leave them out."""
    matters: int
    """The sessions where compaction matters."""
    bound: str
    """The lower bound that holds for the policy: `optimum` or only `relaxed`."""
    cost_over_optimum: CostRatios
    """Including rework on both sides."""
    cost_over_relaxed: CostRatios
    cost_over_bound: CostRatios
    """÷ the lower bound on the engine's own actions, over the same sessions, including rework on both sides."""
    sum_over_optimum: float | None
    """Σ cost ÷ Σ optimum over all sessions, including rework on both sides."""
    sum_over_relaxed: float | None
    sum_over_bound: float | None
    cost_usd: float
    """Cost of calls and summaries."""
    summaries_usd: float
    rework_usd: float
    cost_with_rework_usd: float
    recall: RecallShares
    metrics: CadenceMetrics
    mean_view: float | None
    """Mean prompt over all calls."""
    peak_view: int


class PolicyReport(Struct, frozen=True, kw_only=True):
    """One policy, played on courses and by the real engine; empty if it was not."""

    policy: str
    course: dict[str, PolicyFigures] = field(default_factory=dict)
    """By arm."""
    full: dict[str, PolicyFigures] = field(default_factory=dict)


class ReplayReport(Struct, frozen=True, kw_only=True):
    """Everything a replay run found."""

    configuration: str
    """The name of the configuration in which the real engine played."""
    arms: tuple[str, ...]
    policies: tuple[PolicyReport, ...]
    sessions: tuple[SessionResult, ...]
    """Sorted, without their series."""
    shown: SessionResult | None
    """The session in which compaction could save most, with its series."""
    unread: tuple[Skipped, ...] = ()
    """Files, or parts of files, that could not be read."""

    @property
    def replayed(self) -> tuple[SessionResult, ...]:
        """The sessions that were not skipped."""
        return tuple(each for each in self.sessions if not each.skipped)

    @property
    def left_out(self) -> tuple[SessionResult, ...]:
        """The sessions that were skipped."""
        return tuple(each for each in self.sessions if each.skipped)


class Pair(Struct, frozen=True, kw_only=True):
    """The outcome of a policy in a session, and the session's lower bounds."""

    outcome: PolicyOutcome
    bounds: Bounds


class ReportBuilder:
    """Collects results in any order; the report does not depend on it."""

    def __init__(self) -> None:
        self._sessions: list[SessionResult] = []
        self._shown: SessionResult | None = None

    def add(self, result: SessionResult) -> None:
        """Add one result; only the session with the largest possible saving keeps its series."""
        self._sessions.append(without_series(result))
        if not result.skipped and (
            self._shown is None or _possible_saving(result) > _possible_saving(self._shown)
        ):
            self._shown = result

    def report(
        self,
        policies: Sequence[str],
        *,
        configuration: str = SHIPPED.name,
        unread: Sequence[Skipped] = (),
    ) -> ReplayReport:
        """Return the report of all results added, with the policies in this order."""
        sessions = tuple(sorted(self._sessions, key=lambda each: each.place))
        replayed = [each for each in sessions if not each.skipped]
        arms = tuple(dict.fromkeys(bounds.arm for each in replayed for bounds in each.bounds))
        reports = [
            PolicyReport(
                policy=name,
                course=_by_arm(replayed, name, "course", arms),
                full=_by_arm(replayed, name, "full", arms),
            )
            for name in policies
        ]
        return ReplayReport(
            configuration=configuration,
            arms=arms,
            policies=tuple(reports),
            sessions=sessions,
            shown=self._shown,
            unread=tuple(unread),
        )


def _by_arm(
    sessions: Iterable[SessionResult], policy: str, kind: OutcomeKind, arms: Sequence[str]
) -> dict[str, PolicyFigures]:
    pairs: Mapping[str, list[Pair]] = {arm: [] for arm in arms}
    for session in sessions:
        for outcome in session.outcomes:
            if (outcome.policy, outcome.kind) == (policy, kind):
                pairs[outcome.arm].append(Pair(outcome=outcome, bounds=session.bound(outcome.arm)))
    return {arm: figures_of(each) for arm, each in pairs.items() if each}


def without_series(result: SessionResult) -> SessionResult:
    """Return a result without the data that only charts need."""
    return replace(
        result,
        times=(),
        outcomes=tuple(replace(outcome, series=None, events=()) for outcome in result.outcomes),
    )


def _possible_saving(result: SessionResult) -> tuple[int, tuple[str, ...]]:
    """Return what the optimum saves in a session, with its sort key as a tie-breaker."""
    bounds = result.bounds[0]
    return (bounds.never or 0) - (bounds.optimum or 0), result.place


def recorded_cost(sessions: Iterable[SessionResult]) -> int:
    """Return the cost of sessions as recorded, as far as it is known."""
    return sum(each.recorded or 0 for each in sessions)


def figures_of(pairs: Sequence[Pair]) -> PolicyFigures:
    """Return the figures of one policy; they do not depend on the order of its sessions."""
    fitting = [pair for pair in pairs if pair.outcome.fits]
    bounded = [pair for pair in fitting if pair.bounds.optimum]
    mattering = [pair for pair in bounded if pair.bounds.matters]
    outcomes = [pair.outcome for pair in fitting]
    calls = sum(outcome.cadence.turns for outcome in outcomes)
    cost, rework = sum(each.cost for each in outcomes), sum(each.rework for each in outcomes)
    return PolicyFigures(
        sessions=len(fitting),
        unfit=len(pairs) - len(fitting),
        matters=len(mattering),
        bound="optimum" if pairs and all(pair.outcome.is_bounded for pair in pairs) else "relaxed",
        cost_over_optimum=_ratios(pair.outcome.total / (pair.bounds.optimum or 1) for pair in mattering),
        cost_over_relaxed=_ratios(pair.outcome.total / pair.bounds.relaxed for pair in mattering),
        cost_over_bound=_ratios(
            pair.outcome.total / least
            for pair in mattering
            if (least := pair.bounds.of(pair.outcome.kind)) is not None
        ),
        sum_over_optimum=_share(
            sum(pair.outcome.total for pair in bounded), sum(pair.bounds.optimum or 0 for pair in bounded)
        ),
        sum_over_relaxed=_share(cost + rework, sum(pair.bounds.relaxed for pair in fitting)),
        sum_over_bound=_over_bound(fitting),
        cost_usd=cost / NANO,
        summaries_usd=sum(each.summaries for each in outcomes) / NANO,
        rework_usd=rework / NANO,
        cost_with_rework_usd=(cost + rework) / NANO,
        recall=recall_shares(
            [each.recall for each in outcomes], kind=pairs[0].outcome.kind if pairs else "course"
        ),
        metrics=cadence_metrics([each.cadence for each in outcomes]),
        mean_view=_share(sum(round(each.mean_view * each.cadence.turns) for each in outcomes), calls),
        peak_view=max((each.peak_view for each in outcomes), default=0),
    )


def _over_bound(pairs: Sequence[Pair]) -> float | None:
    """Return the sum of costs ÷ that of bounds, over the sessions that have one."""
    known = [(pair.outcome.total, least) for pair in pairs if (least := pair.bounds.of(pair.outcome.kind))]
    return _share(sum(cost for cost, _ in known), sum(least for _, least in known))


def recall_shares(recalled: Sequence[UsesFound], *, kind: OutcomeKind) -> RecallShares:
    """Return the shares over the uses of all sessions."""
    uses, in_view = sum(each.uses for each in recalled), sum(each.in_view for each in recalled)
    if any(each.one_recall is None for each in recalled):
        return RecallShares(in_view=_share(in_view, uses), uses=uses, measured_on=kind)
    one_recall = sum(each.one_recall or 0 for each in recalled)
    causes: dict[str, int] = {}
    for each in recalled:
        for cause, count in each.causes.items():
            causes[cause] = causes.get(cause, 0) + count
    return RecallShares(
        in_view=_share(in_view, uses),
        one_recall=_share(one_recall, uses),
        gone=_share(uses - in_view - one_recall, uses),
        reached=_share(one_recall, uses - in_view),
        uses=uses,
        causes=dict(sorted(causes.items())),
        measured_on=kind,
        recent=_lost_uses(
            uses - sum(each.late for each in recalled), [each.lost_recent for each in recalled]
        ),
        late=_lost_uses(sum(each.late for each in recalled), [each.lost_late for each in recalled]),
    )


def _lost_uses(uses: int, lost: Sequence[Mapping[LostTo, int]]) -> LostUses:
    counts = {cause: sum(each.get(cause, 0) for each in lost) for cause in LOST_TO}
    return LostUses(uses=uses, lost={cause: count / uses for cause, count in counts.items() if count})


def cadence_metrics(cadences: Sequence[CadenceSums]) -> CadenceMetrics:
    """Return the metrics over all sessions; means weigh every event and turn alike."""
    events = sum(each.events for each in cadences)
    between = sum(max(0, each.events - 1) for each in cadences)
    changed = [each.earliest_changed for each in cadences if each.earliest_changed is not None]
    return CadenceMetrics(
        events_per_100_turns=_share(100 * events, sum(each.turns for each in cadences)),
        turns_between_events=_share(sum(each.intervals for each in cadences), between),
        summary_calls=sum(each.summary_calls for each in cadences),
        reclaimed_per_event=_share(sum(each.reclaimed for each in cadences), events),
        rewritten=sum(each.rewritten for each in cadences),
        prompt_and_summary_tokens=sum(each.prompt_and_summary_tokens for each in cadences),
        earliest_changed=min(changed, default=None),
        prunes_per_summary=_share(
            sum(each.prunes for each in cadences), sum(each.summaries for each in cadences)
        ),
    )


def _ratios(values: Iterable[float]) -> CostRatios:
    ratios = sorted(values)
    if not ratios:
        return CostRatios()
    p95 = quantiles(ratios, n=20, method="inclusive")[-1] if len(ratios) > 1 else ratios[0]
    return CostRatios(mean=fmean(ratios), p95=p95, max=ratios[-1])


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def report_json(report: ReplayReport) -> dict[str, Any]:
    """Return the report as JSON values: `policies` by name, lists of `sessions`, of those `skipped`, of files `unread`.

    The figures directly under a policy are those of the first arm on courses, or of the real engine if the policy cannot be
    played on a course. `recall` is measured by the real engine where it played, set up as `configuration` says.
    """
    return {
        "configuration": {
            "name": report.configuration,
            "about": CONFIGURATIONS[report.configuration].about,
        },
        "policies": {
            each.policy: _policy_json(each, report.arms)
            for each in report.policies
            if report.arms and report.arms[0] in _main_figures(each)
        },
        "sessions": [_session_json(each) for each in report.sessions],
        "skipped": {
            "sessions": len(report.left_out),
            "of_sessions": len(report.sessions),
            "recorded_usd": _dollars(recorded_cost(report.left_out)),
            "of_recorded_usd": _dollars(recorded_cost(report.sessions)),
            "each": [
                {
                    "id": each.id,
                    "path": each.path,
                    "why": each.skipped,
                    "recorded_usd": _dollars(each.recorded),
                }
                for each in report.left_out
            ],
        },
        "unread": [
            {"path": each.path, "why": each.why, "broken_lines": len(each.broken)} for each in report.unread
        ],
    }


def beside_recorded(report: ReplayReport, policy: str) -> str:
    """Return what a policy that the real engine played costs beside the recorded session, as a sentence.

    It is empty if one of them was not played or has other sessions than the other.
    """
    played = {
        each.policy: each.full[report.arms[0]] for each in report.policies if report.arms[0] in each.full
    }
    ours, recorded = played.get(policy), played.get(AS_RECORDED)
    if ours is None or recorded is None or ours.unfit or recorded.unfit or not recorded.cost_with_rework_usd:
        return ""
    cost, before = ours.cost_with_rework_usd, recorded.cost_with_rework_usd
    difference = f"{abs(1 - cost / before):.1%} {'less' if cost <= before else 'more'} than as recorded"
    return (
        f"{policy} in the configuration {report.configuration} costs ${cost:,.2f}, rework included: {difference} "
        f"(${before:,.2f})"
    )


def _main_figures(policy: PolicyReport) -> Mapping[str, PolicyFigures]:
    return policy.course or policy.full


def _policy_json(policy: PolicyReport, arms: tuple[str, ...]) -> dict[str, Any]:
    figures = _main_figures(policy)[arms[0]]
    strict = policy.full.get(arms[0], figures)
    return {
        **structs.asdict(figures),
        "recall": strict.recall,
        "played": "course" if policy.course else "full",
        "arms": {arm: each for arm, each in _main_figures(policy).items() if arm != arms[0]},
        "full": dict(policy.full) or None,
    }


def _session_json(session: SessionResult) -> dict[str, Any]:
    about = {
        name: getattr(session, name) for name in ("id", "agent", "path", "model", "calls", "beyond", "fixed")
    } | {"recorded_usd": _dollars(session.recorded), "assumed": session.assumed}
    if session.skipped:
        return {**about, "skipped": session.skipped}
    first = session.bounds[0]
    return {
        **about,
        "optimum_usd": _dollars(first.optimum),
        "relaxed_usd": _dollars(first.relaxed),
        "bound_usd": _dollars(first.least),
        "engine_bound_usd": _dollars(first.engine),
        "never_usd": _dollars(first.never),
        "matters": first.matters,
        "outcomes": [
            {
                "policy": each.policy,
                "kind": each.kind,
                "arm": each.arm,
                "fits": each.fits,
                "cost_usd": _dollars(each.cost),
                "cost_with_rework_usd": _dollars(each.total),
                "uses": each.recall.uses,
                "in_view": each.recall.in_view,
                "one_recall": each.recall.one_recall,
            }
            for each in session.outcomes
        ],
    }


def _dollars(nano: int | None) -> float | None:
    return None if nano is None else nano / NANO
