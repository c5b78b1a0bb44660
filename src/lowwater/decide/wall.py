"""Where a prompt is larger than it may be, it is made to fit: with everything that helps, and out of head and tail if nothing else does.

The wall and the user's ceiling differ in what they are called and in what happens when they cannot be kept; the plans are the same.
"""

from msgspec.structs import replace

from lowwater.decide.cool_down import cool_down_left
from lowwater.decide.offers import (
    INTO_TAIL,
    SQUEEZE,
    expected_after,
    middle_edits,
    pruning,
    summaries,
    useful,
)
from lowwater.decide.reasons import because
from lowwater.values.decision import Compact, Decision, Keep
from lowwater.values.proposal import Proposal
from lowwater.values.situation import Situation

Plan = tuple[Proposal, ...]


def at_the_wall(now: Situation) -> Decision | None:
    """Force a compaction of what does not fit; guards, cool-down and earlier failures do not count."""
    if now.prompt <= replace(now.limits, ceiling=None).most:
        return None
    plan = fitting_plan(now)
    if not plan:
        return Keep(because=because("does-not-fit", prompt=now.prompt, wall=now.limits.wall))
    return _into_tail(now, plan) if reaches_tail(now, plan) else _in_the_middle(now, plan)


def fitting_plan(now: Situation) -> Plan:
    """Return the mildest plan that should fit with several turns of growth to spare, or else just fit.

    If none should, it is the one that gets furthest. After a compaction that was in vain a whole runway is to be spared: else the
    limit is reached at every turn. The last step is a squeeze, for what is still too large then.
    """
    plans = [plan for plan in _plans(now) if plan]
    if _middle_failed(now):
        plans = [plan for plan in plans if not INTO_TAIL.isdisjoint(_mechanisms(plan))] or plans
    most = now.limits.most
    spared = most - now.limits.runway if now.past.fruitless > 0 else most
    mild = min(plans, key=lambda plan: expected_after(now, plan), default=_anything(now))
    fitting = (
        plan
        for size in (min(now.limits.roomy, spared), most)
        for plan in plans
        if expected_after(now, plan) <= size
    )
    return (*next(fitting, mild), *useful(now, SQUEEZE))


def reaches_tail(now: Situation, plan: Plan) -> bool:
    """Return whether a plan takes from the protected start or end, if its steps do what they should."""
    steps = without_squeeze(plan)
    return not INTO_TAIL.isdisjoint(_mechanisms(steps)) or (
        steps != plan and expected_after(now, steps) > now.limits.roomy
    )


def expected_with_squeeze(now: Situation, plan: Plan) -> int:
    """Return the size that a plan should leave; a squeeze goes no further than it has to."""
    left = expected_after(now, without_squeeze(plan))
    return left if left <= now.limits.roomy else max(min(left, now.limits.roomy), expected_after(now, plan))


def without_squeeze(plan: Plan) -> Plan:
    """Return the steps of a plan before its squeeze."""
    return tuple(offer for offer in plan if offer.mechanism != SQUEEZE)


def _anything(now: Situation) -> Plan:
    others = (offer for offer in now.proposals if offer.mechanism != SQUEEZE)
    return tuple(offer for offer in others if now.scaled(offer.removes) > 0)[:1]


def _plans(now: Situation) -> list[Plan]:
    """Return the plans from mild to harsh: middle only, outputs in head and tail shortened, most of the tail summarised.

    While the summarizer cools down, edits that fit without it come before all of them.
    """
    edits, shorter, text = middle_edits(now), pruning(now), summaries(now)
    wider = useful(now, "summarize_all") or text
    plans = [(*edits, *text), (*shorter, *text), (*shorter, *wider)]
    cooling = not now.forced and cool_down_left(now.past, now.at)
    return [edits, *plans] if cooling else plans


def _middle_failed(now: Situation) -> bool:
    """Whether the last compaction ended above what fits, so that the same again would not help."""
    return now.past.fruitless > 0 and now.past.floor > now.limits.most


def _mechanisms(plan: Plan) -> set[str]:
    return {offer.mechanism for offer in plan}


def _in_the_middle(now: Situation, plan: Plan) -> Compact:
    expected, limits = expected_with_squeeze(now, plan), now.limits
    reason = because("wall", prompt=now.prompt, wall=limits.wall, expected=expected)
    return Compact(
        proposals=plan, because=reason, enough=limits.target, below=limits.threshold, fit=limits.roomy
    )


def _into_tail(now: Situation, plan: Plan) -> Compact:
    """Take from head and tail no more than it takes to fit with a runway to spare."""
    limits = now.limits
    enough = min(max(limits.target, limits.wall - limits.runway), limits.roomy)
    reason = because(
        "wall-into-tail",
        prompt=now.prompt,
        wall=limits.wall,
        middle=expected_after(now, (*middle_edits(now), *summaries(now))),
        enough=enough,
        expected=expected_with_squeeze(now, plan),
    )
    return Compact(proposals=plan, because=reason, enough=enough, below=limits.threshold, fit=limits.roomy)
