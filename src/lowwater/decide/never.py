"""The policy `never`: no compaction of its own accord; what must fit is made to fit all the same."""

from lowwater.decide.reasons import because
from lowwater.values.decision import Decision, Keep
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation


def never(now: Situation, _settings: Settings) -> Decision:
    """Keep the view, whatever its size."""
    return Keep(because=because("policy-never", prompt=now.prompt, wall=now.limits.wall))
