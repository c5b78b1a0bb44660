"""The policy `never`: it never asks for a compaction; the safety rules still force one if the prompt does not fit."""

from lowwater.core.decisions import Decision, DecisionContext, Keep
from lowwater.core.policies.reasons import because
from lowwater.settings import Settings


def never(now: DecisionContext, _settings: Settings) -> Decision:
    """Keep the view, whatever its size."""
    return Keep(because=because("policy-never", prompt=now.prompt, wall=now.limits.wall))
