"""The policy `runway`: a prune is accepted alone only if it leaves room to grow (docs/specification.md: D)."""

from lowwater.decide.prune_first import prune_first
from lowwater.decide.threshold import at_threshold, below_threshold
from lowwater.values.decision import Decision
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation


def runway(now: Situation, _settings: Settings) -> Decision:
    """Prune at the threshold; summarise in the same event unless the pruned view is at or below the target."""
    return below_threshold(now) or prune_first(now, at_threshold(now, enough=now.limits.target))
