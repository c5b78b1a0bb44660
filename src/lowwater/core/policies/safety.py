"""The decision: the named policy, and around it the rules that hold for every policy."""

from math import ceil, isfinite

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Compact, Decision, DecisionContext, Fact, Keep, Past
from lowwater.core.limits import TURNS_BETWEEN
from lowwater.core.policies.at_threshold import (
    INTO_TAIL,
    PRUNING,
    SQUEEZE,
    Trigger,
    edits_of_others,
    expected_after,
    middle_edits,
    prune_first,
    pruning,
    summaries,
    useful,
)
from lowwater.core.policies.hygiene import safety_net
from lowwater.core.policies.reasons import Code, because
from lowwater.core.policies.registry import Policy, policy_named
from lowwater.core.proposals import Proposal
from lowwater.settings import Settings

_MOST_DOUBLINGS = 20


class Pause(Struct, frozen=True, kw_only=True):
    """How long to wait after the first failure, and after however many."""

    first: float
    longest: float

    def seconds(self, failures: int) -> float:
        """Return the length of the pause after this many failures in a row."""
        if failures <= 0:
            return 0.0
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))

    def seconds_left(self, failures: int, *, since: float, at: float) -> int:
        """Return how much of it is left at `at`, in whole seconds; a failure in the future is a clock set back."""
        elapsed = at - since
        length = self.seconds(failures)
        return ceil(length - elapsed) if isfinite(elapsed) and 0 <= elapsed < length else 0


COOL_DOWN = Pause(first=60.0, longest=3_600.0)


def cool_down_left(past: Past, at: float) -> int:
    """Return for how many seconds no call of a model may be made."""
    if past.failed_at is None:
        return 0
    return COOL_DOWN.seconds_left(past.failures, since=past.failed_at, at=at)


def cooling_down(now: DecisionContext, wanted: Compact) -> Decision | None:
    """While it lasts, carry out only what takes no call of a model, if that reclaims enough to count."""
    left = cool_down_left(now.past, now.at)
    if not left or not any(offer.calls for offer in wanted.proposals):
        return None
    free = tuple(offer for offer in wanted.proposals if not offer.calls)
    reclaims = now.removes(free)
    facts: dict[str, Fact] = {
        "prompt": now.prompt,
        "failures": now.past.failures,
        "seconds": left,
        "reclaims": reclaims,
    }
    if reclaims < now.limits.minimum_prune:
        return Keep(because=because("cooling-down", **facts, minimum=now.limits.minimum_prune))
    reason = because("cooling-down-prune", **facts, expected=expected_after(now, free))
    return Compact(proposals=free, because=reason, enough=wanted.enough, below=wanted.below)


Plan = tuple[Proposal, ...]


def at_the_wall(now: DecisionContext) -> Decision | None:
    """Force a compaction of what does not fit; guards, cool-down and earlier failures do not count."""
    if now.prompt <= replace(now.limits, ceiling=None).most:
        return None
    plan = fitting_plan(now)
    if not plan:
        return Keep(because=because("does-not-fit", prompt=now.prompt, wall=now.limits.wall))
    return _into_tail(now, plan) if reaches_tail(now, plan) else _in_the_middle(now, plan)


def fitting_plan(now: DecisionContext) -> Plan:
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


def reaches_tail(now: DecisionContext, plan: Plan) -> bool:
    """Return whether a plan takes from the protected start or end, if its steps do what they should."""
    steps = without_squeeze(plan)
    return not INTO_TAIL.isdisjoint(_mechanisms(steps)) or (
        steps != plan and expected_after(now, steps) > now.limits.roomy
    )


def expected_with_squeeze(now: DecisionContext, plan: Plan) -> int:
    """Return the size that a plan should leave; a squeeze goes no further than it has to."""
    left = expected_after(now, without_squeeze(plan))
    return left if left <= now.limits.roomy else max(min(left, now.limits.roomy), expected_after(now, plan))


def without_squeeze(plan: Plan) -> Plan:
    """Return the steps of a plan before its squeeze."""
    return tuple(offer for offer in plan if offer.mechanism != SQUEEZE)


def _anything(now: DecisionContext) -> Plan:
    others = (offer for offer in now.proposals if offer.mechanism != SQUEEZE)
    return tuple(offer for offer in others if now.scaled(offer.removes) > 0)[:1]


def _plans(now: DecisionContext) -> list[Plan]:
    """Return the plans from mild to harsh: middle only, outputs in head and tail shortened, most of the tail summarised.

    While the summarizer cools down, edits that fit without it come before all of them.
    """
    edits, shorter, text = middle_edits(now), pruning(now), summaries(now)
    wider = useful(now, "summarize_all") or text
    plans = [(*edits, *text), (*shorter, *text), (*shorter, *wider)]
    cooling = not now.forced and cool_down_left(now.past, now.at)
    return [edits, *plans] if cooling else plans


