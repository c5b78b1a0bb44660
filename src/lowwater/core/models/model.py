"""What is known about a model: its context window, its prices, how its provider caches prefixes, and what is assumed.

Prices are integers of nano-dollars per 1,000 tokens, which is the same number as micro-dollars per million: $4 per
million tokens is 4,000,000, and $0.0125 is 12,500. So a cost in nano-dollars is Σ tokens × price ÷ `TOKENS_PER_PRICE`,
with one division after the sum.
"""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

TOKENS_PER_PRICE = 1_000

_HOUR = 3_600
_DAY = 86_400

TokenLimit = Annotated[int, Meta(gt=0)]
Price = Annotated[int, Meta(ge=0)]


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one model charges, in nano-dollars per 1,000 tokens."""

    input: TokenLimit
    cache_read: Price
    cache_write: Price
    """For the default lifetime; equal to `input` if writes cost no premium."""
    output: Price
    cache_write_long: Price | None = None
    """For the long lifetime; None if it has no price of its own."""


class Cliff(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of a prompt of more than `above` tokens (`above` or more, if `inclusive`) is billed at `prices`."""

    above: TokenLimit
    prices: Prices
    inclusive: bool = False

    @property
    def starts_at(self) -> int:
        """The smallest prompt that is billed at the higher prices."""
        return self.above if self.inclusive else self.above + 1


