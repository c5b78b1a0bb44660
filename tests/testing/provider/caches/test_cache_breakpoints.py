"""The cache of GPT-5.6 and later: four breakpoints a request, the latest 80 found."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.testing.provider.caches import BreakpointCache, Used
from lowwater.testing.provider.prompt import BREAKPOINT


@pytest.fixture
def cache(till: Callable[..., Any]) -> Any:
    return till(BreakpointCache())


def test_an_explicit_breakpoint_survives_a_change_behind_it(cache: Any) -> None:
    cache.bill(1_500, 33, marks={0: BREAKPOINT})
    assert cache.bill(1_500, 33, texts={1: "y"}) == Used(read=1_500, written=33)


def test_four_are_written_where_only_explicit_ones_count(cache: Any) -> None:
    four = dict.fromkeys(range(4), BREAKPOINT)
    assert cache.bill(2_000, 1, 1, 1, 1, marks=four, implicit=False) == Used(written=2_003, uncached=1)
    assert cache.bill(2_000, 9, texts={1: "y"}) == Used(read=2_000, written=9)


def test_nothing_is_cached_where_only_explicit_ones_count_and_there_are_none(cache: Any) -> None:
    cache.bill(2_000)
    assert cache.bill(2_000, implicit=False) == Used(uncached=2_000)


@pytest.mark.parametrize(("size", "written"), [(1_023, 0), (1_024, 1_024)])
def test_a_breakpoint_behind_fewer_than_1024_tokens_is_not_written(
    cache: Any, size: int, written: int
) -> None:
    assert cache.bill(size) == Used(written=written, uncached=size - written)
    assert cache.bill(size) == Used(read=written, uncached=size - written)


@pytest.mark.parametrize(("long", "lifetime"), [(False, 1_800), (True, 43_200)], ids=["30m", "12h"])
def test_a_breakpoint_dies_after_its_lifetime(cache: Any, long: bool, lifetime: float) -> None:
    first = cache.bill(2_000, long=long)
    assert (first.written, first.written_long) == ((0, 2_000) if long else (2_000, 0))
    cache.now = lifetime
    assert cache.bill(2_000).read == 2_000
    cache.now = 2 * lifetime + 1
    assert cache.bill(2_000).read == 0


@pytest.mark.parametrize(("others", "read"), [(78, 2_000), (79, 0)])
def test_only_the_latest_80_breakpoints_of_a_conversation_are_found(
    cache: Any, others: int, read: int
) -> None:
    cache.bill(2_000, conversation="mine")
    for size in range(1, others + 1):
        cache.bill(2_000 + size, texts={0: "y"}, conversation="mine")
    assert cache.bill(2_000, 3, conversation="mine").read == read


def test_other_conversations_do_not_crowd_breakpoints_out(cache: Any) -> None:
    cache.bill(2_000, conversation="mine")
    for size in range(1, 100):
        cache.bill(2_000 + size, texts={0: "y"}, conversation="other")
    assert cache.bill(2_000, 3, conversation="mine").read == 2_000
