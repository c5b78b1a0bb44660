"""The results of one replayed session, and the replay on a course: policies, the coarse optimum and the bounds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.accounts.cadence import cadence
from lowwater.core.api_calls import Usage
from lowwater.core.stored import Account
from lowwater.lab.bound import lower_bound
from lowwater.lab.course import Course, Sheet
from lowwater.lab.optimum import ScheduleSearch
from lowwater.lab.peers import DECLARED, PEERS, Peer, PlayedCourse, follow_schedule, play_course
from lowwater.lab.references.reachability import LOST_TO, LostTo, UseOutcome
from lowwater.lab.schedules import Tally, never, run

OutcomeKind = Literal["course", "full"]
"""`course`: played on the session reduced to token counts; `full`: by the real engine on the real messages."""
Assumed = Literal["times", "model"]
"""What a recording lacked and the replay assumed: the times of calls, or a model with known prices."""
RECENT = 5
"""A use of a result that is at most so many calls old is recent; the others are late."""
MATTERS = 1.10
"""Compaction matters in a session if doing without it costs more than this many times the optimum."""
OPTIMUM = "optimum"
"""The name under which the cheapest schedule is listed among the policies."""
_INFINITE_GAP = float("inf")
"""Longer than any cache lifetime."""


class Series(Struct, frozen=True, kw_only=True):
    """The figures of every call, in order."""

    prompt: tuple[int, ...]
    read: tuple[int, ...]
    """Tokens of the prompt read from the cache."""
    written: tuple[int, ...]
    """The rest of the prompt."""
    elided: tuple[int, ...]
    """Tokens that placeholders keep out of the prompt."""
    summarised: tuple[int, ...]
    """Tokens that summaries keep out of it."""
    cost: tuple[int, ...]
    """Cost of the call and the summaries before it, without rework."""
    rework: tuple[int, ...]


class CourseEvent(Struct, frozen=True, kw_only=True):
    """A compaction before a call."""

    turn: int
    """The index of the call."""
    mode: str
    """`prune`, `summary`, `condense`, `shorten`."""
    before: int
    after: int
    """Tokens of the prompt before and after it."""
    because: str = ""
    """The reason code; `forced` if a peer would have exceeded the wall."""


class CadenceSums(Struct, frozen=True, kw_only=True):
    """The sums behind the cadence metrics (docs/specification.md: K), so that sessions can be added up."""

    turns: int = 0
    events: int = 0
    intervals: int = 0
    """The sum of turns between events."""
    summary_calls: int = 0
    reclaimed: int = 0
    rewritten: int = 0
    """Tokens behind the first change of each compaction, which have to be written to the cache again."""
    prompt_and_summary_tokens: int = 0
    earliest_changed: int | None = None
    prunes: int = 0
    summaries: int = 0


class UsesFound(Struct, frozen=True, kw_only=True):
    """Where later uses were found. On a course recall is not measured: a use is in view or not."""

    uses: int = 0
    in_view: int = 0
    one_recall: int | None = None
    """None if not measured."""
    causes: dict[str, int] = {}
    """Why the uses that are gone could not be recalled, with their number."""
    late: int = 0
    """The uses of results that are more than five calls old; only counted where real messages are played."""
    late_in_view: int = 0
    summarised: int = 0
    """The uses of results that a summary stands for, wherever they were found; only counted where real messages are played."""
    summarised_in_view: int = 0
    lost_recent: dict[LostTo, int] = {}
    """The uses of newer results that are not in view, by what replaced the results."""
    lost_late: dict[LostTo, int] = {}


class PolicyOutcome(Struct, frozen=True, kw_only=True):
    """One policy on one session in one arm."""

    policy: str
    kind: OutcomeKind
    arm: str
    is_bounded: bool
    """Whether it is limited to the optimum's actions, so that it cannot cost less."""
    fits: bool = True
    """Whether every prompt fit the window; if not, the other fields mean nothing."""
    cost: int = 0
    """Cost of calls and summaries."""
    summaries: int = 0
    """The part of `cost` spent on summaries."""
    rework: int = 0
    """Cost of recalling what was used again and no longer in view."""
    recall: UsesFound = UsesFound()
    cadence: CadenceSums = CadenceSums()
    mean_view: float = 0.0
    peak_view: int = 0
    series: Series | None = None
    events: tuple[CourseEvent, ...] = ()

    @property
    def total(self) -> int:
        """The total cost, including rework."""
        return self.cost + self.rework


