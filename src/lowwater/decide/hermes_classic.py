"""The policy `hermes-classic`: at the threshold prune and summarise, always both (docs/specification.md: A, C)."""

from lowwater.decide.offers import expected_after, pruning, summaries
from lowwater.decide.reasons import because
from lowwater.decide.threshold import at_threshold, below_threshold
from lowwater.values.decision import Decision, Keep
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation


def hermes_classic(now: Situation, _settings: Settings) -> Decision:
    """Prune whatever there is at the threshold, then summarise, however far the prune got."""
    return below_threshold(now) or _everything(now)


def _everything(now: Situation) -> Decision:
    trigger = at_threshold(now, enough=0)
    prune = pruning(now)
    plan = (*prune, *summaries(now))
    if not plan:
        return Keep(because=because("nothing-offered", **trigger.facts(now)))
    reason = because(
        "prune-and-summary",
        **trigger.facts(now),
        reclaims=now.removes(prune),
        expected=expected_after(now, plan),
    )
    return trigger.compact(plan, reason)
