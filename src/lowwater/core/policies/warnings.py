"""Warnings that a prompt approaches the size at which it is compacted."""

from typing import Literal

from msgspec import Struct

from lowwater.core.limits import least_reaching
from lowwater.settings import WarningLevels

Level = Literal["info", "notice", "warning", "critical"]
LEVELS: tuple[Level, ...] = ("info", "notice", "warning", "critical")


class UsageWarning(Struct, frozen=True, kw_only=True):
    """A prompt has reached some share of the size from which on it is compacted."""

    level: Level
    percent: int
    tokens: int
    threshold: int
    """The size from which on the policy in use compacts."""
    called: str = "threshold"
    """What that size is called: the threshold, the hygiene limit, the wall."""

    @property
    def sentence(self) -> str:
        """The warning in words."""
        return f"The prompt has {self.tokens:,} of {self.threshold:,} tokens, {self.percent} % of the {self.called}."


class Warned(Struct, frozen=True, kw_only=True):
    """The warnings that are due, mildest first, and the levels that have warned and do not warn again yet."""

    warnings: tuple[UsageWarning, ...]
    warned: frozenset[str]


def warn(
    levels: WarningLevels, warned: frozenset[str], tokens: int, threshold: int, *, called: str = "threshold"
) -> Warned:
    """Return the warnings that are due; a level warns again only after usage has fallen below it."""
    if threshold <= 0:
        return Warned(warnings=(), warned=frozenset())
    reached = tuple(level for level in LEVELS if _is_reached(levels, level, tokens, threshold))
    percent = tokens * 100 // threshold
    due = (level for level in reached if level not in warned)
    return Warned(
        warnings=tuple(
            UsageWarning(level=level, percent=percent, tokens=tokens, threshold=threshold, called=called)
            for level in due
        ),
        warned=frozenset(reached),
    )


def level_of(levels: WarningLevels, tokens: int, threshold: int) -> Level | None:
    """Return the most urgent level that a prompt of this size has reached; None if it is below all."""
    reached = warn(levels, frozenset(), tokens, threshold).warnings
    return reached[-1].level if reached else None


def _is_reached(levels: WarningLevels, level: Level, tokens: int, threshold: int) -> bool:
    share: float | None = getattr(levels, level)
    return share is not None and tokens >= least_reaching(threshold, share)
