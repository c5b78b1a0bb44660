"""The limits of a context window, derived from the model and the settings, and warnings that a prompt approaches one.

Limits say where to compact, what to protect and how far to get.
"""

from math import ceil, floor
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lowwater.settings import CompressionSettings, WarningLevels

_FLOOR = 64_000
"""The smallest threshold in tokens, whatever share of the context length is set."""
_HYGIENE = 0.85
"""The gateway's safety net, as a share of the context length."""
_BELOW_HYGIENE = 0.95
"""The largest threshold, as a share of the safety net's."""
_RUNWAY = 0.15
"""The runway below the threshold, as a share of it."""
_RUNWAY_TURNS = 20
"""For policies that compare prices: turns that should pass between two compactions that a size forces."""
_LEAST_PRUNE = 5_000
"""The smallest prune in tokens that counts."""
_DEFAULT_RESERVE = 16_000
"""Tokens reserved for the answer if the request does not limit it."""
_MOST_UNSURE = 10
"""At most 1/10 of what may be sent is kept free for what an estimate may miss."""
_LEAST_UNDER_CEILING = 200
_SUMMARY_UNDER_CEILING = 8
"""Under a ceiling, a summary takes at most 1/8 of it, but may always have 200 tokens."""
_PROTECTED_TOOL_OUTPUT = ((500_000, 100_000), (128_000, 40_000), (64_000, 20_000), (0, 10_000))
"""From each context length on, how many tokens of tool output a prune leaves alone."""
_NOISE_DIGITS = 6
"""Digits to round to, so that 0.57 × 100,000 is 57,000 despite binary floating point."""

TURNS_BETWEEN = 5
"""Turns that should pass between two compactions that the wall or a ceiling forces."""
Level = Literal["info", "notice", "warning", "critical"]
LEVELS: tuple[Level, ...] = ("info", "notice", "warning", "critical")


class Limits(Struct, frozen=True, kw_only=True):
    """Where compaction starts, what it protects and how far it must get, in the model's tokens."""

    context: int
    wall: int
    """The most that fits: the context length less what is reserved for the answer."""
    hygiene: int
    """The size at which the gateway's safety net compacts."""
    threshold: int
    """The size at which a session compacts; below `hygiene`, except for policies that compare prices (`priced`)."""
    tail: int
    """How much the protected tail may hold."""
    protected_tool_output: int
    """How much of the newest tool output outside the tail a prune leaves alone."""
    minimum_prune: int
    """The smallest prune that counts."""
    runway: int
    target: int
    """The low-water mark: a prune is accepted alone only if the view ends at or below it."""
    summary: int
    """The longest summary."""
    max_bytes: int | None = None
    """The largest request the provider accepts, in bytes; None if unknown."""
    cliff: int | None = None
    """The smallest prompt that is billed at higher prices, all of it; None if there is none."""
    ceiling: int | None = None
    """The largest prompt that the user allows (`max_view_tokens`); None: no limit."""
    growth: int = 0
    """Tokens that a turn adds, as measured; turns that add more than a fifth of `most` do not count."""
    unsure: int = 0
    """Tokens by which the next prompt may exceed its estimate."""

    @property
    def most(self) -> int:
        """The largest estimated prompt that may be sent: below wall and ceiling even if it is larger by `unsure`."""
        known = self.wall - 1 if self.ceiling is None else min(self.wall - 1, self.ceiling)
        return known - min(self.unsure, known // _MOST_UNSURE)

    @property
    def roomy(self) -> int:
        """The size from which several turns of growth still fit below `most`; at least a fifth of `most`."""
        return max(self.most // TURNS_BETWEEN, self.most - TURNS_BETWEEN * self.growth)

    def priced(self, ceiling: int | None, *, growth: float) -> "Limits":
        """Return the limits for a policy that compares prices: sizes matter only where they force a compaction (docs/specification.md: A).

        The threshold is the nearest such size: wall, cliff or ceiling. The runway below it is meant to last for
        `_RUNWAY_TURNS` turns of `growth`. The tail has no budget, and a prune of any size counts.
        """
        threshold = min(point for point in (self.wall, self.cliff, ceiling) if point is not None)
        wanted = max(self.minimum_prune, share_of(threshold, _RUNWAY), round(_RUNWAY_TURNS * growth))
        runway = min(wanted, threshold // 2)
        return replace(
            self,
            threshold=threshold,
            hygiene=max(threshold, self.hygiene),
            tail=0,
            minimum_prune=1,
            protected_tool_output=0,
            runway=runway,
            target=threshold - runway,
        )


def derive_limits(
    context: int,
    compression: CompressionSettings,
    *,
    max_output: int | None = None,
    max_tokens: int | None = None,
    auto_threshold: int | None = None,
    floor: bool = True,
    budget: int = 0,
) -> Limits:
    """Return the limits of a window of `context` tokens.

    `max_tokens` is the longest answer the request asks for, `max_output` the longest the model can give. `auto_threshold`
    is the measured value for `threshold: auto`, once there is one. Without `floor` the threshold may be below 64,000
    (hermes-classic). A `budget` below the wall replaces both window and wall, so everything else is derived from it. A ceiling
    (`max_view_tokens`) below the threshold replaces the threshold, and what depends on it shrinks too.
    """
    asked = max_tokens if max_tokens is not None and max_tokens > 0 else None
    reserve = asked or min(max_output or _DEFAULT_RESERVE, _DEFAULT_RESERVE)
    wall = context - min(reserve, context // 4)
    if 0 < budget < wall:
        # Nothing is reserved for the answer: it has room in the model's own window, above the budget.
        context = wall = budget
    hygiene = min(share_of(context, _HYGIENE), wall)
    percent = compression.threshold if isinstance(compression.threshold, float | int) else 0.5
    wanted = share_of(context, percent) if auto_threshold is None else auto_threshold
    threshold = min(max(wanted, _FLOOR if floor else 0), share_of(hygiene, _BELOW_HYGIENE))
    minimum = max(_LEAST_PRUNE, context // 20)
    ceiling = compression.max_view_tokens
    if ceiling is not None and ceiling < threshold:
        threshold, minimum = ceiling, min(minimum, max(_LEAST_PRUNE, ceiling // 10))
    runway = max(minimum, share_of(threshold, _RUNWAY))
    summary = min(share_of(context, compression.summary_context_share), compression.summary_max_tokens)
    if ceiling is not None:
        summary = min(summary, max(_LEAST_UNDER_CEILING, ceiling // _SUMMARY_UNDER_CEILING))
    protected = next(tokens for least, tokens in _PROTECTED_TOOL_OUTPUT if context >= least)
    return Limits(
        context=context,
        wall=wall,
        hygiene=hygiene,
        threshold=threshold,
        tail=share_of(threshold, compression.target_ratio),
        protected_tool_output=protected,
        minimum_prune=minimum,
        runway=runway,
        target=max(0, threshold - runway),
        summary=summary,
        ceiling=ceiling,
    )


def share_of(whole: int, *shares: float) -> int:
    """Return the product of `whole` and `shares`, rounded down to whole tokens."""
    return floor(round(_product(whole, shares), _NOISE_DIGITS))


def least_reaching(whole: int, *shares: float) -> int:
    """Return the smallest count of tokens that is at least the product of `whole` and `shares`."""
    return ceil(round(_product(whole, shares), _NOISE_DIGITS))


def _product(whole: int, shares: tuple[float, ...]) -> float:
    product: float = whole
    for share in shares:
        product *= share
    return product


# Warnings on the way to a limit


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
