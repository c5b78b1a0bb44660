"""Caches that find the longest prefix in whole steps."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.testing.provider.caches import CACHINGS, Used


@pytest.fixture
def cache_of(till: Callable[..., Any]) -> Callable[..., Any]:
    return lambda name, model="m": till(CACHINGS[name].new(model))


@pytest.mark.parametrize(
    ("name", "weight", "read"),
    [
        ("openai-5.5", 1_023, 0),
        ("openai-5.5", 1_024, 1_024),
        ("openai-5.5", 1_151, 1_024),
        ("openai-5.5", 1_152, 1_152),
        ("grok", 127, 0),
        ("grok", 300, 256),
        ("kimi", 255, 0),
        ("kimi", 1_000, 768),
        ("gemini", 4_095, 0),
        ("gemini", 4_097, 4_097),
        ("automatic", 5, 5),
    ],
)
def test_a_common_prefix_is_read_in_whole_steps(
    cache_of: Callable[..., Any], name: str, weight: int, read: int
) -> None:
    cache = cache_of(name)
    cache.bill(weight, 5_000)
    assert cache.bill(weight, 5_000, texts={1: "y"}).read == read


def test_a_common_prefix_ends_at_the_first_difference(cache_of: Callable[..., Any]) -> None:
    cache = cache_of("openai-5.5")
    assert cache.bill(2_048, 128, 1_000) == Used(uncached=3_176)
    assert cache.bill(2_048, 128, 1_000, texts={1: "y"}) == Used(read=2_048, uncached=1_128)


def test_answers_are_not_cached(cache_of: Callable[..., Any]) -> None:
    cache = cache_of("openai-5.5")
    cache.bill(2_048, answer=(1_024,))
    assert cache.bill(2_048, 1_024).read == 2_048


@pytest.mark.parametrize(
    ("name", "long", "lifetime"),
    [
        ("openai-5.5", False, 300),
        ("openai-5.5", True, 86_400),
        ("kimi", False, 300),
        ("kimi", True, 3_600),
        ("gemini", False, 86_400),
    ],
)
def test_a_prefix_dies_after_its_lifetime_unless_used(
    cache_of: Callable[..., Any], name: str, long: bool, lifetime: float
) -> None:
    cache = cache_of(name)
    cache.bill(5_120, long=long)
    for _ in range(2):
        cache.now += lifetime
        assert cache.bill(5_120, long=long).read == 5_120
    cache.now += lifetime + 1
    assert cache.bill(5_120, long=long).read == 0


def test_kimi_tells_the_whole_chunks_it_writes(cache_of: Callable[..., Any]) -> None:
    kimi = cache_of("kimi")
    assert kimi.bill(1_000) == Used(written=768, uncached=232)
    assert kimi.bill(1_000, 300) == Used(read=768, written=512, uncached=20)
    assert kimi.bill(300, texts={0: "y"}, long=True) == Used(written_long=256, uncached=44)


def test_the_least_of_gemini_depends_on_the_model(cache_of: Callable[..., Any]) -> None:
    cache = cache_of("gemini", "gemini-2.5-pro")
    cache.bill(2_048)
    assert cache.bill(2_048).read == 2_048
