"""What is known of a model: its window, its prices, how its provider caches prefixes, and how sure that is.

Prices are integers of nano-dollars per 1,000 tokens, which is the same number as micro-dollars per million: $4 per
million tokens is 4,000,000, and $0.0125 is 12,500. So a cost in nano-dollars is Σ tokens × price ÷ `TOKENS_PER_PRICE`,
divided once, after the sum.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

TOKENS_PER_PRICE = 1_000

_HOUR = 3_600
_DAY = 86_400

Count = Annotated[int, Meta(gt=0)]
Price = Annotated[int, Meta(ge=0)]


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one model charges, in nano-dollars per 1,000 tokens."""

    input: Count
    cache_read: Price
    cache_write: Price
    """Written at the default lifetime; equal to `input` where writes cost no premium."""
    output: Price
    cache_write_long: Price | None = None
    """Written at the long lifetime; None where that has no price of its own."""


class Cliff(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prompt of more than `above` tokens (of `above` or more, if `inclusive`) is billed at `prices`, all of it."""

    above: Count
    prices: Prices
    inclusive: bool = False

    @property
    def starts_at(self) -> int:
        """The smallest prompt that is billed at the higher prices."""
        return self.above if self.inclusive else self.above + 1


class Period(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other prices that hold from a moment on, or in some hours of the day; all times are UTC."""

    prices: Prices
    cliffs: tuple[Cliff, ...] = ()
    since: float = 0.0
    """Seconds since the epoch."""
    hours: tuple[tuple[int, int], ...] = ()
    """From one hour up to, not including, another; empty is all day."""
    weekdays: bool = False
    """Monday to Friday only."""

    def holds(self, at: float) -> bool:
        """Return whether these are the prices at the moment `at`."""
        day, second = divmod(int(at), _DAY)
        hour = second // _HOUR
        in_hours = not self.hours or any(start <= hour < end for start, end in self.hours)
        # The epoch began on a Thursday: counted from Monday, that is day 3.
        on_day = not self.weekdays or (day + 3) % 7 < 5
        return at >= self.since and in_hours and on_day


class Marks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="marks"):
    """A prefix is stored where the request has a mark, and found by a mark that looks back."""

    max_marks: Count
    lookback_blocks: Count | None = None
    """How many content blocks before a mark an older one is found; None is no limit."""
    lookback_marks: Count | None = None
    """How many of the newest stored marks are looked at; None is no limit."""
    unmarked: Literal["uncached", "beside", "instead"] = "uncached"
    """What happens without marks: nothing, one implicit mark beside the others, or caching by itself instead."""


class Steps(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="steps"):
    """The longest prefix is found by itself, rounded down to whole steps of `tokens`; None is undocumented."""

    tokens: Count | None = None


class Units(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="units"):
    """The provider stores units of its choosing (end of input, end of output, intervals); a whole one must match."""


class Uncached(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="uncached"):
    """No prefix is ever reused."""


Matching = Marks | Steps | Units | Uncached


class CacheRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider's cache finds a prefix and how long it keeps one; None is not published throughout."""

    matching: Matching
    ttl: Count | None = None
    """Seconds a prefix lives by default."""
    ttl_long: Count | None = None
    """Seconds it lives where the request asks for the long lifetime."""
    refreshed_by_hit: bool | None = None
    min_cacheable: Count | None = None
    """Tokens below which nothing is stored."""
    output_cached: bool | None = None
    """Whether what the model generated is already cached at the next call."""


class Model(Struct, frozen=True, kw_only=True):
    """One model's facts; what had to be assumed stands in `assumptions`, in sentences for a person."""

    name: str
    provider: str
    family: str
    """The family whose cache rules it has; empty for a model nothing is known of."""
    context_length: Count
    cache: CacheRules
    aliases: tuple[str, ...] = ()
    max_output: Count | None = None
    prices: Prices | None = None
    """None is unknown, never free: then there is no dollar figure."""
    cliffs: tuple[Cliff, ...] = ()
    """By size, smallest first."""
    periods: tuple[Period, ...] = ()
    """When other prices hold; of several that do, the last."""
    max_bytes: Count | None = None
    """The largest request that is taken, in bytes; None is not published."""
    binds_thinking: bool = False
    """Whether a thinking block is refused behind messages that changed."""
    compacts: bool = False
    """Whether its provider compacts a conversation on demand, into a signed block that it takes back."""
    notes: str = ""
    sources: tuple[str, ...] = ()
    as_of: str = ""
    """The day the facts held, as YYYY-MM-DD; empty where there are none."""
    assumptions: tuple[str, ...] = ()

    def prices_at(self, prompt: int, at: float | None = None) -> Prices | None:
        """Return the prices that a request with `prompt` input tokens is billed at, at the moment `at`.

        Without a moment they are those that no period changes.
        """
        prices, cliffs = self.prices, self.cliffs
        if at is not None:
            for period in self.periods:
                if period.holds(at):
                    prices, cliffs = period.prices, period.cliffs
        crossed = [cliff.prices for cliff in cliffs if prompt >= cliff.starts_at]
        return crossed[-1] if crossed else prices


class Family(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models that share cache rules; an unlisted member is told by the prefix of its name."""

    name: str
    provider: str
    prefixes: tuple[str, ...]
    cache: CacheRules
    max_bytes: Count | None = None
    binds_thinking: bool = False
    """What is assumed of an unlisted member."""
    notes: str = ""
    sources: tuple[str, ...]
    as_of: str


class Listing(Struct, frozen=True, kw_only=True):
    """What a price list says of a model that has no facts of our own."""

    provider: str
    name: str
    source: str
    context_length: int | None = None
    prices: Prices | None = None
    cliffs: tuple[Cliff, ...] = ()
    assumptions: tuple[str, ...] = ()


class FallbackChain(Struct, frozen=True, kw_only=True):
    """The models that may answer, in the order they are tried."""

    models: tuple[Model, ...]

    @property
    def primary(self) -> Model:
        """The model that answers unless it fails."""
        return self.models[0]

    @property
    def smallest_context(self) -> int:
        """The context length that every model of the chain has."""
        return min(model.context_length for model in self.models)
