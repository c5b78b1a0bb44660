"""A course under its policies, beside its bounds, and the results of one session."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.accounts.cadence import cadence
from lowwater.core.api_calls import Usage
from lowwater.core.stored import Account
from lowwater.lab.course import Course, Sheet
from lowwater.lab.optimum import Search
from lowwater.lab.peers import DECLARED, PEERS, Peer, PlayedCourse, follow_schedule, play_course
from lowwater.lab.references.reaching import Outcome as Found
from lowwater.lab.schedules import Tally, never, run

Kind = Literal["course", "full"]
"""Played on the course, a model of the session in numbers, or by the real engine on the real messages."""
Assumed = Literal["times", "model"]
"""Pauses between calls, or a model with known prices."""
MATTERS = 1.10
"""Compaction matters in a session that would cost more than this many times the optimum without it."""
OPTIMUM = "optimum"
"""The name of the cheapest schedule among the policies."""
_GONE = float("inf")
"""A gap that no prefix outlives."""


class Series(Struct, frozen=True, kw_only=True):
    """One number for each call, in order."""

    prompt: tuple[int, ...]
    read: tuple[int, ...]
    """Tokens of the prompt read from the cache."""
    written: tuple[int, ...]
    """All other tokens of the prompt."""
    elided: tuple[int, ...]
    """Tokens that placeholders keep out of the prompt."""
    summarised: tuple[int, ...]
    """Tokens that summaries keep out of it."""
    cost: tuple[int, ...]
    """What the call cost, with the summaries before it, without rework."""
    rework: tuple[int, ...]


class Event(Struct, frozen=True, kw_only=True):
    """A compaction before a call."""

    turn: int
    """The index of the call."""
    mode: str
    """`prune`, `summary`, `condense`, `shorten`."""
    before: int
    after: int
    """The prompt without and with it."""
    because: str = ""
    """The reason's code; `forced` where a peer would have gone above the wall."""


class Cadence(Struct, frozen=True, kw_only=True):
    """What the seven cadence metrics (docs/specification.md: K) are made of, as sums, so that sessions can be put together."""

    turns: int = 0
    events: int = 0
    intervals: int = 0
    """Turns between events, all together."""
    summary_calls: int = 0
    reclaimed: int = 0
    prompt_and_summary_tokens: int = 0
    earliest_changed: int | None = None
    prunes: int = 0
    summaries: int = 0


class Recalled(Struct, frozen=True, kw_only=True):
    """Where later uses were found; on a course nobody asks recall, and what is not in view is not told apart."""

    uses: int = 0
    in_view: int = 0
    one_recall: int | None = None
    """None where it was not measured."""
    causes: dict[str, int] = {}
    """Why those that are gone were not reached."""


class Outcome(Struct, frozen=True, kw_only=True):
    """One policy on one session in one arm."""

    policy: str
    kind: Kind
    arm: str
    is_bounded: bool
    """Whether it has the optimum's actions and no others, so that it cannot cost less."""
    fits: bool = True
    """Whether every prompt fit the window; if not, nothing here counts."""
    cost: int = 0
    """Calls and summaries."""
    summaries: int = 0
    """The part of it that went into summaries."""
    rework: int = 0
    """Recalls of what was used again and no longer in view."""
    recall: Recalled = Recalled()
    cadence: Cadence = Cadence()
    mean_view: float = 0.0
    peak_view: int = 0
    series: Series | None = None
    events: tuple[Event, ...] = ()

    @property
    def total(self) -> int:
        """All it cost, rework included."""
        return self.cost + self.rework


class Bounds(Struct, frozen=True, kw_only=True):
    """What the session costs at least in an arm, rework included."""

    arm: str
    optimum: int | None
    """By the declared actions, with hindsight; None if no schedule of them fits the window."""
    relaxed: int
    """By any actions: tools and system, what is new as text or at its elided size, and the answers."""
    never: int | None
    """With no action before the wall; None if that does not fit."""

    @property
    def matters(self) -> bool:
        """Whether compaction saves enough here to tell policies apart."""
        if self.optimum is None:
            return False
        return self.never is None or self.never > MATTERS * self.optimum


