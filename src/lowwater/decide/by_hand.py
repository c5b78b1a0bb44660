"""Compaction asked for by hand: nothing holds it back (docs/specification.md: A)."""

from lowwater.decide.offers import PRUNING, edits_of_others, expected_after, pruning, summaries, useful
from lowwater.decide.policies import Policy
from lowwater.decide.reasons import because
from lowwater.decide.wall import fitting_plan
from lowwater.values.decision import Compact, Decision, Keep
from lowwater.values.proposal import Proposal
from lowwater.values.situation import Situation


def by_hand(now: Situation, policy: Policy) -> Decision | None:
    """Carry out all that the policy's mechanisms offer, below the threshold too; without them, whatever is offered."""
    if not now.forced:
        return None
    plan = _plan(now, policy)
    if not plan:
        return Keep(because=because("nothing-by-hand", prompt=now.prompt))
    reason = because("by-hand", prompt=now.prompt, expected=expected_after(now, plan))
    return Compact(proposals=plan, because=reason, below=now.limits.threshold, fit=now.limits.roomy)


def _plan(now: Situation, policy: Policy) -> tuple[Proposal, ...]:
    if now.prompt > now.limits.most and (fitting := fitting_plan(now)):
        return fitting
    return _own(now, policy) or (*pruning(now), *summaries(now)) or now.proposals[:1]


def _own(now: Situation, policy: Policy) -> tuple[Proposal, ...]:
    """Return what the policy's mechanisms offer, and with one that prunes whatever else does."""
    own, prunes = useful(now, *policy.mechanisms), not set(PRUNING).isdisjoint(policy.mechanisms)
    return (*(offer for offer in edits_of_others(now) if offer not in own), *own) if prunes else own
