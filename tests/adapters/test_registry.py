"""The data file says what the facts say, agrees with genai-prices, and is read strictly."""

import json
from datetime import date
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from lowwater.adapters.models import RegistryRow, listing_of, load_registry, read_models
from lowwater.core.models.model import CacheRules, MarkedPrefixes, Prices, SteppedPrefixes, Units
from lowwater.errors import UnreadableFile

DATA = files("lowwater").joinpath("data", "models.json").read_bytes()
FILE = read_models(DATA)
REGISTRY = load_registry()
SHARED = Path(__file__).parents[3] / "shared" / "models.json"
FACTS: list[dict[str, Any]] = json.loads(SHARED.read_bytes())["models"] if SHARED.exists() else []

# The patterns of the shared facts that are not simply a name.
NAMES = {
    "^claude-fable-5(-\\d{8})?$": "claude-fable-5",
    "^claude-opus-5(-\\d{8})?$": "claude-opus-5",
    "^claude-sonnet-5(-\\d{8})?$": "claude-sonnet-5",
    "^deepseek-(v4-)?flash": "deepseek-flash",
    "^deepseek-(v3|chat)": "deepseek-v3",
    "^gpt-5\\.[23]-codex": "gpt-5.3-codex",
    "vllm/*": "vllm/any",
    "sglang/*": "sglang/any",
}


def name_of(pattern: str) -> str:
    if pattern in NAMES:
        return NAMES[pattern]
    plain = (
        pattern.removeprefix("^").replace("(global\\.)?", "global.").replace("[-.]", "-").replace("\\.", ".")
    )
    return plain.partition("(")[0].removesuffix("$")


def unit(dollars: float | None) -> int | None:
    return None if dollars is None else int(Decimal(str(dollars)) * 1_000_000)


def expected_prices(facts: dict[str, Any], *, long: str = "") -> Prices:
    """Our prices of a fact row: writes without a price bill as input, a 12h write is 2.5 times input."""
    fresh = unit(facts["input"])
    assert fresh is not None
    write = unit(facts.get("cache_write_default", facts.get("cache_write")))
    write_long = fresh * 5 // 2 if "2.5x" in long else unit(facts.get("cache_write_1h"))
    read, output = unit(facts["cached_read"]), unit(facts["output"])
    assert read is not None
    assert output is not None
    return Prices(
        input=fresh,
        cache_read=read,
        cache_write=fresh if write is None else write,
        cache_write_long=write_long,
        output=output,
    )


@pytest.mark.skipif(not FACTS, reason="the shared facts are not here")
@pytest.mark.parametrize("facts", FACTS, ids=[facts["model_pattern"] for facts in FACTS])
def test_every_fact_is_reproduced(facts: dict[str, Any]) -> None:
    model = REGISTRY.find(name_of(facts["model_pattern"]))
    cache, long = facts["caching"], " ".join(facts["caching"]["ttl_options"])
    assert model.provider == facts["provider"]
    assert model.max_output == facts["max_output"]
    assert model.cache.min_cacheable == facts["min_cacheable_tokens"]
    assert [model.cache.ttl, model.cache.ttl_long] == [*cache["ttl_seconds"], None][:2]
    assert model.cache.refreshed_by_hit == cache["refresh_on_hit"]
    assert model.cache.output_cached == cache["output_tokens_cached"]
    assert (
        model.cache.matching.max_marks if isinstance(model.cache.matching, MarkedPrefixes) else 0
    ) == cache["max_breakpoints"]
    if facts["provider"] == "self-hosted":
        assert model.prices is None
        assert model.assumptions
        return
    assert model.assumptions == ()
    assert model.context_length == facts["context_window"]
    assert model.prices == expected_prices(facts["usd_per_mtok"], long=long)
    assert [(cliff.above, cliff.inclusive, cliff.prices) for cliff in model.cliffs] == [
        (above["threshold_tokens"], above.get("inclusive", False), expected_prices(above, long=long))
        for above in [facts["long_context"]]
        if above
    ]
    assert set(facts["source"]) <= set(model.sources)
    assert model.as_of == facts["as_of"]


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        (
            "claude-opus-5-5",
            CacheRules(
                matching=MarkedPrefixes(max_marks=4, lookback_blocks=20),
                ttl=300,
                ttl_long=3600,
                refreshed_by_hit=True,
                min_cacheable=512,
                output_cached=False,
            ),
        ),
        (
            "gpt-6.1-sol",
            CacheRules(
                matching=MarkedPrefixes(max_marks=4, lookback_marks=80, unmarked="beside"),
                ttl=1800,
                ttl_long=43200,
                min_cacheable=1024,
                output_cached=False,
            ),
        ),
        ("deepseek-v4-pro", CacheRules(matching=Units(), output_cached=True)),
        ("kimi-k3", CacheRules(matching=SteppedPrefixes(tokens=256), ttl=300, ttl_long=3600)),
        (
            "vllm/any",
            CacheRules(
                matching=SteppedPrefixes(tokens=16),
                refreshed_by_hit=True,
                min_cacheable=16,
                output_cached=True,
            ),
        ),
    ],
    ids=["anthropic", "openai", "deepseek", "moonshot", "vllm"],
)
def test_cache_rules_are_those_of_the_provider(name: str, rules: CacheRules) -> None:
    assert REGISTRY.find(name).cache == rules


# Where genai-prices is known to say something else, and why ours stands.
DISAGREEMENTS = {
    "deepseek-chat": "genai-prices has the first V3 prices of 2025; the alias has moved on since",
    "claude-sonnet-4-5": "genai-prices prices the 1M beta above 200K; the listed window ends there",
}
PRICED = [row for row in FILE.models if row.price_list]


