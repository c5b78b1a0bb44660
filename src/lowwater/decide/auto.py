"""`threshold: auto`: a threshold from measured growth and content mix.

A compaction leaves the head, a summary and the tail; after it the view grows again. The threshold is where a number of
turns of that growth fits on top of what was left:

    threshold = head + summary + target_ratio × threshold + growth × turns
    turns     = 40 × (1.5 − tool share)

Solved for the threshold, since the tail is a share of it. Tool output can be pruned without a model and is rarely needed
again, so the more of it there is, the sooner a compaction pays: 20 turns of nothing but tool output, 60 turns of nothing
but text. The result is clamped like any threshold (docs/specification.md: A).
"""

from math import isfinite

from lowwater.values.settings import CompressionSettings
from lowwater.values.shares import share_of

LEAST_TURNS = 10
"""Turns to measure before growth is believed; until then the threshold is the default of 50 %."""
_TURNS = 40
_MIX = 1.5


def auto_threshold(
    compression: CompressionSettings,
    *,
    context: int,
    growth: float,
    turns: int,
    tool_share: float,
    head: int = 0,
) -> int | None:
    """Return the threshold for `derive_limits`, or None if it is not `auto`, or too little was measured.

    `growth` is tokens per turn over `turns` turns; `head` is what no compaction removes at the start of a prompt.
    """
    if compression.threshold != "auto" or turns < LEAST_TURNS:
        return None
    if not (isfinite(growth) and growth > 0 and isfinite(tool_share)):
        return None
    summary = min(share_of(context, compression.summary_context_share), compression.summary_max_tokens)
    room = growth * _TURNS * (_MIX - min(1.0, max(0.0, tool_share)))
    return round(min((head + summary + room) / (1.0 - compression.target_ratio), float(context)))
