"""After the summarizer failed, a pause that doubles with every failure and ends by itself; edits go on (docs/specification.md: C)."""

from lowwater.decide.offers import expected_after
from lowwater.decide.pause import Pause
from lowwater.decide.reasons import because
from lowwater.values.decision import Compact, Decision, Fact, Keep
from lowwater.values.situation import Past, Situation

COOL_DOWN = Pause(first=60.0, longest=3_600.0)


def cool_down_left(past: Past, at: float) -> int:
    """Return for how many seconds no call of a model may be made."""
    if past.failed_at is None:
        return 0
    return COOL_DOWN.seconds_left(past.failures, since=past.failed_at, at=at)


def cooling_down(now: Situation, wanted: Compact) -> Decision | None:
    """While it lasts, carry out only what takes no call of a model, if that reclaims enough to count."""
    left = cool_down_left(now.past, now.at)
    if not left or not any(offer.calls for offer in wanted.proposals):
        return None
    free = tuple(offer for offer in wanted.proposals if not offer.calls)
    reclaims = now.removes(free)
    facts: dict[str, Fact] = {
        "prompt": now.prompt,
        "failures": now.past.failures,
        "seconds": left,
        "reclaims": reclaims,
    }
    if reclaims < now.limits.minimum_prune:
        return Keep(because=because("cooling-down", **facts, minimum=now.limits.minimum_prune))
    reason = because("cooling-down-prune", **facts, expected=expected_after(now, free))
    return Compact(proposals=free, because=reason, enough=wanted.enough, below=wanted.below)
