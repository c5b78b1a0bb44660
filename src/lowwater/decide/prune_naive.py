"""The policy `prune-naive`: prune at the threshold and be content with anything below it (docs/specification.md: D, no runway)."""

from lowwater.decide.prune_first import prune_first
from lowwater.decide.threshold import at_threshold, below_threshold
from lowwater.values.decision import Decision
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation


def prune_naive(now: Situation, _settings: Settings) -> Decision:
    """Prune at the threshold; summarise only if the pruned view would still be at it."""
    return below_threshold(now) or prune_first(now, at_threshold(now, enough=now.limits.threshold - 1))
