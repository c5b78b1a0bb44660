"""Prune first, a summary only if that is not enough: what the policies with a fixed trigger share (docs/specification.md: D)."""

from msgspec import Struct

from lowwater.decide.offers import expected_after, pruning, summaries
from lowwater.decide.reasons import because
from lowwater.values.decision import Compact, Decision, Fact, Keep, Reason
from lowwater.values.proposal import Proposal
from lowwater.values.situation import Situation


class Trigger(Struct, frozen=True, kw_only=True):
    """A size at which compaction is due, what people call it, and the size at which it may stop."""

    limit: str
    at: int
    enough: int

    def facts(self, now: Situation) -> dict[str, Fact]:
        """Return what was compared to find that compaction is due."""
        return {"prompt": now.prompt, "limit": self.limit, "trigger": self.at}

    def compact(self, proposals: tuple[Proposal, ...], reason: Reason) -> Compact:
        """Return the decision to carry these out until it is enough."""
        return Compact(proposals=proposals, because=reason, enough=self.enough, below=self.at)


def prune_first(now: Situation, trigger: Trigger) -> Decision:
    """Prune if that counts, and go on to a summary unless the pruned view is at or below `enough`."""
    prune = pruning(now)
    if not prune:
        return summary_only(now, trigger)
    if now.removes(prune) < now.limits.minimum_prune:
        return _discard_prune(now, trigger, now.removes(prune))
    text = summaries(now)
    pruned = now.after(prune)
    facts = {**trigger.facts(now), "pruned": pruned, "target": trigger.enough}
    if pruned <= trigger.enough:
        return trigger.compact((*prune, *text), because("prune-suffices", **facts))
    if text:
        return trigger.compact((*prune, *text), because("prune-falls-short", **facts))
    return Keep(because=because("prune-alone-falls-short", **facts))


def summary_only(now: Situation, trigger: Trigger) -> Decision:
    """Replace the middle by a summary, without pruning."""
    text = summaries(now)
    if not text:
        return Keep(because=because("nothing-offered", **trigger.facts(now)))
    expected = expected_after(now, text)
    return trigger.compact(text, because("summary-due", **trigger.facts(now), expected=expected))


def _discard_prune(now: Situation, trigger: Trigger, reclaims: int) -> Decision:
    """Decide where a prune does not count: it is discarded whole, and a summary stands in for it."""
    text = summaries(now)
    facts = {**trigger.facts(now), "reclaims": reclaims, "minimum": now.limits.minimum_prune}
    if not text:
        return Keep(because=because("prune-alone-too-small", **facts))
    return trigger.compact(text, because("prune-too-small", **facts))
