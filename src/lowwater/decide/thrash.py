"""No compaction right after one that could not get below its trigger: what is irreducible stays so for a while."""

from lowwater.decide.offers import expected_after
from lowwater.decide.pause import Pause
from lowwater.decide.reasons import because
from lowwater.values.decision import Compact, Keep
from lowwater.values.situation import Situation

RETRY = Pause(first=600.0, longest=3_600.0)


def irreducible(now: Situation, wanted: Compact) -> Keep | None:
    """Wait until the prompt has grown by a runway, there is enough that is new to remove, or time has passed.

    None of the three can be put off by what happens in between, so a compaction that is due comes in the end.
    """
    past, limits = now.past, now.limits
    if past.fruitless <= 0:
        return None
    retry_at = past.floor + limits.runway
    fresh = _fresh_tokens(now, wanted)
    since = now.at if past.fruitless_at is None else past.fruitless_at
    left = RETRY.seconds_left(past.fruitless, since=since, at=now.at)
    needed = limits.minimum_prune if limits.minimum_prune > 1 else limits.runway
    if now.prompt >= retry_at or fresh >= needed or not left:
        return None
    return Keep(
        because=because(
            "irreducible",
            prompt=now.prompt,
            tries=past.fruitless,
            floor=past.floor,
            retry_at=retry_at,
            fresh=fresh,
            needed=needed,
            seconds=left,
        )
    )


def _fresh_tokens(now: Situation, wanted: Compact) -> int:
    """Return how much more is to be removed than the last fruitless compaction was to remove and did not."""
    offered = now.prompt - expected_after(now, wanted.proposals)
    return max(0, offered - now.past.undelivered)
