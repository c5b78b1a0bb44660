"""At the wall the prompt must be made to fit: with everything that helps, and out of the tail if nothing else does."""

from lowwater.decide.cool_down import cool_down_left
from lowwater.decide.offers import expected_after, middle_edits, pruning, summaries, useful
from lowwater.decide.reasons import because
from lowwater.values.decision import Compact, Decision, Keep
from lowwater.values.proposal import Proposal
from lowwater.values.situation import Situation

Plan = tuple[Proposal, ...]


def at_the_wall(now: Situation) -> Decision | None:
    """Force a compaction of what does not fit; guards, cool-down and earlier failures do not count."""
    if now.prompt < now.limits.wall:
        return None
    plan = fitting_plan(now)
    if not plan:
        return Keep(because=because("does-not-fit", prompt=now.prompt, wall=now.limits.wall))
    return _into_tail(now, plan) if _reaches_tail(plan) else _in_the_middle(now, plan)


def fitting_plan(now: Situation) -> Plan:
    """Return the mildest plan that should fit, or the one that gets furthest if none should.

    After a compaction that was in vain, fitting means with a runway to spare: else the wall is reached at every turn.
    """
    plans = [plan for plan in _plans(now) if plan]
    if _middle_failed(now):
        plans = [plan for plan in plans if _reaches_tail(plan)] or plans
    room = now.limits.runway if now.past.fruitless > 0 else 0
    for size in (now.limits.wall - room, now.limits.wall):
        for plan in plans:
            if expected_after(now, plan) < size:
                return plan
    return min(plans, key=lambda plan: expected_after(now, plan), default=_anything(now))


def _anything(now: Situation) -> Plan:
    return tuple(offer for offer in now.proposals if now.scaled(offer.removes) > 0)[:1]


def _plans(now: Situation) -> list[Plan]:
    """Return the plans from mild to harsh: middle only, outputs in the tail shortened, most of the tail summarised.

    While the summarizer cools down, edits that fit without it come before all of them.
    """
    edits, shorter, text = middle_edits(now), pruning(now), summaries(now)
    wider = useful(now, "summarize_all") or text
    plans = [(*edits, *text), (*shorter, *text), (*shorter, *wider)]
    cooling = not now.forced and cool_down_left(now.past, now.at)
    return [edits, *plans] if cooling else plans


def _middle_failed(now: Situation) -> bool:
    """Whether the last compaction ended at the wall, so that the same again would not help."""
    return now.past.fruitless > 0 and now.past.floor >= now.limits.wall


def _reaches_tail(plan: Plan) -> bool:
    return any(offer.mechanism in {"shorten", "summarize_all"} for offer in plan)


def _in_the_middle(now: Situation, plan: Plan) -> Compact:
    expected = expected_after(now, plan)
    reason = because("wall", prompt=now.prompt, wall=now.limits.wall, expected=expected)
    return Compact(proposals=plan, because=reason, enough=now.limits.target, below=now.limits.threshold)


def _into_tail(now: Situation, plan: Plan) -> Compact:
    """Take from the tail no more than it takes to fit with a runway to spare."""
    limits = now.limits
    enough = max(limits.target, limits.wall - limits.runway)
    middle = expected_after(now, (*middle_edits(now), *summaries(now)))
    reason = because(
        "wall-into-tail",
        prompt=now.prompt,
        wall=limits.wall,
        middle=middle,
        enough=enough,
        expected=expected_after(now, plan),
    )
    return Compact(proposals=plan, because=reason, enough=enough, below=limits.threshold)