class Bounds(Struct, frozen=True, kw_only=True):
    """Lower bounds of the session's cost in one arm, including rework."""

    arm: str
    optimum: int | None
    """The cheapest schedule of the few declared actions, with hindsight; None if no schedule fits the window."""
    relaxed: int
    """What no action can avoid: tools and system, new text, new results at their elided size, and answers."""
    least: int | None = None
    """A lower bound on any schedule of the engine's actions on the course (docs/economics.md); None if none fits the window."""
    engine: int | None = None
    """A lower bound on what the real engine can cost; None where it did not play."""
    never: int | None
    """The cost without any action before the wall; None if that does not fit."""

    def of(self, kind: OutcomeKind) -> int | None:
        """Return the bound for one kind of replay."""
        return self.least if kind == "course" else self.engine

    @property
    def matters(self) -> bool:
        """Whether compaction saves enough here to distinguish policies."""
        if self.optimum is None:
            return False
        return self.never is None or self.never > MATTERS * self.optimum


class SessionResult(Struct, frozen=True, kw_only=True):
    """A session under all policies and arms; if it was not replayed, `skipped` says why."""

    id: str
    agent: str
    path: str
    key: str = ""
    """Identifies the session together with the options of the replay."""
    model: str = ""
    """The model whose prices and cache rules were used."""
    calls: int = 0
    beyond: int = 0
    """Later calls that were left out: computing the optimum of very long sessions takes too long."""
    fixed: int = 0
    """Tokens of tools and system prompt."""
    times: tuple[float, ...] = ()
    """Seconds from the first call to each call, for charts."""
    skipped: str = ""
    recorded: int | None = None
    """Cost of the session as recorded; None if no usage or no price is known."""
    assumed: tuple[Assumed, ...] = ()
    """What the recording lacked and the replay assumed."""
    bounds: tuple[Bounds, ...] = ()
    outcomes: tuple[PolicyOutcome, ...] = ()
    """Ordered by kind, arm and policy."""

    @property
    def place(self) -> tuple[str, ...]:
        """The sort key, which does not depend on when it was finished."""
        return (self.agent, self.id, self.path, self.key)

    def bound(self, arm: str) -> Bounds:
        """Return the bounds of an arm."""
        return next(bounds for bounds in self.bounds if bounds.arm == arm)


class CallResult(Struct, frozen=True, kw_only=True):
    """One call by the real engine; money in nano-dollars, sizes in the model's tokens."""

    usage: Usage
    cost: int
    """Including the summaries before it."""
    asked: int
    """The part of `cost` spent on those summaries."""
    rework: int
    elided: int
    """Tokens that placeholders keep out of the prompt."""
    removed: int
    """Tokens that compactions keep out of it, including placeholders."""


class CallLog(Struct, kw_only=True):
    """Collects calls, events and uses while the real engine plays a session."""

    calls: list[CallResult] = []
    events: list[CourseEvent] = []
    found: list[UseOutcome] = []

    def outcome(self, policy: str, account: Account, *, context_length: int) -> PolicyOutcome:
        """Return the outcome of the finished session."""
        calls, prompts = self.calls, [row.usage.prompt for row in self.calls]
        return PolicyOutcome(
            policy=policy,
            kind="full",
            arm="",
            is_bounded=False,
            fits=max(prompts) <= context_length,
            cost=sum(row.cost for row in calls),
            summaries=sum(row.asked for row in calls),
            rework=sum(row.rework for row in calls),
            recall=_engine_recall(self.found),
            cadence=_engine_cadence(account),
            mean_view=sum(prompts) / len(prompts),
            peak_view=max(prompts),
            series=_engine_series(calls),
            events=tuple(self.events),
        )


