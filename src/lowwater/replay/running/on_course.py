"""A course under its policies, beside its bounds: none with the declared actions may cost less than the optimum."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from msgspec.structs import replace

from lowwater.replay.course import Course, Sheet
from lowwater.replay.optimum import Search
from lowwater.replay.peers import DECLARED, PEERS
from lowwater.replay.peers_playing import Played, carrying_out, play
from lowwater.replay.peers_view import Peer
from lowwater.replay.policies import never, run
from lowwater.replay.running.results import Bounds, Cadence, Event, Outcome, Recalled, Series
from lowwater.replay.tally import Tally

OPTIMUM = "optimum"
"""The name of the cheapest schedule among the policies."""
_GONE = float("inf")
"""A gap that no prefix outlives."""


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
        played = self._play(carrying_out(least.acts, course=self._course), knowing=True)
        assert played.total == least.cost, (
            f"{self._course.name}: the optimum's acts cost {played.total}, not {least.cost}"
        )
        return self._outcome(OPTIMUM, played, is_bounded=True)

    def _declared(self, name: str) -> Outcome:
        done = run(self._real, DECLARED[name](self._believed))
        if done.cost is None:
            return self._unfit(name)
        played = self._play(carrying_out(done.acts, course=self._course))
        least = self._optimum.cost
        assert least is not None, f"{self._course.name}: {name} fits where no schedule does"
        assert played.total >= least, (
            f"{self._course.name}: {name} costs {played.total}, less than the optimum's {least}"
        )
        return self._outcome(name, played, is_bounded=True)

    def _play(self, peer: Peer, *, knowing: bool = False) -> Played:
        believed = self._real if knowing else self._believed
        return play(self._course, self._sheet, peer, cold=self._real.cold, believed=believed.cold)

    def _unfit(self, name: str, *, is_bounded: bool = True) -> Outcome:
        return Outcome(policy=name, kind="course", arm=self._arm, is_bounded=is_bounded, fits=False)

    def _outcome(self, name: str, played: Played, *, is_bounded: bool) -> Outcome:
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
            cadence=_cadence(played),
            mean_view=sum(prompts) / len(prompts),
            peak_view=max(prompts),
            series=_series(played),
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


def _series(played: Played) -> Series:
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


def _events(played: Played) -> tuple[Event, ...]:
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


def _cadence(played: Played) -> Cadence:
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
