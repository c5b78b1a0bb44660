"""Where it is decided whether to compact: `decide` asks the policy, and applies the safety rules that hold for every policy.

Some rules come before the policy (by hand, wall, byte limit, ceiling, cliff, hygiene); two may veto what it wants afterwards
(the cool-down after failed summaries, and the guard against compactions that achieve nothing).
"""

from math import ceil, isfinite

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import (
    Compact,
    Decision,
    DecisionContext,
    Fact,
    Keep,
    Past,
    PricedPlan,
    ReasonCode,
    because,
)
from lowwater.core.limits import TURNS_BETWEEN
from lowwater.core.policies.at_threshold import (
    Trigger,
    expected_after,
    last_resort,
    middle_edits,
    prune_first,
    pruning,
    reach,
    summaries,
    useful,
)
from lowwater.core.policies.hygiene import safety_net
from lowwater.core.policies.policy import Policy
from lowwater.core.proposals import Proposal
from lowwater.settings import Settings

Plan = tuple[Proposal, ...]
"""Proposals in the order in which they are carried out."""
_CEILING_TRIES = 2
"""Compactions in a row that may end above the ceiling before the rule pauses for some turns; the first may fall short of its plan."""
_BYTES_PER_TOKEN = 12
"""Upper bound of what removing one token of text frees: if even that is not enough, removing text would be useless."""
_MOST_DOUBLINGS = 20


def decide(now: DecisionContext, settings: Settings, *, policy: Policy | str | None = None) -> Decision:
    """Return what to do before the next call; `policy`, an object or a name, overrides the one in the settings.

    The first rule with an opinion decides. If compaction is disabled, nothing is compacted, not even by hand or at the wall.
    Only what the policy, a cliff or hygiene asks for can be vetoed.
    """
    if not isinstance(policy, Policy):
        from lowwater.core.policies.registry import policy_named  # noqa: PLC0415 - it imports every file of this folder

        policy = policy_named(policy or settings.compression.policy)
    return (
        _disabled(now, settings)
        or by_hand(now, policy)
        or at_the_wall(now)
        or over_byte_limit(now)
        or above_ceiling(now, settings)
        or _unless_vetoed(now, _wanted(now, settings, policy))
    )


