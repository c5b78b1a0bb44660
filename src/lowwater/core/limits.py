"""The sizes by which a window is managed, derived from the model and the settings."""

from math import ceil, floor

from msgspec import Struct
from msgspec.structs import replace

from lowwater.settings import CompressionSettings

_NOISE_DIGITS = 6
"""0.57 × 100,000 is 57,000 and 0.8 × 0.75 × 200,000 is 120,000, whatever binary makes of them."""


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


_FLOOR = 64_000
_HYGIENE = 0.85
_BELOW_HYGIENE = 0.95
_RUNWAY = 0.15
_RUNWAY_TURNS = 20
"""Turns that should pass before a compaction that was forced by a size is followed by the next."""
_LEAST_PRUNE = 5_000
_DEFAULT_RESERVE = 16_000
TURNS_BETWEEN = 5
"""Where the wall or a ceiling forces a compaction, so many turns should pass before the next."""
_MOST_UNSURE = 10
"""At most one part in so many of what may be sent is left free for what an estimate may miss."""
_LEAST_UNDER_CEILING = 200
_SUMMARY_UNDER_CEILING = 8
"""A summary takes at most one part in so many of a ceiling, and may always have a few tokens."""
_PROTECTED_TOOL_OUTPUT = ((500_000, 100_000), (128_000, 40_000), (64_000, 20_000), (0, 10_000))


class Limits(Struct, frozen=True, kw_only=True):
    """All in tokens of the model: where compaction starts, what it protects, how far it must get."""

    context: int
    wall: int
    """What fits: the context length less the room reserved for the answer."""
    hygiene: int
    """Where the gateway's safety net fires."""
    threshold: int
    """Where compaction in the loop fires; always below hygiene."""
    tail: int
    """The tail's budget."""
    protected_tool_output: int
    """Newest tool output outside the tail that a prune leaves alone."""
    minimum_prune: int
    """A prune that reclaims less does not count."""
    runway: int
    target: int
    """The low-water mark: a prune is accepted alone only if the view ends at or below it."""
    summary: int
    """The longest summary."""
    max_bytes: int | None = None
    """The largest request that the provider takes, in bytes; None if that is not known."""
    cliff: int | None = None
    """The smallest prompt that is billed at higher prices as a whole; None if there is none."""
    ceiling: int | None = None
    """The largest prompt that the user wants to be sent (`max_view_tokens`); None if there is no such limit."""
    growth: int = 0
    """Tokens that a turn adds, measured; turns that add more than a fifth of `most` do not count."""

    unsure: int = 0
    """Tokens by which the next prompt may be larger than its estimate."""

    @property
    def most(self) -> int:
        """The largest prompt that may be sent: below the wall, and no larger than the ceiling, whatever its estimate may miss."""
        known = self.wall - 1 if self.ceiling is None else min(self.wall - 1, self.ceiling)
        return known - min(self.unsure, known // _MOST_UNSURE)

    @property
    def roomy(self) -> int:
        """The size below which several turns of growth fit before `most` is reached; at least a fifth of that."""
        return max(self.most // TURNS_BETWEEN, self.most - TURNS_BETWEEN * self.growth)

    def priced(self, ceiling: int | None, *, growth: float) -> "Limits":
        """Return the limits for a policy that compares prices, so that sizes matter only where one is forced (docs/specification.md: A).

        The threshold is the nearest such point: wall, cliff or ceiling. The runway below it lasts for some turns of
        `growth`. The tail is no share of anything, and any prune counts that pays.
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
) -> Limits:
    """Return the limits of a window of `context` tokens.

    `max_tokens` is what the request asks for, `max_output` what the model can give. `auto_threshold` stands in for
    `threshold: auto` once it was measured. `floor` off lets the threshold fall below 64,000 (hermes-classic). A
    ceiling (`max_view_tokens`) below the threshold takes its place, and what is sized by it shrinks with it.
    """
    asked = max_tokens if max_tokens is not None and max_tokens > 0 else None
    reserve = asked or min(max_output or _DEFAULT_RESERVE, _DEFAULT_RESERVE)
    wall = context - min(reserve, context // 4)
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
