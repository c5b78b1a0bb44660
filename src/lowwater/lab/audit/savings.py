"""Estimates what a session would have cost without compaction and with rent-or-buy.

Both schedules and the client's own are played on the session's course (`lab.course`) at its own prices. Only the differences
are reported, so that the errors of the model affect all of them alike.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from lowwater.core.cache.belief import HALF_LIFE
from lowwater.lab.audit.calls import AuditedCall
from lowwater.lab.audit.findings import Saving
from lowwater.lab.course import Action, Course, CoursePrune, CourseState, Sheet, Summarise, shown_window
from lowwater.lab.schedules import RentOrBuy, SchedulePolicy, Tally, never, run

MAX_ESTIMATED_CALLS = 1_500
"""Longer sessions are estimated on their first calls, because a tally takes quadratic memory."""


def recorded_sheet(calls: Sequence[AuditedCall]) -> Sheet | None:
    """Return the prices of the model with the most input, at the cache lifetime written most; None if unknown."""
    prompts: dict[str, int] = {}
    for call in calls:
        prompts[call.model.name] = prompts.get(call.model.name, 0) + (call.usage.prompt if call.usage else 0)
    most = max(prompts, key=lambda name: prompts[name], default="")
    chosen = [call for call in calls if call.model.name == most and call.usage is not None]
    if not chosen:
        return None
    last, usages = chosen[-1], [call.usage for call in chosen if call.usage is not None]
    prices, rules = last.model.prices_at(0, last.at), last.model.cache
    if prices is None:
        return None
    long = sum(usage.cache_write_long for usage in usages) > sum(usage.cache_write for usage in usages)
    written = prices.cache_write_long if long and prices.cache_write_long is not None else prices.cache_write
    sheet = Sheet(
        name=most,
        input=prices.input,
        read=prices.cache_read,
        write=written,
        output=prices.output,
        other_input=prices.input,
        other_output=prices.output,
        ttl=(rules.ttl_long if long else rules.ttl) or HALF_LIFE,
        window=0,
    )
    sent = [usage.prompt for usage in usages]
    compactions = [call.compaction for call in calls if call.compaction is not None]
    window = shown_window(compactions, sent, last.model.context_length)
    return replace(sheet, window=max(window, max(sent) + sheet.reserved + 1))


def saving_of(
    course: Course, sheet: Sheet, summarised: Sequence[int], pruned: Sequence[int] = ()
) -> Saving | None:
    """Return what other schedules would have saved; `summarised` and `pruned` are the turns before which the client compacted.

    None if one of the schedules cannot keep the session within the window.
    """
    count = min(len(course.turns), MAX_ESTIMATED_CALLS)
    tally = Tally(replace(course, turns=course.turns[:count]), sheet)
    rented = run(tally, RentOrBuy(tally))
    as_recorded = _as_recorded(tally, frozenset(summarised), frozenset(pruned))
    recorded, untouched = run(tally, as_recorded).cost, run(tally, never(tally)).cost
    if recorded is None or untouched is None or rented.cost is None:
        return None
    return Saving(
        calls=count,
        modelled=recorded,
        never=recorded - untouched,
        rent_or_buy=recorded - rented.cost,
        actions=len(rented.acts),
    )


def calls_earlier(course: Course, sheet: Sheet, *, since: int, turn: int) -> int | None:
    """Return how many calls before `turn` rent-or-buy would have acted, starting at `since`; None if it would not have."""
    count = min(turn + 1, since + MAX_ESTIMATED_CALLS)
    fixed = course.fixed + (sheet.summary if since else 0)
    tally = Tally(replace(course, fixed=fixed, turns=course.turns[since:count]), sheet)
    acts = run(tally, RentOrBuy(tally)).acts
    earlier = turn - since - acts[0].turn if acts else 0
    return earlier if earlier > 0 else None


def _as_recorded(tally: Tally, summarised: frozenset[int], pruned: frozenset[int]) -> SchedulePolicy:
    def decide(turn: int, _state: CourseState) -> Action | None:
        if turn in summarised:
            return Summarise(upto=turn)
        return CoursePrune(upto=tally.edges[turn]) if turn in pruned else None

    return decide
