"""The quality ceiling: no prompt above `max_view_tokens`, whatever the policy (ECONOMICS, overrides)."""

from lowwater.decide.prune_first import Trigger, prune_first
from lowwater.values.decision import Decision
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation


def above_ceiling(now: Situation, settings: Settings) -> Decision | None:
    """Compact what is larger than the user wants the model to see."""
    ceiling = settings.compression.max_view_tokens
    if ceiling is None or now.prompt <= ceiling:
        return None
    enough = min(now.limits.target, max(0, ceiling - now.limits.runway))
    return prune_first(now, Trigger(limit="ceiling max_view_tokens", at=ceiling + 1, enough=enough))
