"""Sessions to be drawn call by call: those in which compaction matters most, thinned to what a page can hold."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from heapq import heappush, heappushpop
from itertools import accumulate

from msgspec import Struct

from lowwater.replay.pages.naming import OURS, label
from lowwater.replay.running.on_course import OPTIMUM
from lowwater.replay.running.results import Event, Series, SessionResult

MOST_POINTS = 160
MOST_NUMBERS = 500_000
"""All numbers of all timelines: some four megabytes."""
MOST_TIMELINES = 60
_LAYERS = 5


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
