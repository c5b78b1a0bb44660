"""A request with more bytes than the provider takes must be made smaller: images first, which are many bytes and few tokens."""

from lowwater.decide.offers import expected_after, middle_edits, useful
from lowwater.decide.reasons import because
from lowwater.decide.wall import fitting_plan
from lowwater.values.decision import Compact, Decision, Keep
from lowwater.values.situation import Situation

_BYTES_PER_TOKEN = 12
"""What removing a token of text frees at most: if that is not enough, text is not removed for nothing."""


def over_byte_limit(now: Situation) -> Decision | None:
    """Force a compaction of what the provider would refuse for its size, whatever its tokens."""
    limit = now.limits.max_bytes
    if limit is None or not now.is_too_large:
        return None
    plan = useful(now, "images") or middle_edits(now) or fitting_plan(now)
    if plan and not any(offer.mechanism == "images" for offer in plan):
        freed = _BYTES_PER_TOKEN * (now.prompt - expected_after(now, plan))
        plan = plan if now.bytes - freed <= limit else ()
    if not plan:
        return Keep(because=because("too-many-bytes", bytes=now.bytes, limit=limit))
    return Compact(proposals=plan, because=because("byte-limit", bytes=now.bytes, limit=limit))