def _engine_recall(found: Sequence[UseOutcome]) -> UsesFound:
    places = Counter(each.place for each in found)
    causes = Counter(str(each.because) for each in found if each.place == "gone")
    lost = [each for each in found if each.lost_to is not None]
    return UsesFound(
        uses=len(found),
        in_view=places["in_view"],
        one_recall=places["one_recall"],
        causes=dict(sorted(causes.items())),
        late=sum(each.use.later > RECENT for each in found),
        late_in_view=sum(each.use.later > RECENT and each.place == "in_view" for each in found),
        summarised=sum(each.is_summarised for each in found),
        summarised_in_view=sum(each.is_summarised and each.place == "in_view" for each in found),
        lost_recent=_by_cause(each for each in lost if each.use.later <= RECENT),
        lost_late=_by_cause(each for each in lost if each.use.later > RECENT),
    )


def _by_cause(lost: Iterable[UseOutcome]) -> dict[LostTo, int]:
    counts = Counter(each.lost_to for each in lost)
    return {cause: counts[cause] for cause in LOST_TO if counts[cause]}


def _engine_cadence(account: Account) -> CadenceSums:
    of = cadence([account])
    return CadenceSums(
        turns=of.turns,
        events=of.events,
        intervals=round((of.turns_between_events or 0) * max(0, of.events - 1)),
        summary_calls=of.summary_calls,
        reclaimed=of.reclaimed,
        rewritten=of.rewritten,
        prompt_and_summary_tokens=of.prompt_and_summary_tokens,
        earliest_changed=of.earliest_changed,
        prunes=of.prunes,
        summaries=of.summaries,
    )


def _engine_series(rows: Sequence[CallResult]) -> Series:
    return Series(
        prompt=tuple(row.usage.prompt for row in rows),
        read=tuple(row.usage.cache_read for row in rows),
        written=tuple(row.usage.prompt - row.usage.cache_read for row in rows),
        elided=tuple(row.elided for row in rows),
        summarised=tuple(row.removed - row.elided for row in rows),
        cost=tuple(row.cost for row in rows),
        rework=tuple(row.rework for row in rows),
    )


class CourseReplay:
    """Replays one course in one arm; `lost` marks the calls whose prefix the cache has lost unknown to any policy."""

    def __init__(self, course: Course, sheet: Sheet, *, arm: str, lost: Sequence[bool]) -> None:
        self._course, self._sheet, self._arm = course, sheet, arm
        self._believed = Tally(course, sheet)
        self._real = Tally(_with_losses(course, lost), sheet) if any(lost) else self._believed
        self._optimum = ScheduleSearch(self._real).run(with_acts=True)

    def bounds(self, *, engine: int | None = None) -> Bounds:
        """Return the lower bounds of the course with that of the real engine, and its cost without any action before the wall."""
        optimum, relaxed = self._optimum.cost, relaxed_bound(self._course, self._sheet)
        assert optimum is None or relaxed <= optimum, (
            f"{self._course.name}: the optimum is below the relaxed bound"
        )
        least = lower_bound(self._real.course, self._sheet)
        assert optimum is None or (least is not None and least <= optimum), (
            f"{self._course.name}: the optimum of {optimum} is below the bound of {least}"
        )
        return Bounds(
            arm=self._arm,
            optimum=optimum,
            relaxed=relaxed,
            least=least,
            engine=engine,
            never=run(self._real, never(self._believed)).cost,
        )

    def outcomes(self, policies: Iterable[str]) -> Iterator[PolicyOutcome]:
        """Yield the outcomes of those policies that can be played on a course, including the optimum."""
        for name in policies:
            if name in DECLARED:
                yield self._declared(name)
            elif name in PEERS:
                yield self._outcome(name, self._play(PEERS[name]), is_bounded=False)
            elif name == OPTIMUM:
                yield self._optimal()

    def _optimal(self) -> PolicyOutcome:
        least = self._optimum
        if least.cost is None:
            return self._unfit(OPTIMUM)
        played = self._play(follow_schedule(least.acts, course=self._course), knowing=True)
        assert played.total == least.cost, (
            f"{self._course.name}: the optimum's acts cost {played.total}, not {least.cost}"
        )
        return self._outcome(OPTIMUM, played, is_bounded=True)

    def _declared(self, name: str) -> PolicyOutcome:
        done = run(self._real, DECLARED[name](self._believed))
        if done.cost is None:
            return self._unfit(name)
        played = self._play(follow_schedule(done.acts, course=self._course))
        least = self._optimum.cost
        assert least is not None, f"{self._course.name}: {name} fits where no schedule does"
        assert played.total >= least, (
            f"{self._course.name}: {name} costs {played.total}, less than the optimum's {least}"
        )
        return self._outcome(name, played, is_bounded=True)

    def _play(self, peer: Peer, *, knowing: bool = False) -> PlayedCourse:
        believed = self._real if knowing else self._believed
        return play_course(self._course, self._sheet, peer, cold=self._real.cold, believed=believed.cold)

    def _unfit(self, name: str, *, is_bounded: bool = True) -> PolicyOutcome:
        return PolicyOutcome(policy=name, kind="course", arm=self._arm, is_bounded=is_bounded, fits=False)

    def _outcome(self, name: str, played: PlayedCourse, *, is_bounded: bool) -> PolicyOutcome:
        if not played.fits:
            return self._unfit(name, is_bounded=is_bounded)
        prompts = [call.prompt for call in played.calls]
        return PolicyOutcome(
            policy=name,
            kind="course",
            arm=self._arm,
            is_bounded=is_bounded,
            cost=played.spent,
            summaries=sum(call.asked for call in played.calls) // 1_000,
            rework=played.total - played.spent,
            recall=UsesFound(uses=played.uses, in_view=played.in_view),
            cadence=_course_cadence(played),
            mean_view=sum(prompts) / len(prompts),
            peak_view=max(prompts),
            series=_course_series(played),
            events=_course_events(played),
        )


