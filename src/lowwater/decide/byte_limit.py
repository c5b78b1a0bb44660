"""A request with more bytes than the provider takes must be made smaller: images first, which are many bytes and few tokens."""

from lowwater.decide.offers import MIDDLE_EDITS, useful
from lowwater.decide.reasons import because
from lowwater.decide.wall import fitting_plan
from lowwater.values.decision import Compact, Decision, Keep
from lowwater.values.situation import Situation


def over_byte_limit(now: Situation) -> Decision | None:
    """Force a compaction of what the provider would refuse for its size, whatever its tokens."""
    limit = now.limits.max_bytes
    if limit is None or not now.is_too_large:
        return None
    plan = useful(now, "images") or useful(now, *MIDDLE_EDITS) or fitting_plan(now)
    if not plan:
        return Keep(because=because("too-many-bytes", bytes=now.bytes, limit=limit))
    return Compact(proposals=plan, because=because("byte-limit", bytes=now.bytes, limit=limit))
