"""The policy `guarded`: one chunk is summarised at a time if guards allow it, and a full sweep follows above the budget's threshold."""

from typing import Literal

from msgspec import Struct

from lowwater.core.decisions import Compact, Decision, DecisionContext, Keep, Reason, because
from lowwater.core.limits import Limits, least_reaching, share_of
from lowwater.core.policies.at_threshold import expected_after, useful
from lowwater.core.policies.policy import OWN, ActionPoint, Policy
from lowwater.settings import LeafSettings, Settings

LeafOutcome = Literal["too-little-raw", "budget-headroom", "cache-aware", "leaf-pressure", "leaf-due"]
_COMPARED: dict[LeafOutcome, tuple[str, ...]] = {
    "too-little-raw": ("chunk",),
    "budget-headroom": ("ceiling",),
    "cache-aware": ("reduction", "least_reduction"),
    "leaf-pressure": ("ceiling", "reduction"),
    "leaf-due": ("reduction", "least_reduction"),
}


def guarded(now: DecisionContext, settings: Settings) -> Decision:
    """Sweep the whole view above the budget's threshold; below it, make one leaf pass if its guards allow it."""
    return _full_sweep(now, settings.leaf) or _leaf_pass(now, settings.leaf)


def _full_sweep(now: DecisionContext, leaf: LeafSettings) -> Decision | None:
    """Above the budget's threshold, summarise chunks and condense summaries until the view is below the leaf ceiling.

    The gap between the two sizes keeps the next sweep from being due at once.
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


def _leaf_pass(now: DecisionContext, leaf: LeafSettings) -> Decision:
    """Summarise the oldest raw chunk, and merge summaries in the same event: the cache breaks only once."""
    verdict = guard_leaf(raw=now.outside_tail, assembled=now.prompt, budget=_budget(now), leaf=leaf)
    if not verdict.compacts:
        return Keep(because=verdict.because())
    plan = (*useful(now, "leaf")[:1], *useful(now, "condense"))
    if not plan:
        reason = because("no-leaf-offered", assembled=now.prompt, raw=verdict.raw, chunk=verdict.chunk)
        return Keep(because=reason)
    return Compact(proposals=plan, because=verdict.because())


def _budget(now: DecisionContext) -> int | None:
    return now.limits.context if now.has_budget else None


class LeafVerdict(Struct, frozen=True, kw_only=True):
    """Whether a leaf pass (a summary of the oldest chunk) may go ahead, and every number that was compared."""

    outcome: LeafOutcome
    assembled: int
    """The size of the prompt."""
    raw: int
    """Tokens outside the tail that were never summarised."""
    chunk: int
    """Tokens that one pass summarises."""
    reduction: int
    """Tokens that one pass would remove."""
    least_reduction: int
    """The smallest reduction worth breaking the cache; 0 if that guard is off."""
    ceiling: int | None
    """The size at which a pass is forced, whatever it costs the cache; None if the budget is not known or the guard is off."""

    @property
    def compacts(self) -> bool:
        """Whether the pass may go ahead."""
        return self.outcome in {"leaf-pressure", "leaf-due"}

    @property
    def pressure(self) -> Literal["yes", "no", "unknown"]:
        """Whether the prompt has reached the ceiling."""
        if self.ceiling is None:
            return "unknown"
        return "yes" if self.assembled >= self.ceiling else "no"

    def because(self) -> Reason:
        """Return the verdict as a reason, with the numbers that its guard compared."""
        numbers = {name: getattr(self, name) for name in ("assembled", "raw", *_COMPARED[self.outcome])}
        return because(self.outcome, **numbers, pressure=self.pressure)


def guard_leaf(*, raw: int, assembled: int, budget: int | None, leaf: LeafSettings) -> LeafVerdict:
    """Return whether a leaf pass may go ahead; a budget that is missing or not positive counts as unknown.

    A factor of 0 disables its guard. Pressure overrules the cache, so that no pass is postponed for ever.
    """
    chunk = leaf.leaf_chunk_tokens
    reduction = max(0, min(raw, chunk) - leaf.leaf_target_tokens)
    least = least_reaching(assembled, leaf.leaf_skip_reduction_threshold)
    ceiling = _ceiling(budget, leaf)
    return LeafVerdict(
        outcome=_outcome(
            raw=raw, chunk=chunk, assembled=assembled, ceiling=ceiling, reduction=reduction, least=least
        ),
        assembled=assembled,
        raw=raw,
        chunk=chunk,
        reduction=reduction,
        least_reduction=least,
        ceiling=ceiling,
    )


def _ceiling(budget: int | None, leaf: LeafSettings) -> int | None:
    if budget is None or budget <= 0:
        return None
    return least_reaching(budget, leaf.leaf_budget_headroom_factor, leaf.context_threshold) or None


def _outcome(
    *, raw: int, chunk: int, assembled: int, ceiling: int | None, reduction: int, least: int
) -> LeafOutcome:
    if raw < chunk:
        return "too-little-raw"
    if ceiling is not None:
        return "budget-headroom" if assembled < ceiling else "leaf-pressure"
    return "cache-aware" if reduction < least else "leaf-due"


def _budget_threshold(limits: Limits, settings: Settings) -> ActionPoint | None:
    at = share_of(limits.context, settings.leaf.context_threshold)
    return ActionPoint(at=at, called="budget's threshold", beyond=True) if at else None


POLICIES = (
    Policy(
        name="guarded",
        decide=guarded,
        preset=OWN,
        mechanisms=("leaf", "condense"),
        larger_count=True,
        point=_budget_threshold,
    ),
)
