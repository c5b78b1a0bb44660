"""`when-cold`: change the prompt only when the provider's cache has expired, because a rewrite then costs nothing extra."""

from lowwater.plugins import (
    PRICED,
    Compact,
    Decision,
    DecisionContext,
    Fact,
    Keep,
    Policy,
    Reason,
    Settings,
    best_of,
)


def when_cold(now: DecisionContext, _settings: Settings) -> Decision:
    """Buy the best plan while the cache is cold; while it is warm, keep the prompt as it is.

    What does not fit is compacted by Lowwater itself, whatever a policy says.
    """
    facts: dict[str, Fact] = {"prompt": now.prompt}
    if now.candidates is None or now.candidates.warm != "cold":
        return Keep(because=Reason(code="cache-is-warm", facts=facts))
    best = best_of(now.candidates.plans)
    if best is None or not best.is_due:
        return Keep(because=Reason(code="cold-and-nothing-due", facts=facts))
    facts |= {"removes": best.removes}
    return Compact(proposals=best.plan, because=Reason(code="cache-is-cold", facts=facts))


POLICY = Policy(
    name="when-cold",
    decide=when_cold,
    preset=PRICED,  # so that `now.candidates` has plans with prices
    avoids_cliffs=False,
    smallest_context=False,
)
