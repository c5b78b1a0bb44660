"""A model is found by any spelling of its name, and never taken for another one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lowwater.adapters.models import load_registry
from lowwater.core.models.model import (
    CacheRules,
    Cliff,
    Listing,
    MarkedPrefixes,
    Model,
    ModelFamily,
    Prices,
    SteppedPrefixes,
)
from lowwater.core.models.names import ModelSpelling, is_suffix, read_name
from lowwater.core.models.registry import CONTEXT_OF_UNKNOWN, Registry

REGISTRY = load_registry()

SPELLINGS = {
    # as the makers write them
    "claude-opus-5-5": "claude-opus-5-5",
    "claude-opus-5": "claude-opus-5",
    "claude-fable-5-1": "claude-fable-5-1",
    "claude-fable-5": "claude-fable-5",
    "claude-haiku-4-5-20251001": "claude-haiku-4-5",
    "claude-sonnet-4-5-20250929": "claude-sonnet-4-5",
    "claude-opus-4-6-latest": "claude-opus-4-6",
    "gpt-4o": "gpt-4o",
    "gpt-4o-mini": "gpt-4o-mini",
    "gpt-4o-2024-08-06": "gpt-4o",
    "gpt-4o-2024-05-13": "gpt-4o-2024-05-13",
    "gpt-4o-mini-2024-07-18": "gpt-4o-mini",
    "gpt-5": "gpt-5",
    "gpt-5-2025-08-07": "gpt-5",
    "gpt-5-mini-2025-08-07": "gpt-5-mini",
    "gpt-5.4-mini": "gpt-5.4-mini",
    "gpt-5.4": "gpt-5.4",
    "gpt-5.3-codex": "gpt-5.2-codex",
    "gpt-6.1-sol-2026-10-01": "gpt-6.1-sol",
    "gpt-6-sol": "gpt-6-sol",
    "gpt-4.1-2025-04-14": "gpt-4.1",
    "gemini-2.5-flash-preview-09-2025": "gemini-2.5-flash",
    "gemini-2.5-pro-preview-05-06": "gemini-2.5-pro",
    "gemini-3.1-pro-preview": "gemini-3.1-pro-preview",
    "gemini-3.5-flash-lite": "gemini-3.5-flash-lite",
    "models/gemini-3.8-flash": "gemini-3.8-flash",
    "deepseek-v4-flash": "deepseek-flash",
    "deepseek-v3-0324": "deepseek-chat",
    "mistral-small-2603": "mistral-small-2603",
    "MiniMax-M3": "minimax-m3",
    "GLM-5.3": "glm-5.3",
    "kimi-k2.5-thinking": "kimi-k2.5",
    # other spellings of the version
    "claude-opus-4.5": "claude-opus-4-5",
    "claude-opus-5.5": "claude-opus-5-5",
    "gpt-5-4-mini": "gpt-5.4-mini",
    "Claude Opus 4.5": "claude-opus-4-5",
    "claude-4.5-sonnet": "claude-sonnet-4-5",
    "  CLAUDE-SONNET-5-5\n": "claude-sonnet-5-5",
    # through clients, routers and clouds
    "anthropic/claude-opus-4.5": "claude-opus-4-5",
    "anthropic:claude-opus-4-5": "claude-opus-4-5",
    "openai/gpt-6.1-sol": "gpt-6.1-sol",
    "openai:gpt-5-high": "gpt-5",
    "google-gla:gemini-2.5-pro": "gemini-2.5-pro",
    "gemini/gemini-2.5-pro": "gemini-2.5-pro",
    "litellm_proxy/claude-sonnet-5": "claude-sonnet-5",
    "openrouter/anthropic/claude-opus-4.5": "claude-opus-4-5",
    "openrouter/anthropic/claude-4.5-sonnet-20250929": "claude-sonnet-4-5",
    "openrouter/deepseek/deepseek-chat:free": "deepseek-chat",
    "anthropic/claude-sonnet-4.5:thinking": "claude-sonnet-4-5",
    "x-ai/grok-4.7": "grok-4.7",
    "moonshotai/kimi-k3": "kimi-k3",
    "azure/gpt-4o": "gpt-4o",
    "vertex_ai/claude-opus-4-5@20251101": "claude-opus-4-5",
    "projects/p/locations/l/publishers/anthropic/models/claude-opus-4-5@20251101": "claude-opus-4-5",
    "claude-sonnet-4-6@default": "claude-sonnet-4-6",
    "github_copilot/claude-sonnet-4.5": "claude-sonnet-4-5",
    "databricks-claude-opus-4-5": "claude-opus-4-5",
    "claude-opus-5-5[1m]": "claude-opus-5-5",
    "claude-opus-4-6-20260115[1m]": "claude-opus-4-6",
    "global.anthropic.claude-opus-5-5-v1:0": "bedrock/claude-opus-5-5",
    "anthropic.claude-opus-5-5": "bedrock/claude-opus-5-5",
    "bedrock/anthropic.claude-haiku-5-5-v1:0": "bedrock/claude-haiku-5-5",
    "bedrock/converse/global.anthropic.claude-sonnet-5-5": "bedrock/claude-sonnet-5-5",
    "us.anthropic.claude-opus-5-5-20260901-v1:0": "claude-opus-5-5",
    "eu.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5",
    "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-5-5": "bedrock/claude-opus-5-5",
    "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1": "claude-opus-4-6",
    "amazon.nova-2-lite-v1:0": "bedrock/nova-2-lite",
}


@pytest.mark.parametrize(("spelling", "name"), SPELLINGS.items(), ids=[*SPELLINGS])
def test_every_spelling_finds_its_model(spelling: str, name: str) -> None:
    match = REGISTRY.match(spelling)
    assert (match.model.name, match.how in ("listed", "resold")) == (name, True)


NOT_LISTED = {
    "claude-opus-6": "claude",
    "claude-opus-5-6": "claude",
    "claude-opus-5-5-fast": "claude",
    "claude-opus-4-1-20250805": "claude-4",
    "claude-3-5-sonnet-20241022": "claude-4",
    "gpt-4": "gpt-5.5",
    "gpt-4o-audio-preview": "gpt-5.5",
    "gpt-5-nano": "gpt-5.5",
    "gpt-5.1": "gpt-5.5",
    "gpt-5.5-pro": "gpt-5.5",
    "gpt-5.6-cyber": "gpt",
    "gpt-7": "gpt",
    "gpt-6.1-solar": "gpt",
    "gpt-4-1106-preview": "gpt-5.5",
    "gpt-oss-120b": "gpt-oss",
    "o3-mini": "gpt-5.5",
    "ft:gpt-4o-mini-2024-07-18:acme::abc": "gpt-5.5",
    "gemini-3.8-flash-lite": "gemini",
    "qwen3-max": "qwen",
    "qwen/qwen4-max": "qwen",
    "bedrock/us.meta.llama4-maverick-v1:0": "bedrock",
    "us.anthropic.claude-opus-7": "bedrock-claude",
    "hosted_vllm/meta-llama/Llama-4": "vllm",
    "sglang/deepseek-v4-pro": "sglang",
    "o10": "",
    "gptx": "",
    "claudette": "",
    "fireworks_ai/accounts/fireworks/models/deepseek-v4-pro": "",
    "deepseek-ai/DeepSeek-V4-Pro": "",
    "": "",
}


@pytest.mark.parametrize(("name", "family"), NOT_LISTED.items(), ids=[name or "empty" for name in NOT_LISTED])
def test_a_name_that_goes_on_is_another_model_of_the_family(name: str, family: str) -> None:
    own = Registry(REGISTRY.models, REGISTRY.families)
    match = own.match(name)
    assert (match.how, match.model.family) == ("family" if family else "unknown", family)
    assert match.model.prices is None
    assert match.model.assumptions[-1].startswith("no price known")


def test_an_unknown_model_works_with_its_assumptions_stated() -> None:
    model = Registry(REGISTRY.models, REGISTRY.families).find("acme/brand-new")
    assert model.context_length == CONTEXT_OF_UNKNOWN
    assert model.assumptions == (
        "context length 128,000 assumed",
        "prompt cache assumed to be automatic, its lifetime unknown",
        "no price known: no dollar figure",
    )


def test_an_unknown_member_takes_its_family_s_cache_rules_and_never_its_prices() -> None:
    model = Registry(REGISTRY.models, REGISTRY.families).find("claude-opus-6")
    assert model.prices is None
    assert model.cache.matching == MarkedPrefixes(max_marks=4, lookback_blocks=20)
    assert (model.cache.ttl, model.cache.ttl_long, model.binds_thinking) == (300, 3600, True)
    assert "cache rules assumed as in the claude family" in model.assumptions


def test_a_listed_model_has_no_assumptions() -> None:
    assert all(REGISTRY.find(model.name) == model and not model.assumptions for model in REGISTRY.models)


def test_every_alias_finds_its_model() -> None:
    assert all(REGISTRY.find(alias) == model for model in REGISTRY.models for alias in model.aliases)


def test_thinking_is_bound_in_the_models_that_bind_it() -> None:
    binding = {
        model.name for model in REGISTRY.models if model.binds_thinking and model.provider == "anthropic"
    }
    assert binding == {"claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"}


@given(
    st.text() | st.lists(st.sampled_from([*SPELLINGS, "/", ":", "-", "[", "us.", "20260115"])).map("".join)
)
@example("arn:")
@example("/")
@example("a" * 100_000)
@example("gpt-5" + "-2025-08-07" * 10_000)
@example("\ud800")
def test_any_string_finds_a_model(name: str) -> None:
    match = REGISTRY.match(name)
    assert match.spelling.asked == name
    assert match.model.context_length > 0
    assert match.model.prices is not None or match.model.assumptions


@given(st.sampled_from(REGISTRY.models), st.from_regex(r"-[a-z]{3,8}", fullmatch=True))
def test_a_strange_word_behind_a_name_never_gets_that_model_s_price(model: Model, word: str) -> None:
    own = Registry(REGISTRY.models, REGISTRY.families)
    longer = model.name + word
    listed = {name for each in REGISTRY.models for name in (each.name, *each.aliases)}
    assert own.find(longer).prices is None or is_suffix(word) or longer in listed


PLAIN = Prices(input=1, cache_read=1, cache_write=1, output=1)
DEAR = Prices(input=2, cache_read=2, cache_write=2, output=2)


def model(name: str, *, context_length: int = 1_000, cliffs: tuple[Cliff, ...] = ()) -> Model:
    return Model(
        name=name,
        provider="acme",
        family="m",
        context_length=context_length,
        cache=CacheRules(matching=SteppedPrefixes()),
        prices=PLAIN,
        cliffs=cliffs,
    )


@pytest.mark.parametrize(
    ("inclusive", "prompt", "prices"),
    [(False, 100, PLAIN), (False, 101, DEAR), (True, 99, PLAIN), (True, 100, DEAR), (True, 0, PLAIN)],
    ids=["at", "above", "below", "at, inclusive", "nothing"],
)
def test_a_cliff_prices_the_whole_request(inclusive: bool, prompt: int, prices: Prices) -> None:
    steep = model("m-1", cliffs=(Cliff(above=100, inclusive=inclusive, prices=DEAR),))
    assert steep.prices_at(prompt) == prices


def test_the_highest_cliff_crossed_counts() -> None:
    dearest = Prices(input=3, cache_read=3, cache_write=3, output=3)
    steep = model("m-1", cliffs=(Cliff(above=100, prices=DEAR), Cliff(above=200, prices=dearest)))
    assert [steep.prices_at(prompt) for prompt in (100, 200, 201)] == [PLAIN, DEAR, dearest]


def test_a_chain_has_the_smallest_context_of_its_models() -> None:
    registry = Registry([model("m-1", context_length=500), model("m-2", context_length=200)])
    chain = registry.chain("m-1", ["m-2", "unheard-of"])
    assert (chain.primary.name, chain.smallest_context) == ("m-1", 200)
    assert [each.name for each in chain.models] == ["m-1", "m-2", "unheard-of"]
    assert registry.chain("m-1").smallest_context == 500


def test_a_host_s_own_prices_replace_the_maker_s() -> None:
    def prices(spelling: ModelSpelling, family: ModelFamily | None) -> Listing | None:
        assert family is None
        return Listing(provider=spelling.host, name=spelling.name, source="a list", prices=DEAR)

    match = Registry([model("m-1")], price_list=prices).match("azure/m-1")
    assert (match.how, match.model.provider, match.model.prices) == ("resold", "azure", DEAR)
    assert match.model.assumptions == ("prices through azure from a list; all else assumed as with acme",)


def test_a_host_without_listed_prices_is_assumed_to_charge_the_maker_s() -> None:
    found = Registry([model("m-1")]).find("azure/m-1")
    assert found.prices == PLAIN
    assert found.assumptions == ("prices and cache rules assumed as with acme: azure may differ",)


def test_a_host_of_its_own_prices_is_not_taken_for_the_maker() -> None:
    assert Registry([model("m-1")]).match("together_ai/m-1").how == "unknown"


@pytest.mark.parametrize(
    ("asked", "host", "path", "name"),
    [
        ("openrouter/z-ai/GLM-5.3", "openrouter", ("z-ai", "glm-5.3"), "glm-5-3"),
        ("jp.anthropic.claude-x-v2:0", "bedrock-regional", ("jp.anthropic.claude-x-v2:0",), "claude-x-v2:0"),
        ("openai:gpt-5.1", "", ("openai", "gpt-5.1"), "gpt-5-1"),
        ("llama3:8b", "", ("llama3:8b",), "llama3:8b"),
    ],
    ids=["router", "region", "framework", "tag"],
)
def test_a_name_is_taken_apart(asked: str, host: str, path: tuple[str, ...], name: str) -> None:
    assert read_name(asked) == ModelSpelling(asked=asked, host=host, path=path, name=name)