_FINAL_WITHOUT_PROPOSALS: frozenset[ReasonCode] = frozenset(
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
"""What a policy decides by sizes or prices alone, before it looks at proposals."""


def final_without_proposals(decision: Decision, now: DecisionContext) -> bool:
    """Return whether a decision taken without proposals stands, whatever the mechanisms would propose.

    Above a cliff or over the provider's byte limit no decision does.
    """
    above_cliff = now.limits.cliff is not None and now.prompt >= now.limits.cliff
    if above_cliff or now.is_too_large:
        return False
    return isinstance(decision, Keep) and decision.because.code in _FINAL_WITHOUT_PROPOSALS


def _disabled(now: DecisionContext, settings: Settings) -> Keep | None:
    if now.enabled and settings.compression.enabled:
        return None
    return Keep(because=because("disabled", prompt=now.prompt))


def _wanted(now: DecisionContext, settings: Settings, policy: Policy) -> Decision:
    """Return what is due at this size: a compaction that gets below a price cliff, hygiene, or what the policy's own rule says."""
    forced: Decision | None = over_cliff(now) if policy.avoids_cliffs else None
    if forced is None and settings.compression.hygiene and now.prompt >= now.limits.hygiene:
        forced = safety_net(now)
    return forced or policy.decide(now, settings)


def _unless_vetoed(now: DecisionContext, wanted: Decision) -> Decision:
    """Return what is wanted, or what the cool-down and the guard against fruitless compactions leave of it."""
    if isinstance(wanted, Keep):
        return wanted
    possible = cooling_down(now, wanted) or wanted
    return possible if isinstance(possible, Keep) else irreducible(now, possible) or possible


# By hand


def by_hand(now: DecisionContext, policy: Policy) -> Decision | None:
    """Carry out everything that the policy's mechanisms propose, whatever the size; if they propose nothing, what others do."""
    if not now.forced:
        return None
    plan = _plan_by_hand(now, policy)
    if not plan:
        return Keep(because=because("nothing-by-hand", prompt=now.prompt))
    reason = because("by-hand", prompt=now.prompt, expected=expected_after(now, plan))
    return Compact(proposals=plan, because=reason, below=now.limits.threshold, fit=now.limits.roomy)


def _plan_by_hand(now: DecisionContext, policy: Policy) -> Plan:
    if now.prompt > now.limits.most and (fitting := fitting_plan(now)):
        return fitting
    return _proposed_for(now, policy) or (*pruning(now), *summaries(now)) or now.proposals[:1]


def _proposed_for(now: DecisionContext, policy: Policy) -> Plan:
    """Return what the policy's mechanisms propose."""
    if policy.mechanisms is None:
        return (*pruning(now), *useful(now, "summarize"))
    return useful(now, *policy.mechanisms)


# At the wall: the prompt does not fit into the context window


def at_the_wall(now: DecisionContext) -> Decision | None:
    """Force a compaction if the prompt does not fit; cool-down and earlier failures are ignored."""
    if now.prompt <= replace(now.limits, ceiling=None).most:
        return None
    if (bought := _lasting(now)) is not None:
        return _bought(now, bought, "wall-to-last", wall=now.limits.wall)
    plan = fitting_plan(now)
    if not plan:
        return Keep(because=because("does-not-fit", prompt=now.prompt, wall=now.limits.wall))
    return _into_tail(now, plan) if reaches_tail(now, plan) else _in_the_middle(now, plan)


def _lasting(now: DecisionContext) -> PricedPlan | None:
    """Return the plan that costs least per call until the next is forced, unless the last compaction fell short of its plan."""
    if now.forced or now.past.fruitless > 0 or now.candidates is None:
        return None
    return now.candidates.lasting


def _bought(now: DecisionContext, bought: PricedPlan, code: ReasonCode, **limit: int) -> Compact:
    """Return the decision to carry out a whole plan, and to squeeze the rest if the plan removes less than promised."""
    limits, expected = now.limits, now.prompt - bought.removes
    calls = max(1, (limits.most - expected) // max(1, limits.growth))
    return Compact(
        proposals=(*bought.plan, *last_resort(now)),
        because=because(code, prompt=now.prompt, **limit, expected=expected, calls=calls),
        below=limits.threshold,
        fit=limits.roomy,
    )


def _in_the_middle(now: DecisionContext, plan: Plan) -> Compact:
    """Return the decision for a plan that leaves head and tail alone."""
    expected, limits = expected_in_the_end(now, plan), now.limits
    reason = because("wall", prompt=now.prompt, wall=limits.wall, expected=expected)
    return Compact(
        proposals=plan, because=reason, enough=limits.target, below=limits.threshold, fit=limits.roomy
    )


def _into_tail(now: DecisionContext, plan: Plan) -> Compact:
    """Return the decision for a plan that changes head or tail, as little as it takes to fit with a runway to spare."""
    limits = now.limits
    enough = min(max(limits.target, limits.wall - limits.runway), limits.roomy)
    reason = because(
        "wall-into-tail",
        prompt=now.prompt,
        wall=limits.wall,
        middle=expected_after(now, (*middle_edits(now), *summaries(now))),
        enough=enough,
        expected=expected_in_the_end(now, plan),
    )
    return Compact(proposals=plan, because=reason, enough=enough, below=limits.threshold, fit=limits.roomy)


def fitting_plan(now: DecisionContext) -> Plan:
    """Return the mildest plan that should fit with several turns of growth to spare, or else one that just fits.

    If no plan fits, return the one that removes most. After a fruitless compaction a whole runway has to be spared, because the
    limit would be reached at every turn otherwise. The last step is a squeeze, for what is still too large by then.
    """
    plans = [plan for plan in _plans(now) if plan]
    if _middle_was_not_enough(now):
        plans = [plan for plan in plans if _leaves_middle(plan)] or plans
    most = now.limits.most
    room_left = most - now.limits.runway if now.past.fruitless > 0 else most
    smallest = min(plans, key=lambda plan: expected_after(now, plan), default=_any_one(now))
    fitting = (
        plan
        for size in (min(now.limits.roomy, room_left), most)
        for plan in plans
        if expected_after(now, plan) <= size
    )
    return (*next(fitting, smallest), *last_resort(now))


def _plans(now: DecisionContext) -> list[Plan]:
    """Return the plans from mild to harsh: middle only; outputs in head and tail shortened; most of the tail summarised.

    During a cool-down, edits without a summary come first.
    """
    edits, all_edits, summary = middle_edits(now), pruning(now), summaries(now)
    widest_summary = useful(now, "summarize_all") or summary
    plans = [(*edits, *summary), (*all_edits, *summary), (*all_edits, *widest_summary)]
    cooling = not now.forced and cool_down_left(now.past, now.at)
    return [edits, *plans] if cooling else plans


def _any_one(now: DecisionContext) -> Plan:
    """Return the first proposal that removes anything at all."""
    others = without_last_resort(now.proposals)
    return tuple(offer for offer in others if now.scaled(offer.removes) > 0)[:1]


def _middle_was_not_enough(now: DecisionContext) -> bool:
    """Return whether the last compaction ended above what fits, so that the same again would not help."""
    return now.past.fruitless > 0 and now.past.floor > now.limits.most


def reaches_tail(now: DecisionContext, plan: Plan) -> bool:
    """Return whether a plan should have to change the protected head or tail."""
    steps = without_last_resort(plan)
    return _leaves_middle(steps) or (steps != plan and expected_after(now, steps) > now.limits.roomy)


def expected_in_the_end(now: DecisionContext, plan: Plan) -> int:
    """Return the size that a plan should leave; a last resort removes no more than it has to."""
    left = expected_after(now, without_last_resort(plan))
    return left if left <= now.limits.roomy else max(min(left, now.limits.roomy), expected_after(now, plan))


def without_last_resort(plan: Plan) -> Plan:
    """Return the steps of a plan before its last resort."""
    return tuple(offer for offer in plan if reach(offer) != "last-resort")


def _leaves_middle(plan: Plan) -> bool:
    """Return whether a step may change the protected head or tail."""
    return any(reach(offer) != "middle" for offer in plan)


# Over the provider's byte limit


def over_byte_limit(now: DecisionContext) -> Decision | None:
    """Force a compaction if the provider would refuse the request for its size in bytes, whatever its tokens."""
    limit = now.limits.max_bytes
    if limit is None or not now.is_too_large:
        return None
    bought = _lasting(now)
    plan = useful(now, "images") or (bought.plan if bought else middle_edits(now)) or fitting_plan(now)
    if plan and not any(offer.mechanism == "images" for offer in plan):
        freed = _BYTES_PER_TOKEN * (now.prompt - expected_after(now, plan))
        plan = plan if now.bytes - freed <= limit else ()
    if not plan:
        return Keep(because=because("too-many-bytes", bytes=now.bytes, limit=limit))
    return Compact(proposals=plan, because=because("byte-limit", bytes=now.bytes, limit=limit))


# Above the user's ceiling (max_view_tokens)


def above_ceiling(now: DecisionContext, settings: Settings) -> Decision | None:
    """Compact a prompt above the user's ceiling: the middle if that is enough, head and tail too if not.

    If even that does not help, it is tried again some turns later, and every decision until then says so.
    """
    ceiling = settings.compression.max_view_tokens
    if ceiling is None:
        return None
    now = replace(now, limits=replace(now.limits, ceiling=ceiling))
    if now.prompt <= now.limits.most:
        return None
    if (bought := _lasting(now)) is not None:
        return replace(_bought(now, bought, "ceiling-to-last", ceiling=ceiling), below=ceiling + 1)
    plan = () if _ceiling_pauses(now, ceiling) else fitting_plan(now)
    return (
        _ceiling_in_the_middle(now, ceiling) or _ceiling_into_tail(now, ceiling)
        if plan
        else _out_of_reach(now, ceiling)
    )


def _ceiling_pauses(now: DecisionContext, ceiling: int) -> bool:
    """Return whether the last compactions all ended above the ceiling, and it is too early for another try."""
    past = now.past
    return past.fruitless >= _CEILING_TRIES and past.floor > ceiling and past.turns_since < TURNS_BETWEEN


def _ceiling_in_the_middle(now: DecisionContext, ceiling: int) -> Compact | None:
    """Prune, and summarise if that is not enough; None if that would not leave room for several turns of growth."""
    limits = now.limits
    outside_tail = tuple(offer for offer in now.proposals if reach(offer) == "middle")
    wanted = prune_first(replace(now, proposals=outside_tail), _ceiling_trigger(now, ceiling))
    if not isinstance(wanted, Compact) or now.past.fruitless > 0:
        return None
    if expected_after(now, wanted.proposals) > limits.roomy:
        return None
    return replace(wanted, proposals=(*wanted.proposals, *last_resort(now)), fit=limits.roomy)


def _ceiling_into_tail(now: DecisionContext, ceiling: int) -> Compact:
    plan, trigger = fitting_plan(now), _ceiling_trigger(now, ceiling)
    reason = because(
        "ceiling-into-tail",
        prompt=now.prompt,
        ceiling=ceiling,
        middle=expected_after(now, (*middle_edits(now), *summaries(now))),
        enough=trigger.enough,
        expected=expected_in_the_end(now, plan),
    )
    return replace(trigger.compact(plan, reason), fit=now.limits.roomy)


def _ceiling_trigger(now: DecisionContext, ceiling: int) -> Trigger:
    limits = now.limits
    enough = min(limits.target, max(0, ceiling - limits.runway), limits.roomy)
    return Trigger(limit="ceiling max_view_tokens", at=ceiling + 1, enough=enough)


def _out_of_reach(now: DecisionContext, ceiling: int) -> Keep:
    return Keep(because=because("ceiling-out-of-reach", prompt=now.prompt, ceiling=ceiling))


# Above a price cliff


def over_cliff(now: DecisionContext) -> Compact | None:
    """Compact a prompt that is billed at higher prices as a whole, by the mildest plan that gets it below the cliff, if one does."""
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


# Vetoes: the cool-down after failed summaries, and the guard against compactions that achieve nothing


class DoublingPause(Struct, frozen=True, kw_only=True):
    """A pause that doubles with every failure in a row."""

    first: float
    longest: float

    def seconds(self, failures: int) -> float:
        """Return the length of the pause after this many failures in a row."""
        if failures <= 0:
            return 0.0
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))

    def seconds_left(self, failures: int, *, since: float, at: float) -> int:
        """Return how many whole seconds of the pause are left; 0 if `since` lies in the future, because the clock was set back."""
        elapsed = at - since
        length = self.seconds(failures)
        return ceil(length - elapsed) if isfinite(elapsed) and 0 <= elapsed < length else 0


