"""The policy `guarded`: summaries chunk by chunk, and a full sweep once the budget's threshold is passed (docs/specification.md: E)."""

from lowwater.decide.leaf_guards import guard_leaf
from lowwater.decide.offers import expected_after, useful
from lowwater.decide.reasons import because
from lowwater.values.decision import Compact, Decision, Keep
from lowwater.values.settings import LeafSettings, Settings
from lowwater.values.shares import share_of
from lowwater.values.situation import Situation


def guarded(now: Situation, settings: Settings) -> Decision:
    """Sweep what no longer fits the budget's threshold; else take one leaf pass, if its guards let it."""
    return _full_sweep(now, settings.leaf) or _leaf_pass(now, settings.leaf)


def _full_sweep(now: Situation, leaf: LeafSettings) -> Decision | None:
    """Above the budget's threshold, condense and take leaves until the view is back below the leaf ceiling.

    The gap between the two is what keeps a sweep from being due again at once.
    """
    budget = _budget(now)
    trigger = share_of(budget, leaf.context_threshold) if budget else 0
    if not trigger or now.prompt <= trigger:
        return None
    plan = useful(now, "leaf", "condense")
    if not plan:
        reason = because("nothing-offered", prompt=now.prompt, limit="budget's threshold", trigger=trigger)
        return Keep(because=reason)
    ceiling = share_of(trigger, leaf.leaf_budget_headroom_factor) or trigger
    enough = max(0, min(ceiling, trigger - now.limits.runway))
    reason = because(
        "full-sweep",
        assembled=now.prompt,
        trigger=trigger,
        passes=len(plan),
        enough=enough,
        expected=expected_after(now, plan),
    )
    return Compact(proposals=plan, because=reason, enough=enough, below=trigger + 1)


def _leaf_pass(now: Situation, leaf: LeafSettings) -> Decision:
    """Summarise the oldest raw chunk, and merge summaries in the same event: the cache breaks only once."""
    verdict = guard_leaf(raw=now.outside_tail, assembled=now.prompt, budget=_budget(now), leaf=leaf)
    if not verdict.compacts:
        return Keep(because=verdict.because())
    plan = (*useful(now, "leaf")[:1], *useful(now, "condense"))
    if not plan:
        reason = because("no-leaf-offered", assembled=now.prompt, raw=verdict.raw, chunk=verdict.chunk)
        return Keep(because=reason)
    return Compact(proposals=plan, because=verdict.because())


def _budget(now: Situation) -> int | None:
    return now.limits.context if now.has_budget else None