def _middle_failed(now: DecisionContext) -> bool:
    """Whether the last compaction ended above what fits, so that the same again would not help."""
    return now.past.fruitless > 0 and now.past.floor > now.limits.most


def _mechanisms(plan: Plan) -> set[str]:
    return {offer.mechanism for offer in plan}


def _in_the_middle(now: DecisionContext, plan: Plan) -> Compact:
    expected, limits = expected_with_squeeze(now, plan), now.limits
    reason = because("wall", prompt=now.prompt, wall=limits.wall, expected=expected)
    return Compact(
        proposals=plan, because=reason, enough=limits.target, below=limits.threshold, fit=limits.roomy
    )


def _into_tail(now: DecisionContext, plan: Plan) -> Compact:
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


def by_hand(now: DecisionContext, policy: Policy) -> Decision | None:
    """Carry out all that the policy's mechanisms offer, below the threshold too; without them, whatever is offered."""
    if not now.forced:
        return None
    plan = _plan(now, policy)
    if not plan:
        return Keep(because=because("nothing-by-hand", prompt=now.prompt))
    reason = because("by-hand", prompt=now.prompt, expected=expected_after(now, plan))
    return Compact(proposals=plan, because=reason, below=now.limits.threshold, fit=now.limits.roomy)


def _plan(now: DecisionContext, policy: Policy) -> tuple[Proposal, ...]:
    if now.prompt > now.limits.most and (fitting := fitting_plan(now)):
        return fitting
    return _own(now, policy) or (*pruning(now), *summaries(now)) or now.proposals[:1]


def _own(now: DecisionContext, policy: Policy) -> tuple[Proposal, ...]:
    """Return what the policy's mechanisms offer, and with one that prunes whatever else does."""
    own, prunes = useful(now, *policy.mechanisms), not set(PRUNING).isdisjoint(policy.mechanisms)
    return (*(offer for offer in edits_of_others(now) if offer not in own), *own) if prunes else own


_BYTES_PER_TOKEN = 12
"""What removing a token of text frees at most: if that is not enough, text is not removed for nothing."""


def over_byte_limit(now: DecisionContext) -> Decision | None:
    """Force a compaction of what the provider would refuse for its size, whatever its tokens."""
    limit = now.limits.max_bytes
    if limit is None or not now.is_too_large:
        return None
    plan = useful(now, "images") or middle_edits(now) or fitting_plan(now)
    if plan and not any(offer.mechanism == "images" for offer in plan):
        freed = _BYTES_PER_TOKEN * (now.prompt - expected_after(now, plan))
        plan = plan if now.bytes - freed <= limit else ()
    if not plan:
        return Keep(because=because("too-many-bytes", bytes=now.bytes, limit=limit))
    return Compact(proposals=plan, because=because("byte-limit", bytes=now.bytes, limit=limit))


_TRIES = 2
"""Compactions in a row that may end above the ceiling before it is left alone for some turns: the first may fall short of its plan."""


def above_ceiling(now: DecisionContext, settings: Settings) -> Decision | None:
    """Compact what is larger than the user wants the model to see, into head and tail if the middle does not do.

    Where even that does not help, it is tried again after some turns, and every decision in between says so.
    """
    ceiling = settings.compression.max_view_tokens
    if ceiling is None:
        return None
    now = replace(now, limits=replace(now.limits, ceiling=ceiling))
    if now.prompt <= now.limits.most:
        return None
    plan = () if _in_vain(now, ceiling) else fitting_plan(now)
    return (
        _ceiling_in_the_middle(now, ceiling) or _ceiling_into_tail(now, ceiling)
        if plan
        else _out_of_reach(now, ceiling)
    )


def _in_vain(now: DecisionContext, ceiling: int) -> bool:
    past = now.past
    return past.fruitless >= _TRIES and past.floor > ceiling and past.turns_since < TURNS_BETWEEN


def _ceiling_in_the_middle(now: DecisionContext, ceiling: int) -> Compact | None:
    """Prune, and summarise if that is not enough; None if that would leave no room for some turns of growth."""
    limits = now.limits
    usual = tuple(offer for offer in now.proposals if offer.mechanism not in INTO_TAIL)
    wanted = prune_first(replace(now, proposals=usual), _trigger(now, ceiling))
    if not isinstance(wanted, Compact) or now.past.fruitless > 0:
        return None
    if expected_after(now, wanted.proposals) > limits.roomy:
        return None
    return replace(wanted, proposals=(*wanted.proposals, *useful(now, SQUEEZE)), fit=limits.roomy)


def _ceiling_into_tail(now: DecisionContext, ceiling: int) -> Compact:
    plan, trigger = fitting_plan(now), _trigger(now, ceiling)
    reason = because(
        "ceiling-into-tail",
        prompt=now.prompt,
        ceiling=ceiling,
        middle=expected_after(now, (*middle_edits(now), *summaries(now))),
        enough=trigger.enough,
        expected=expected_with_squeeze(now, plan),
    )
    return replace(trigger.compact(plan, reason), fit=now.limits.roomy)


