"""Caches that keep what the model wrote: DeepSeek's units, vLLM's blocks, SGLang's radix tree."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.testing.provider.caches import CACHINGS, BlockCache, UnitCache, Used


@pytest.fixture
def units(till: Callable[..., Any]) -> Any:
    return till(UnitCache(interval=1_000))


def test_a_unit_ends_where_the_answer_ended(units: Any) -> None:
    units.bill(300, 50, answer=(40,))
    assert units.bill(300, 50, 40, 20) == Used(read=390, uncached=20)


def test_an_answer_that_comes_back_changed_is_not_found(units: Any) -> None:
    units.bill(300, 50, answer=(40,))
    assert units.bill(300, 50, 40, 20, texts={2: "y"}) == Used(read=350, uncached=60)


def test_where_two_prompts_parted_the_third_finds_a_unit(units: Any) -> None:
    units.bill(300, 50)
    units.bill(300, 50, texts={1: "y"})
    assert units.bill(300, 50, texts={1: "z"}) == Used(read=300, uncached=50)


def test_long_answers_leave_units_at_intervals(units: Any) -> None:
    units.bill(900, answer=(300, 10))
    assert units.bill(900, 300, 10, texts={2: "y"}) == Used(read=1_000, uncached=210)


def test_a_unit_lives_a_day_after_its_last_use(units: Any) -> None:
    units.bill(300)
    for _ in range(2):
        units.now += 86_400
        assert units.bill(300).read == 300
    units.now += 86_401
    assert units.bill(300).read == 0


@pytest.mark.parametrize(("block", "read"), [(16, 48), (1, 50)], ids=["vllm", "sglang"])
def test_full_blocks_in_common_are_read(till: Callable[..., Any], block: int, read: int) -> None:
    cache = till(BlockCache(block=block))
    assert cache.bill(50, 30) == Used(uncached=80)
    assert cache.bill(50, 30, texts={1: "y"}) == Used(read=read, uncached=80 - read)


@pytest.mark.parametrize(("name", "read"), [("vllm", 112), ("sglang", 120)])
def test_blocks_of_an_answer_are_read(till: Callable[..., Any], name: str, read: int) -> None:
    cache = till(CACHINGS[name].new("m"))
    cache.bill(50, 30, answer=(40,))
    cache.now = 1e9
    assert cache.bill(50, 30, 40, 9) == Used(read=read, uncached=129 - read)


@pytest.mark.parametrize(("name", "read"), [("vllm", 64), ("sglang", 79)])
def test_the_last_token_is_computed_anew(till: Callable[..., Any], name: str, read: int) -> None:
    cache = till(CACHINGS[name].new("m"))
    cache.bill(80)
    assert cache.bill(80) == Used(read=read, uncached=80 - read)