class SessionResult(Struct, frozen=True, kw_only=True):
    """A session under all policies and arms; `skipped` says why there is nothing else."""

    id: str
    agent: str
    path: str
    key: str = ""
    """Tells it from every other session, and from the same one under other options."""
    model: str = ""
    """Whose prices and rules it was replayed with."""
    calls: int = 0
    beyond: int = 0
    """Calls after those, which were left out: the optimum of very long sessions takes too long."""
    fixed: int = 0
    """Tools and system prompt."""
    times: tuple[float, ...] = ()
    """Seconds from the first call to each, for drawing."""
    skipped: str = ""
    recorded: int | None = None
    """What its own calls cost by the usage that was recorded; None if no price or no usage of them is known."""
    assumed: tuple[Assumed, ...] = ()
    """What the recording does not tell and the replay made up."""
    bounds: tuple[Bounds, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    """By kind, arm and policy, in the order the policies have."""

    @property
    def place(self) -> tuple[str, ...]:
        """Where it stands among others, whenever it was finished."""
        return (self.agent, self.id, self.path, self.key)

    def bound(self, arm: str) -> Bounds:
        """Return the bounds of an arm."""
        return next(bounds for bounds in self.bounds if bounds.arm == arm)


class Row(Struct, frozen=True, kw_only=True):
    """One call; money in nano-dollars, sizes in the model's tokens."""

    usage: Usage
    cost: int
    """With the summaries before it."""
    asked: int
    """The part of it that went into those."""
    rework: int
    elided: int
    """What placeholders keep out of the prompt."""
    removed: int
    """What compactions keep out of it, placeholders included."""


class Rows(Struct, kw_only=True):
    """What is written down while a session is played."""

    calls: list[Row] = []
    events: list[Event] = []
    found: list[Found] = []

    def outcome(self, policy: str, account: Account, *, context_length: int) -> Outcome:
        """Return what they come to, once the session is over."""
        calls, prompts = self.calls, [row.usage.prompt for row in self.calls]
        return Outcome(
            policy=policy,
            kind="full",
            arm="",
            is_bounded=False,
            fits=max(prompts) <= context_length,
            cost=sum(row.cost for row in calls),
            summaries=sum(row.asked for row in calls),
            rework=sum(row.rework for row in calls),
            recall=_recalled(self.found),
            cadence=_cadence(account),
            mean_view=sum(prompts) / len(prompts),
            peak_view=max(prompts),
            series=_series(calls),
            events=tuple(self.events),
        )


def _recalled(found: Sequence[Found]) -> Recalled:
    places = Counter(each.place for each in found)
    causes = Counter(str(each.because) for each in found if each.place == "gone")
    return Recalled(
        uses=len(found),
        in_view=places["in_view"],
        one_recall=places["one_recall"],
        causes=dict(sorted(causes.items())),
    )


def _cadence(account: Account) -> Cadence:
    told = cadence([account])
    return Cadence(
        turns=told.turns,
        events=told.events,
        intervals=round((told.turns_between_events or 0) * max(0, told.events - 1)),
        summary_calls=told.summary_calls,
        reclaimed=told.reclaimed,
        prompt_and_summary_tokens=told.prompt_and_summary_tokens,
        earliest_changed=told.earliest_changed,
        prunes=told.prunes,
        summaries=told.summaries,
    )


def _series(rows: Sequence[Row]) -> Series:
    return Series(
        prompt=tuple(row.usage.prompt for row in rows),
        read=tuple(row.usage.cache_read for row in rows),
        written=tuple(row.usage.prompt - row.usage.cache_read for row in rows),
        elided=tuple(row.elided for row in rows),
        summarised=tuple(row.removed - row.elided for row in rows),
        cost=tuple(row.cost for row in rows),
        rework=tuple(row.rework for row in rows),
    )


class OnCourse:
    """One course in one arm; `lost` are the calls that find nothing although no policy can know."""

    def __init__(self, course: Course, sheet: Sheet, *, arm: str, lost: Sequence[bool]) -> None:
        self._course, self._sheet, self._arm = course, sheet, arm
        self._believed = Tally(course, sheet)
        self._real = Tally(_with_losses(course, lost), sheet) if any(lost) else self._believed
        self._optimum = Search(self._real).run(with_acts=True)

    def bounds(self) -> Bounds:
        """Return what the course costs at least, and what without any action before the wall."""
        least, relaxed = self._optimum.cost, relaxed_bound(self._course, self._sheet)
        assert least is None or relaxed <= least, (
            f"{self._course.name}: the optimum is below the relaxed bound"
        )
        return Bounds(
            arm=self._arm,
            optimum=least,
            relaxed=relaxed,
            never=run(self._real, never(self._believed)).cost,
        )

    def outcomes(self, policies: Iterable[str]) -> Iterator[Outcome]:
        """Yield what the policies come to that can be played on a course, and the optimum among them."""
        for name in policies:
            if name in DECLARED:
                yield self._declared(name)
            elif name in PEERS:
                yield self._outcome(name, self._play(PEERS[name]), is_bounded=False)
            elif name == OPTIMUM:
                yield self._optimal()

    def _optimal(self) -> Outcome:
        least = self._optimum
        if least.cost is None:
            return self._unfit(OPTIMUM)
        played = self._play(follow_schedule(least.acts, course=self._course), knowing=True)
        assert played.total == least.cost, (
            f"{self._course.name}: the optimum's acts cost {played.total}, not {least.cost}"
        )
        return self._outcome(OPTIMUM, played, is_bounded=True)

    def _declared(self, name: str) -> Outcome:
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

    def _unfit(self, name: str, *, is_bounded: bool = True) -> Outcome:
        return Outcome(policy=name, kind="course", arm=self._arm, is_bounded=is_bounded, fits=False)

    def _outcome(self, name: str, played: PlayedCourse, *, is_bounded: bool) -> Outcome:
        if not played.fits:
            return self._unfit(name, is_bounded=is_bounded)
        prompts = [call.prompt for call in played.calls]
        return Outcome(
            policy=name,
            kind="course",
            arm=self._arm,
            is_bounded=is_bounded,
            cost=played.spent,
            summaries=sum(call.asked for call in played.calls) // 1_000,
            rework=played.total - played.spent,
            recall=Recalled(uses=played.uses, in_view=played.in_view),
            cadence=_course_cadence(played),
            mean_view=sum(prompts) / len(prompts),
            peak_view=max(prompts),
            series=_course_series(played),
            events=_events(played),
        )


def relaxed_bound(course: Course, sheet: Sheet) -> int:
    """Return what no policy can avoid, in nano-dollars, whatever its actions.

    Tools and system are read after the first call, new text is written or sent without a mark, and so are results, at
    least at their elided size; nothing else is in any prompt.
    """
    new = min(sheet.write, sheet.input)
    cost = (new - sheet.read) * course.fixed
    for turn in course.turns:
        cost += sheet.read * course.fixed + new * (turn.text + turn.elided) + sheet.output * turn.output
    return cost // 1_000


def _with_losses(course: Course, lost: Sequence[bool]) -> Course:
    turns = tuple(
        replace(turn, gap=_GONE) if gone else turn for turn, gone in zip(course.turns, lost, strict=True)
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
        cost=_divided([call.cost + call.asked for call in calls]),
        rework=_divided([call.rework for call in calls]),
    )


def _divided(costs: Sequence[int]) -> tuple[int, ...]:
    """Return undivided costs as nano-dollars that add up to the sum, divided once."""
    sums = [total // 1_000 for total in accumulate(costs, initial=0)]
    return tuple(after - before for before, after in pairwise(sums))


def _events(played: PlayedCourse) -> tuple[Event, ...]:
    return tuple(
        Event(
            turn=each.turn,
            mode=each.mode,
            before=each.before,
            after=each.after,
            because="forced" if each.forced else "",
        )
        for each in played.events
    )


def _course_cadence(played: PlayedCourse) -> Cadence:
    events = played.events
    turns = [event.turn for event in events]
    return Cadence(
        turns=len(played.calls),
        events=len(events),
        intervals=sum(after - before for before, after in pairwise(turns)),
        summary_calls=sum(event.summaries for event in events),
        reclaimed=sum(event.before - event.after for event in events),
        prompt_and_summary_tokens=sum(call.prompt for call in played.calls)
        + sum(event.summary_tokens for event in events),
        earliest_changed=min((event.first_changed for event in events), default=None),
        prunes=sum(event.mode == "prune" for event in events),
        summaries=sum(event.mode == "summary" for event in events),
    )