def _trigger(now: DecisionContext, ceiling: int) -> Trigger:
    limits = now.limits
    enough = min(limits.target, max(0, ceiling - limits.runway), limits.roomy)
    return Trigger(limit="ceiling max_view_tokens", at=ceiling + 1, enough=enough)


def _out_of_reach(now: DecisionContext, ceiling: int) -> Keep:
    return Keep(because=because("ceiling-out-of-reach", prompt=now.prompt, ceiling=ceiling))


def over_cliff(now: DecisionContext) -> Compact | None:
    """Compact what is billed at higher prices, by the mildest plan that brings it below; None if none does."""
    cliff = now.limits.cliff
    if cliff is None or now.prompt < cliff:
        return None
    edits, text = middle_edits(now), summaries(now)
    for plan in (edits, (*edits, *text)):
        expected = expected_after(now, plan)
        if plan and expected < cliff:
            enough = max(0, min(now.limits.target, cliff - now.limits.runway))
            reason = because("cliff", prompt=now.prompt, cliff=cliff, expected=expected)
            return Compact(proposals=plan, because=reason, enough=enough, below=cliff)
    return None


RETRY = Pause(first=600.0, longest=3_600.0)


def irreducible(now: DecisionContext, wanted: Compact) -> Keep | None:
    """Wait until the prompt has grown by a runway, there is enough that is new to remove, or time has passed.

    None of the three can be put off by what happens in between, so a compaction that is due comes in the end.
    """
    past, limits = now.past, now.limits
    if past.fruitless <= 0:
        return None
    retry_at = past.floor + limits.runway
    fresh = _fresh_tokens(now, wanted)
    since = now.at if past.fruitless_at is None else past.fruitless_at
    left = RETRY.seconds_left(past.fruitless, since=since, at=now.at)
    needed = limits.minimum_prune if limits.minimum_prune > 1 else limits.runway
    if now.prompt >= retry_at or fresh >= needed or not left:
        return None
    return Keep(
        because=because(
            "irreducible",
            prompt=now.prompt,
            tries=past.fruitless,
            floor=past.floor,
            retry_at=retry_at,
            fresh=fresh,
            needed=needed,
            seconds=left,
        )
    )


def _fresh_tokens(now: DecisionContext, wanted: Compact) -> int:
    """Return how much more is to be removed than the last fruitless compaction was to remove and did not."""
    offered = now.prompt - expected_after(now, wanted.proposals)
    return max(0, offered - now.past.undelivered)


_BEFORE_OFFERS: frozenset[Code] = frozenset(
    {
        "disabled",
        "policy-never",
        "below-threshold",
        "below-hygiene",
        "too-few-messages",
        "too-little-raw",
        "budget-headroom",
        "cache-aware",
        "rent-cannot-be-due",
        "rent-rests",
        "undone",
    }
)


def final_without_proposals(decision: Decision, now: DecisionContext) -> bool:
    """Return whether a decision taken without any offers stands whatever is offered.

    Above a cliff or the provider's byte limit none does.
    """
    above = now.limits.cliff is not None and now.prompt >= now.limits.cliff
    if above or now.is_too_large:
        return False
    return isinstance(decision, Keep) and decision.because.code in _BEFORE_OFFERS


def decide(now: DecisionContext, settings: Settings, *, policy: Policy | str | None = None) -> Decision:
    """Return what to do before the next call, under the policy of the settings unless another is given or named.

    Switched off is off, even by hand and at the wall. By hand, at the wall and above a ceiling nothing holds a compaction back.
    """
    chosen = policy if isinstance(policy, Policy) else policy_named(policy or settings.compression.policy)
    return (
        _disabled(now, settings)
        or by_hand(now, chosen)
        or at_the_wall(now)
        or over_byte_limit(now)
        or above_ceiling(now, settings)
        or _unless_held_back(now, _wanted(now, settings, chosen))
    )


def _disabled(now: DecisionContext, settings: Settings) -> Keep | None:
    if now.enabled and settings.compression.enabled:
        return None
    return Keep(because=because("disabled", prompt=now.prompt))


def _wanted(now: DecisionContext, settings: Settings, policy: Policy) -> Decision:
    """Return what the numbers ask for: staying below a cliff, hygiene, or the policy's rule."""
    avoided = over_cliff(now) if policy.avoids_cliffs else None
    return avoided or safety_net(now, settings) or policy.decide(now, settings)


def _unless_held_back(now: DecisionContext, wanted: Decision) -> Decision:
    if isinstance(wanted, Keep):
        return wanted
    possible = cooling_down(now, wanted) or wanted
    return possible if isinstance(possible, Keep) else irreducible(now, possible) or possible