def relaxed_bound(course: Course, sheet: Sheet) -> int:
    """Return the cost in nano-dollars that no policy can avoid, whatever its actions.

    Each call reads tools and system from the cache (the first call writes them) and sends the new text and the new results, the
    latter at their elided size, at the cheaper of the write and the input price. Nothing else is in any prompt.
    """
    new = min(sheet.write, sheet.input)
    cost = (new - sheet.read) * course.fixed
    for turn in course.turns:
        cost += sheet.read * course.fixed + new * (turn.text + turn.elided) + sheet.output * turn.output
    return cost // 1_000


def _with_losses(course: Course, lost: Sequence[bool]) -> Course:
    turns = tuple(
        replace(turn, gap=_INFINITE_GAP) if gone else turn
        for turn, gone in zip(course.turns, lost, strict=True)
    )
    return replace(course, turns=turns)


def _course_series(played: PlayedCourse) -> Series:
    calls = played.calls
    return Series(
        prompt=tuple(call.prompt for call in calls),
        read=tuple(call.read for call in calls),
        written=tuple(call.written for call in calls),
        elided=tuple(call.elided for call in calls),
        summarised=tuple(call.summarised for call in calls),
        cost=_to_nano_dollars([call.cost + call.asked for call in calls]),
        rework=_to_nano_dollars([call.rework for call in calls]),
    )


def _to_nano_dollars(costs: Sequence[int]) -> tuple[int, ...]:
    """Return costs in thousandths of a nano-dollar as nano-dollars, rounded so that they add up to the rounded sum."""
    sums = [total // 1_000 for total in accumulate(costs, initial=0)]
    return tuple(after - before for before, after in pairwise(sums))


def _course_events(played: PlayedCourse) -> tuple[CourseEvent, ...]:
    return tuple(
        CourseEvent(
            turn=each.turn,
            mode=each.mode,
            before=each.before,
            after=each.after,
            because="forced" if each.forced else "",
        )
        for each in played.events
    )


def _course_cadence(played: PlayedCourse) -> CadenceSums:
    events = played.events
    turns = [event.turn for event in events]
    return CadenceSums(
        turns=len(played.calls),
        events=len(events),
        intervals=sum(after - before for before, after in pairwise(turns)),
        summary_calls=sum(event.summaries for event in events),
        reclaimed=sum(event.before - event.after for event in events),
        rewritten=sum(event.rewritten for event in events),
        prompt_and_summary_tokens=sum(call.prompt for call in played.calls)
        + sum(event.summary_tokens for event in events),
        earliest_changed=min((event.first_changed for event in events), default=None),
        prunes=sum(event.mode == "prune" for event in events),
        summaries=sum(event.mode == "summary" for event in events),
    )
