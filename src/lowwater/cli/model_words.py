"""Facts about models in words and short numbers, for tables and sentences."""

from decimal import Decimal

from lowwater.core.models.model import CacheRules, Cliff, Marks, Prices, Steps, Uncached, Units
from lowwater.core.models.registry import Match

_UNIT = 1_000_000  # nano-dollars per 1,000 tokens in a dollar per million
_UNITS_OF_TIME = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def dollars(price: int | None) -> str:
    """Return a price in dollars per million tokens, exactly; a dash for none."""
    return "–" if price is None else format((Decimal(price) / _UNIT).normalize(), "f")


def ratio(price: int, prices: Prices) -> str:
    """Return a price as a multiple of the input price."""
    return f"{price / prices.input:.4g}"


def short(tokens: int | None) -> str:
    """Return a number of tokens in at most five characters; a dash for none."""
    if tokens is None:
        return "–"
    if tokens >= 999_500:
        return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
    return f"{tokens / 1_000:.0f}K" if tokens >= 1_000 else str(tokens)


def duration(seconds: int) -> str:
    """Return a lifetime as people write it: 5m, 1h, 24h."""
    if seconds == 86_400:
        return "24h"
    return next(f"{seconds // size}{unit}" for size, unit in _UNITS_OF_TIME if seconds % size == 0)


def lifetime(cache: CacheRules) -> str:
    """Return how long a cached prefix lives."""
    if cache.ttl is None:
        return "lifetime not published"
    return f"kept {duration(cache.ttl)}" + (f" or {duration(cache.ttl_long)}" if cache.ttl_long else "")


def matching(cache: CacheRules) -> str:
    """Return in a few words how a prefix is found."""
    match cache.matching:
        case Marks(max_marks=most, lookback_blocks=blocks, lookback_marks=marks, unmarked=unmarked):
            back = f", each looks back {blocks} blocks" if blocks else ""
            newest = f", the newest {marks} are looked at" if marks else ""
            by_itself = {
                "uncached": "",
                "beside": ", one of them implicit",
                "instead": "; automatic without marks",
            }
            return f"up to {most} marks{back}{newest}{by_itself[unmarked]}"
        case Steps(tokens=None):
            return "automatic, longest prefix"
        case Steps(tokens=1):
            return "automatic, longest prefix to the token"
        case Steps(tokens=tokens):
            return f"automatic, longest prefix in steps of {tokens} tokens"
        case Units():
            return "automatic, whole stored units"
        case Uncached():
            return "no prompt cache"


def cache_sentence(cache: CacheRules) -> str:
    """Return the cache rules as sentences."""
    said = [f"{matching(cache)}; {lifetime(cache)}"]
    if cache.refreshed_by_hit:
        said[0] += ", a hit renews it"
    if cache.min_cacheable:
        said.append(f"a prefix below {cache.min_cacheable:,} tokens is not cached")
    if cache.output_cached is not None:
        said.append(
            "answers are cached as they are generated"
            if cache.output_cached
            else "answers are written at the next call"
        )
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in said)


def cliff_sentence(cliff: Cliff) -> str:
    """Return a cliff as a sentence."""
    where = f"From {cliff.above:,} tokens on" if cliff.inclusive else f"Above {cliff.above:,} tokens"
    return f"{where} the whole request is billed at {price_list(cliff.prices)}."


def price_list(prices: Prices) -> str:
    """Return the prices, named, in dollars per million tokens."""
    long = f", long write {dollars(prices.cache_write_long)}" if prices.cache_write_long is not None else ""
    return (
        f"input {dollars(prices.input)}, cache read {dollars(prices.cache_read)},"
        f" cache write {dollars(prices.cache_write)}{long}, output {dollars(prices.output)}"
    )


def ratio_list(prices: Prices) -> str:
    """Return the prices as multiples of input, with the letters the economics use."""
    long = f", {ratio(prices.cache_write_long, prices)} long" if prices.cache_write_long is not None else ""
    return (
        f"r {ratio(prices.cache_read, prices)} (read), w {ratio(prices.cache_write, prices)}{long} (write),"
        f" ρ {ratio(prices.output, prices)} (output)"
    )


def how_matched(match: Match) -> str:
    """Return how a name became a model, as a sentence."""
    dropped = f"; {match.suffix!r} does not change the model" if match.suffix else ""
    match match.how:
        case "listed":
            return f"Listed as {match.model.name}{dropped}."
        case "resold":
            return f"Listed as {match.model.name}, here through {match.model.provider}{dropped}."
        case "priced":
            return "Not listed by Lowwater, but by genai-prices."
        case "family":
            return f"Not listed; by its name one of the {match.model.family} family."
        case "unknown":
            return "Unknown: Lowwater works with the assumptions below."
