"""The threshold: compaction is due at it, never below it; as a policy, a summary and nothing else (docs/specification.md: A)."""

from lowwater.decide.prune_first import Trigger, summary_only
from lowwater.decide.reasons import because
from lowwater.values.decision import Decision, Keep
from lowwater.values.limits import Limits
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation


def should_compress(tokens: int | None, limits: Limits, *, known: int = 0) -> bool:
    """Return whether a prompt of this size is at its threshold.

    None means the size is not known, and `known`, the last that was, stands in for it; 0 is a size like any other.
    """
    return (known if tokens is None else tokens) >= limits.threshold


def below_threshold(now: Situation) -> Keep | None:
    """Keep what has not reached the threshold."""
    if should_compress(now.prompt, now.limits):
        return None
    return Keep(because=because("below-threshold", prompt=now.prompt, threshold=now.limits.threshold))


def at_threshold(now: Situation, *, enough: int) -> Trigger:
    """Return the threshold as a trigger."""
    return Trigger(limit="threshold", at=now.limits.threshold, enough=enough)


def threshold(now: Situation, _settings: Settings) -> Decision:
    """At the threshold, replace the middle by a summary; never prune."""
    return below_threshold(now) or summary_only(now, at_threshold(now, enough=now.limits.target))