@pytest.mark.parametrize("row", PRICED, ids=[row.name for row in PRICED])
def test_prices_agree_with_genai_prices(row: RegistryRow) -> None:
    listing = listing_of(row.price_list, row.as_of)
    assert listing is not None
    assert listing.prices is not None
    ours = (_comparable(row.prices), [(cliff.starts_at, _comparable(cliff.prices)) for cliff in row.cliffs])
    theirs = (_comparable(listing.prices), [(c.starts_at, _comparable(c.prices)) for c in listing.cliffs])
    assert (ours == theirs) is (row.name not in DISAGREEMENTS)


def _comparable(prices: Prices) -> tuple[int, ...]:
    """The prices both sides list: genai-prices has no 12h write of OpenAI."""
    return (prices.input, prices.cache_read, prices.cache_write, prices.output)


def test_only_models_that_genai_prices_does_not_list_have_no_reference() -> None:
    assert {row.family for row in FILE.models if not row.price_list} == {"qwen"}


def test_long_writes_agree_where_both_list_them() -> None:
    both = [(row.prices, listing_of(row.price_list, row.as_of)) for row in PRICED]
    long = [
        (ours.cache_write_long, theirs.prices.cache_write_long)
        for ours, theirs in both
        if theirs and theirs.prices and theirs.prices.cache_write_long
    ]
    assert len(long) > 10
    assert all(ours == theirs for ours, theirs in long)


def test_a_dated_price_holds_from_its_day() -> None:
    before, after = load_registry(as_of=date(2026, 11, 30)), load_registry(as_of=date(2026, 12, 1))
    assert before.find("gemini-4-argon") == REGISTRY.find("gemini-4-argon")
    dearer = after.find("gemini-4-argon")
    assert dearer.prices == Prices(
        input=4_000_000, cache_read=200_000, cache_write=4_000_000, output=20_000_000
    )
    assert dearer.sources[-1].startswith("prices of 2026-12-01: genai-prices")


def test_an_older_day_has_the_older_price() -> None:
    then = load_registry(as_of=date(2026, 8, 1)).find("gpt-5.6-sol").prices
    now = REGISTRY.find("gpt-5.6-sol").prices
    assert then is not None
    assert now is not None
    assert then.input > now.input


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("gpt-99", "openai"),
        ("whisper-1", "openai"),
        ("qwen3.8-max", "alibaba"),
        ("", ""),
        ("no-such", "no-such"),
    ],
    ids=["unknown", "not by token", "unlisted provider", "empty", "no provider"],
)
def test_no_price_is_none_and_never_zero(name: str, provider: str) -> None:
    listing = listing_of(f"{provider}/{name}", date(2026, 11, 15))
    assert listing is None or listing.prices is None


@pytest.mark.parametrize(
    ("name", "context_length", "dollars_in"),
    [
        ("gpt-5-nano", 400_000, 0.05),
        ("claude-opus-4-1@20250805", 200_000, 15),
        ("claude-3-haiku-20240307", 200_000, 0.25),
    ],
    ids=["gpt", "claude", "old claude"],
)
def test_what_only_genai_prices_lists_is_found_and_said(
    name: str, context_length: int, dollars_in: float
) -> None:
    match = REGISTRY.match(name)
    assert match.how == "priced"
    assert match.model.context_length == context_length
    assert match.model.prices is not None
    assert match.model.prices.input == unit(dollars_in)
    assert match.model.assumptions[0].startswith("taken from genai-prices")
    assert match.model.assumptions[-1].startswith("cache rules assumed as in the")


def test_a_regional_endpoint_has_its_own_price() -> None:
    regional, own = REGISTRY.find("us.anthropic.claude-opus-5-5"), REGISTRY.find("claude-opus-5-5")
    assert regional.prices is not None
    assert own.prices is not None
    assert regional.prices.input * 10 == own.prices.input * 11
    assert regional.cache == own.cache


def test_every_row_says_where_from_and_when() -> None:
    for sources, as_of in [(row.sources, str(row.as_of)) for row in FILE.models] + [
        (family.sources, family.as_of) for family in FILE.families
    ]:
        assert sources
        assert as_of == str(FILE.as_of) == "2026-11-15"


def test_read_prices_of_a_cached_prefix_are_below_input() -> None:
    for row in FILE.models:
        for prices in (row.prices, *(cliff.prices for cliff in row.cliffs)):
            assert prices.cache_read < prices.input or row.name == "gpt-4o-2024-05-13"
            assert (
                prices.cache_write_long is None
                or prices.cache_write_long >= prices.cache_write >= prices.input
            )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"max_output"', b'"max_ouput"', "unknown field `max_ouput`"),
        (b'"context_length": 1000000', b'"context_length": "1M"', "context_length"),
        (b'"context_length": 1000000', b'"context_length": 0', "context_length"),
        (b'"family": "gpt-5.5"', b'"family": "gpt-4"', "no family 'gpt-4'"),
        (b'"name": "gpt-4o-mini"', b'"name": "gpt-4o"', "lists 'gpt-4o' twice"),
        (
            b'"aliases": ["claude-4.8-opus"]',
            b'"aliases": ["claude-opus-4.7"]',
            "lists 'claude-opus-4-7' twice",
        ),
        (b'"as_of": "2026-11-15"', b'"as_of": "2026-13-15"', "as_of"),
        (b'"sources": ["genai', b'"source": ["genai', "source"),
    ],
    ids=["field", "text", "zero", "family", "name", "alias", "date", "sources"],
)
def test_a_mistake_in_the_data_is_refused_and_named(old: bytes, new: bytes, says: str) -> None:
    assert old in DATA
    with pytest.raises(UnreadableFile) as error:
        read_models(DATA.replace(old, new, 1))
    assert says in str(error.value)


def test_data_that_is_cut_short_is_refused() -> None:
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_models(DATA[:-100])
