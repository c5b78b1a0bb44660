"""At a cliff the whole request is billed at higher prices: what can be brought below it is (docs/specification.md: A)."""

from lowwater.decide.offers import expected_after, middle_edits, summaries
from lowwater.decide.reasons import because
from lowwater.values.decision import Compact
from lowwater.values.situation import Situation


def over_cliff(now: Situation) -> Compact | None:
    """Compact what is billed at higher prices, by the mildest plan that brings it below; None if none does."""
    cliff = now.limits.cliff
    if cliff is None or now.prompt < cliff:
        return None
    edits, text = middle_edits(now), summaries(now)
    for plan in (edits, (*edits, *text)):
        expected = expected_after(now, plan)
        if plan and expected < cliff:
            enough = max(0, min(now.limits.target, cliff - now.limits.runway))
            reason = because("cliff", prompt=now.prompt, cliff=cliff, expected=expected)
            return Compact(proposals=plan, because=reason, enough=enough, below=cliff)
    return None