COOL_DOWN = DoublingPause(first=60.0, longest=3_600.0)
"""How long no summary is asked for after summarizers failed."""
RETRY = DoublingPause(first=600.0, longest=3_600.0)
"""How long a fruitless compaction is not repeated."""


def cooling_down(now: DecisionContext, wanted: Compact) -> Decision | None:
    """During a cool-down, carry out only what takes no model call, if that reclaims enough to count."""
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


def cool_down_left(past: Past, at: float) -> int:
    """Return for how many more seconds no summary may be asked for."""
    if past.failed_at is None:
        return 0
    return COOL_DOWN.seconds_left(past.failures, since=past.failed_at, at=at)


def irreducible(now: DecisionContext, wanted: Compact) -> Keep | None:
    """After a fruitless compaction, wait until the prompt has grown by a runway, enough new can be removed, or time has passed.

    Nothing that happens meanwhile postpones any of the three, so a compaction that is due does come in the end.
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
    """Return how many tokens could be removed beyond those that the last fruitless compaction failed to remove."""
    offered = now.prompt - expected_after(now, wanted.proposals)
    return max(0, offered - now.past.undelivered)


# What a session remembers of its compactions (`Past`)


def after_compaction(now: DecisionContext, decision: Compact, *, prompt: int | None) -> Past:
    """Return the past after a compaction that left `prompt` tokens, None if it was given up and changed nothing.

    One that ended at or above `decision.below` counts as fruitless.
    """
    past = now.past
    left = now.prompt if prompt is None else prompt
    if prompt is not None:
        past = replace(past, compactions=past.compactions + 1, turns_since=0)
    if prompt is not None and (prompt < decision.below or not decision.below):
        return _without_fruitless(past)
    return replace(
        past,
        fruitless=past.fruitless + 1,
        floor=left,
        fruitless_at=now.at,
        undelivered=max(0, left - expected_after(now, decision.proposals)),
    )


def after_failure(past: Past, *, at: float) -> Past:
    """Return the past after the summarizer failed."""
    return replace(past, failures=past.failures + 1, failed_at=at)


def after_summary(past: Past) -> Past:
    """Return the past after the summarizer succeeded: the cool-down is over."""
    return replace(past, failures=0, failed_at=None)


def after_turn(past: Past) -> Past:
    """Return the past at the beginning of another turn."""
    return replace(past, turns_since=past.turns_since + 1)


def after_switch(past: Past) -> Past:
    """Return the past after a switch of model: fruitless compactions for one model say nothing about another."""
    return _without_fruitless(past)


def _without_fruitless(past: Past) -> Past:
    return replace(past, fruitless=0, floor=0, fruitless_at=None, undelivered=0)
