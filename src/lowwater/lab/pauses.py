"""What a course costs by what is done in its pauses: nothing, keeping the prefix warm, compacting in time, or the best in hindsight."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.costs.idle import (
    LASTS,
    TOOL_LULLS,
    USER_LULLS,
    IdleCosts,
    IdleMode,
    IdlePlan,
    Lulls,
    plan_pause,
)
from lowwater.lab.course import CourseState, Sheet, Summarise, after
from lowwater.lab.schedules import RentOrBuy, SchedulePolicy, Tally

ALWAYS = 10**6
"""A number of calls that keeps the prefix warm for as long as any pause lasts."""
GAPS = 50
"""How many of the newest gaps count, as in a live session."""
_FOREVER = 1e9
"""The pause after the last call, in seconds."""


class Lull(Struct, frozen=True, kw_only=True):
    """The pause before a turn."""

    turn: int
    costs: IdleCosts
    gaps: Sequence[float]
    """The lengths of the session's pauses so far."""
    runs_tools: bool
    """Whether the last answer called tools."""


Chooser = Callable[[Lull], IdlePlan]
"""Chooses what is done in a pause."""


class Paused(Struct, frozen=True, kw_only=True):
    """A session played with something done in its pauses."""

    cost: int | None
    """Nano-dollars for everything, including what is done in the pauses; None if the session did not fit into its window."""
    pings: int = 0
    """Calls that kept the prefix warm."""
    kept: int = 0
    """Pauses after which the prefix was still cached thanks to these calls."""
    compacted: int = 0
    """Pauses in which the view was compacted."""


def planned(pings: int | None, costs: IdleCosts) -> IdlePlan:
    """Return the plan of `pings` calls and nothing else; None means to compact."""
    return IdlePlan(
        pings=pings or 0,
        then="compact" if pings is None and costs.compact is not None else "let-go",
        period=costs.period,
        expected=0,
        expected_let_go=0,
    )


def nothing(lull: Lull) -> IdlePlan:
    """Do nothing in any pause."""
    return planned(0, lull.costs)


def always(lull: Lull) -> IdlePlan:
    """Keep the prefix warm in every pause until the time allowed is over."""
    return planned(int(LASTS / lull.costs.period), lull.costs)


def compacting(lull: Lull) -> IdlePlan:
    """Compact before the prefix expires, in every pause."""
    return planned(None, lull.costs)


def by_rule(mode: IdleMode = "auto", *, user: Lulls = USER_LULLS, tools: Lulls = TOOL_LULLS) -> Chooser:
    """Return the choice of the engine's rule."""
    return lambda lull: plan_pause(
        lull.costs, mode=mode, gaps=lull.gaps[-GAPS:], lulls=tools if lull.runs_tools else user
    )


class PausePlayer:
    """Plays one course repeatedly, with different choices in its pauses."""

    def __init__(self, tally: Tally, policy: Callable[[Tally], SchedulePolicy] = RentOrBuy) -> None:
        self._tally = tally
        self._policy = policy
        self._gaps = [turn.gap for turn in tally.course.turns]
        self._period = IdleCosts(lifetime=tally.sheet.ttl, ping=0, lost=0).period
        self.pauses = [turn for turn in range(1, tally.count) if self._gaps[turn] > tally.sheet.ttl]
        """The turns before which the cache expires if nothing is done."""

    def play(self, choose: Chooser, *, stays_open: bool = False) -> Paused:
        """Return what the course costs; if its client `stays_open`, the pause after the last call counts, too."""
        tally = copy(self._tally)
        tally.cold = list(tally.cold)
        sheet, policy, state = tally.sheet, self._policy(tally), CourseState()
        total, pings, kept, compacted = 0, 0, 0, 0
        for turn in range(tally.count + stays_open):
            is_over = turn == tally.count
            gap = _FOREVER if is_over else self._gaps[turn]
            if turn and gap > self._period:
                costs = idle_costs(tally, turn - 1, state, policy)
                plan = choose(
                    Lull(
                        turn=turn,
                        costs=costs,
                        gaps=self._gaps[1:turn],
                        runs_tools=tally.course.turns[turn - 1].calls_tools,
                    )
                )
                made = plan.made_in(gap)
                pings, total = pings + made, total + made * costs.ping
                if costs.compact is not None and plan.compacts_in(gap):
                    compacted, total = compacted + 1, total + costs.compact
                    state = after(state, Summarise(upto=tally.edges[turn - 1]))
                    tally.cold[turn:] = [True, *tally.cold[turn + 1 :]]
                elif not is_over and tally.cold[turn] and plan.is_warm_after(gap, sheet.ttl):
                    tally.cold[turn] = False
                    kept += 1
            if is_over:
                break
            action = policy(turn, state) if tally.edges[turn] else None
            if tally.size(turn, after(state, action)) > sheet.wall:
                action = Summarise(upto=tally.edges[turn])
            total += tally.call(turn, state, action)
            state = after(state, action)
            if tally.size(turn, state) > sheet.wall:
                return Paused(cost=None)
        return Paused(cost=total // 1_000, pings=pings, kept=kept, compacted=compacted)

    def hindsight(self) -> Paused:
        """Return the cheapest result of a search that changes one pause at a time, in two passes over all pauses."""
        plans: dict[int, int | None] = {}
        best = self.play(_as_planned(plans))
        for _ in range(2):
            before = best.cost
            for turn in self.pauses:
                for choice in (0, ALWAYS, None):
                    if plans.get(turn, 0) != choice:
                        found = self.play(_as_planned({**plans, turn: choice}))
                        if found.cost is not None and (best.cost is None or found.cost < best.cost):
                            plans[turn], best = choice, found
            if best.cost == before:
                break
        return best


def _as_planned(plans: Mapping[int, int | None]) -> Chooser:
    return lambda lull: planned(plans.get(lull.turn, 0), lull.costs)


def idle_costs(tally: Tally, turn: int, state: CourseState, policy: SchedulePolicy) -> IdleCosts:
    """Return what can be done in the pause after a turn, and its costs in thousandths of a nano-dollar.

    What the policy would compact on the user's return anyway, because the cache is cold, is no loss if the prefix expires.
    """
    sheet, size, upto = tally.sheet, tally.size(turn, state), tally.edges[turn]
    compact, left, anyway = None, 0, 0
    if upto > state.summarised and turn:
        was = tally.cold[turn]
        tally.cold[turn] = False
        compact = tally.asking(turn, state, upto)
        left = sheet.write * tally.size(turn, after(state, Summarise(upto=upto))) - sheet.read * size
        tally.cold[turn] = True
        if isinstance(policy, RentOrBuy):
            anyway = max((-offer.price for offer in policy.offers(turn, state)), default=0)
        tally.cold[turn] = was
    return IdleCosts(
        lifetime=sheet.ttl,
        ping=sheet.read * size + sheet.output,
        lost=max(0, (sheet.write - sheet.read) * size - max(0, anyway)),
        compact=compact,
        lost_compacted=left,
    )


def with_long_lifetime(sheet: Sheet, *, seconds: int, write: int) -> Sheet:
    """Return the price sheet with the seconds and the write price of the long cache lifetime."""
    return replace(sheet, ttl=float(seconds), write=write)
