"""Which cache a model gets by its name."""

import pytest

from lowwater.testing.provider.caches import caching_of


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-5-5", "anthropic"),
        ("openrouter/anthropic/claude-opus-5.5", "anthropic"),
        ("gpt-5.6-sol", "openai"),
        ("openai/gpt-6.1-sol", "openai"),
        ("gpt-5.5", "openai-5.5"),
        ("gpt-5", "openai-5.5"),
        ("gpt-4o-mini", "openai-5.5"),
        ("o3", "openai-5.5"),
        ("gemini-3.8-flash", "gemini"),
        ("deepseek-v4-pro", "deepseek"),
        ("kimi-k3", "kimi"),
        ("qwen3.8-max", "qwen"),
        ("grok-4.7", "grok"),
        ("glm-5.3", "automatic"),
        ("vllm/qwen3.8-max", "vllm"),
        ("sglang/anything", "sglang"),
    ],
)
def test_the_name_tells_the_cache(model: str, name: str) -> None:
    caching = caching_of(model)
    assert caching is not None
    assert caching.name == name


def test_a_name_that_tells_nothing_has_no_cache_of_its_own() -> None:
    assert caching_of("llama-large") is None
