"""The policy `never`: it never asks for a compaction; the safety rules still force one if the prompt does not fit."""

from lowwater.core.decisions import Decision, DecisionContext, Keep, because
from lowwater.core.limits import Limits
from lowwater.core.policies.policy import OWN, Policy
from lowwater.settings import Settings


def never(now: DecisionContext, _settings: Settings) -> Decision:
    """Keep the view, whatever its size."""
    return Keep(because=because("policy-never", prompt=now.prompt, wall=now.limits.wall))


def _nowhere(_: Limits, __: Settings) -> None:
    return None


POLICIES = (Policy(name="never", decide=never, preset=OWN, avoids_cliffs=False, point=_nowhere),)
