"""Which of a provider's cache lifetimes pays for which pauses between calls."""

from msgspec import Struct

from lowwater.economics.bill import nano_dollars
from lowwater.economics.lifetimes import Gaps, saved_by_long
from lowwater.values.model import CacheRules, Prices


class Lifetimes(Struct, frozen=True, kw_only=True):
    """The lifetimes on sale in seconds, and what the long one changes after a pause, in nano-dollars.

    Nothing is known of the money where the long one has no price of its own.
    """

    short: int | None = None
    """None is not published."""
    long: int | None = None
    """None is not on sale."""
    within_costs: int | None = None
    """What the long one costs more if the next call comes within the short one."""
    between_saves: int | None = None
    """What it saves if the call comes after the short one is over and before the long one is."""
    beyond_costs: int | None = None
    """What it costs more if the call comes after both."""
    least_share: float | None = None
    """The share of calls that must come between the two for the long one to pay; None if no share is enough."""


def lifetimes_of(prices: Prices, rules: CacheRules, *, prompt: int, growth: int) -> Lifetimes:
    """Return what the long lifetime is worth to a session with prompts of this size that grow so much a call."""
    sold = Lifetimes(short=rules.ttl, long=rules.ttl_long)
    if rules.ttl is None or rules.ttl_long is None or prices.cache_write_long is None:
        return sold

    def saved(gaps: Gaps) -> int:
        return saved_by_long(gaps, prices, prompt=prompt, growth=growth)

    within, between, beyond = -saved(Gaps(within=1)), saved(Gaps(between=1)), -saved(Gaps(beyond=1))
    return Lifetimes(
        short=rules.ttl,
        long=rules.ttl_long,
        within_costs=nano_dollars(within),
        between_saves=nano_dollars(between),
        beyond_costs=nano_dollars(beyond),
        least_share=within / (within + between) if between > 0 else None,
    )
