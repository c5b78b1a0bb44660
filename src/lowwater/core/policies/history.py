"""What a session remembers of its compactions (`Past`), updated after a compaction, a failure, a turn, a switch of model."""

from msgspec.structs import replace

from lowwater.core.decisions import Compact, DecisionContext, Past
from lowwater.core.policies.at_threshold import expected_after


def after_compaction(now: DecisionContext, decision: Compact, *, prompt: int | None) -> Past:
    """Return the past after a compaction that left `prompt` tokens, None if it was given up and changed nothing.

    One that ended at or above `decision.below` counts as fruitless.
    """
    past = now.past
    left = now.prompt if prompt is None else prompt
    if prompt is not None:
        past = replace(past, compactions=past.compactions + 1, turns_since=0)
    if prompt is not None and (prompt < decision.below or not decision.below):
        return _without_fruitless(past)
    return replace(
        past,
        fruitless=past.fruitless + 1,
        floor=left,
        fruitless_at=now.at,
        undelivered=max(0, left - expected_after(now, decision.proposals)),
    )


def after_failure(past: Past, *, at: float) -> Past:
    """Return the past after the summarizer failed."""
    return replace(past, failures=past.failures + 1, failed_at=at)


def after_summary(past: Past) -> Past:
    """Return the past after the summarizer succeeded: the cool-down is over."""
    return replace(past, failures=0, failed_at=None)


def after_turn(past: Past) -> Past:
    """Return the past at the beginning of another turn."""
    return replace(past, turns_since=past.turns_since + 1)


def after_switch(past: Past) -> Past:
    """Return the past after a switch of model: fruitless compactions for one model say nothing about another."""
    return _without_fruitless(past)


def _without_fruitless(past: Past) -> Past:
    return replace(past, fruitless=0, floor=0, fruitless_at=None, undelivered=0)