class Period(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other prices that apply from some time on, or in some hours of the day; all times are UTC."""

    prices: Prices
    cliffs: tuple[Cliff, ...] = ()
    since: float = 0.0
    """Seconds since the epoch."""
    hours: tuple[tuple[int, int], ...] = ()
    """From one hour up to, but not including, another; empty: all day."""
    weekdays: bool = False
    """Monday to Friday only."""

    def holds(self, at: float) -> bool:
        """Return whether these prices apply at the time `at`."""
        day, second = divmod(int(at), _DAY)
        hour = second // _HOUR
        in_hours = not self.hours or any(start <= hour < end for start, end in self.hours)
        # The epoch began on a Thursday, which is day 3 counted from Monday.
        on_day = not self.weekdays or (day + 3) % 7 < 5
        return at >= self.since and in_hours and on_day


class MarkedPrefixes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="marks"):
    """A prefix is stored where the request has a mark, and found by looking back from a mark."""

    max_marks: TokenLimit
    lookback_blocks: TokenLimit | None = None
    """How many content blocks before a mark a stored prefix is found; None: no limit."""
    lookback_marks: TokenLimit | None = None
    """How many of the newest stored marks are searched; None: no limit."""
    unmarked: Literal["uncached", "beside", "instead"] = "uncached"
    """What the provider does by itself: nothing, add one mark to those of the request, or cache a request without marks."""


class SteppedPrefixes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="steps"):
    """The provider finds the longest prefix by itself, in whole steps of `tokens`; None: undocumented."""

    tokens: TokenLimit | None = None


class Units(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="units"):
    """The provider stores units of its choice (up to the end of an input, an output or an interval); one must match as a whole."""


class Uncached(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="uncached"):
    """No prefix is ever reused."""


Matching = MarkedPrefixes | SteppedPrefixes | Units | Uncached


class CacheRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider's cache finds a prefix and how long it keeps it; None always means not published."""

    matching: Matching
    ttl: TokenLimit | None = None
    """Seconds a prefix lives by default."""
    ttl_long: TokenLimit | None = None
    """Seconds it lives if the request asks for the long lifetime."""
    refreshed_by_hit: bool | None = None
    min_cacheable: TokenLimit | None = None
    """The smallest prefix, in tokens, that is stored."""
    output_cached: bool | None = None
    """Whether the model's output is already cached at the next call."""


class Model(Struct, frozen=True, kw_only=True):
    """The facts about one model; `assumptions` says, in sentences, what had to be assumed."""

    name: str
    provider: str
    family: str
    """The family whose cache rules it has; empty for an unknown model."""
    context_length: TokenLimit
    cache: CacheRules
    aliases: tuple[str, ...] = ()
    max_output: TokenLimit | None = None
    prices: Prices | None = None
    """None: unknown (never free), so that no costs in dollars are given."""
    cliffs: tuple[Cliff, ...] = ()
    """By size, smallest first."""
    periods: tuple[Period, ...] = ()
    """When other prices apply; of several, the last one does."""
    max_bytes: TokenLimit | None = None
    """The largest request that is accepted, in bytes; None: not published."""
    binds_thinking: bool = False
    """Whether a thinking block is rejected after messages that have changed."""
    compacts: bool = False
    """Whether its provider can compact a conversation into a signed block, which is then sent back to it."""
    notes: str = ""
    sources: tuple[str, ...] = ()
    as_of: str = ""
    """The day on which the facts were checked, as YYYY-MM-DD; empty if there are none."""
    assumptions: tuple[str, ...] = ()

    def prices_at(self, prompt: int, at: float | None = None) -> Prices | None:
        """Return the prices at which a request with `prompt` input tokens is billed at the time `at`.

        Without a time, periods are ignored.
        """
        prices, cliffs = self.prices, self.cliffs
        if at is not None:
            for period in self.periods:
                if period.holds(at):
                    prices, cliffs = period.prices, period.cliffs
        crossed = [cliff.prices for cliff in cliffs if prompt >= cliff.starts_at]
        return crossed[-1] if crossed else prices


class ModelFamily(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models that share cache rules; an unlisted model belongs to it if its name has one of the prefixes."""

    name: str
    provider: str
    prefixes: tuple[str, ...]
    cache: CacheRules
    max_bytes: TokenLimit | None = None
    binds_thinking: bool = False
    """Assumed of an unlisted member."""
    notes: str = ""
    sources: tuple[str, ...]
    as_of: str


class Listing(Struct, frozen=True, kw_only=True):
    """What a price list says about a model that is not in the registry."""

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
        """The smallest context length in the chain, which every model has at least."""
        return min(model.context_length for model in self.models)


# Routers, and how they handle cache marks in chat requests


class Router(Struct, frozen=True, kw_only=True):
    """What one router, or one provider with a chat format, does with cache marks."""

    name: str
    on_tools: bool
    """Whether marks on the text of tool messages work. If not, they are ignored or the whole request is rejected."""
    most: int = 4
    says: str
    """What it does with marks, in a sentence."""
    sources: tuple[str, ...]
    """Where this is documented; checked on 2026-11-16."""


OPENROUTER = Router(
    name="openrouter",
    on_tools=True,
    says="moves the mark of a tool message's part to the tool result; `cache_control` on a tool message itself hangs without an error",
    sources=(
        "https://openrouter.ai/docs/guides/best-practices/prompt-caching",
        "https://github.com/NousResearch/hermes-agent/pull/2391",
        "https://github.com/NousResearch/hermes-agent/pull/57893",
    ),
)
LITELLM = Router(
    name="litellm",
    on_tools=False,
    says="copies the parts of a tool message as they are; Anthropic then refuses the request: "
    "`cache_control may not be specified within tool_result.content`",
    sources=(
        "https://docs.litellm.ai/docs/tutorials/prompt_caching",
        "https://github.com/NousResearch/hermes-agent/pull/89931",
    ),
)
ALIBABA = Router(
    name="alibaba",
    on_tools=True,
    says="reads marks on parts of any message's content, and none on messages; its own client marks tool messages so",
    sources=(
        "https://www.alibabacloud.com/help/en/model-studio/context-cache",
        "https://github.com/QwenLM/qwen-code/blob/main/packages/core/src/core/openaiContentGenerator/provider/dashscope.ts",
    ),
)
UNKNOWN = Router(
    name="unknown",
    on_tools=False,
    says="nothing is known of tool messages, so that only texts of the system, the user and the assistant are marked",
    sources=("https://platform.claude.com/docs/en/build-with-claude/prompt-caching",),
)
ROUTERS = (OPENROUTER, LITELLM, ALIBABA, UNKNOWN)

_PREFIXES = {"openrouter": OPENROUTER, "litellm": LITELLM, "litellm_proxy": LITELLM}
_HOSTS = (("openrouter.ai", OPENROUTER), ("aliyuncs.com", ALIBABA))


def router_of(model: str, base_url: str = "") -> Router | None:
    """Return the router that the URL of the API or the model's name identifies; None if neither does."""
    host = (urlsplit(base_url).hostname or "") if base_url else ""
    for known, router in _HOSTS:
        if host == known or host.endswith(f".{known}"):
            return router
    first, _, rest = model.lower().replace(":", "/", 1).partition("/")
    return _PREFIXES.get(first) if rest else None
