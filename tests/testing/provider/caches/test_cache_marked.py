"""Anthropic's cache: written at marks, read at a mark or up to twenty blocks before one."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.testing.provider.caches import CACHINGS, MarkedCache, Used, least_of_claude


@pytest.fixture
def marked(till: Callable[..., Any]) -> Any:
    return till(MarkedCache())


def test_nothing_is_cached_without_marks(marked: Any) -> None:
    for _ in range(2):
        assert marked.bill(100, 50) == Used(uncached=150)


def test_what_lies_between_an_old_mark_and_a_new_one_is_written(marked: Any) -> None:
    marked.bill(100, 50, marks={1: "5m"})
    assert marked.bill(100, 50, 20, 5, marks={2: "5m"}) == Used(read=150, written=20, uncached=5)


def test_each_mark_writes_at_its_own_lifetime(marked: Any) -> None:
    used = marked.bill(100, 50, 20, 5, marks={0: "1h", 2: "5m"})
    assert used == Used(written_long=100, written=70, uncached=5)


def test_a_change_before_a_mark_loses_what_lies_behind_it(marked: Any) -> None:
    marks = {0: "5m", 2: "5m"}
    marked.bill(100, 50, 20, marks=marks)
    assert marked.bill(100, 50, 20, marks=marks, texts={1: "y"}) == Used(read=100, written=70)


@pytest.mark.parametrize(("behind", "read"), [(20, 10), (21, 0)])
def test_a_mark_finds_what_was_written_up_to_twenty_blocks_before(
    marked: Any, behind: int, read: int
) -> None:
    marked.bill(10, marks={0: "5m"})
    assert marked.bill(10, *[1] * behind, marks={behind: "5m"}) == Used(read=read, written=10 + behind - read)


@pytest.mark.parametrize(("gap", "read"), [(300, 150), (301, 0)])
def test_a_prefix_dies_five_minutes_after_its_last_use(marked: Any, gap: float, read: int) -> None:
    marked.bill(150, 7, marks={0: "5m"})
    marked.now = gap
    assert marked.bill(150, 7, marks={0: "5m"}) == Used(read=read, written=150 - read, uncached=7)


def test_a_read_keeps_the_shorter_prefixes_alive_too(marked: Any) -> None:
    marked.bill(100, marks={0: "5m"})
    marked.now = 200
    marked.bill(100, 50, marks={1: "5m"})
    marked.now = 400
    marked.bill(100, 50, 20, marks={2: "5m"})
    marked.now = 650
    assert marked.bill(100, 9, marks={1: "5m"}, texts={1: "y"}).read == 100


def test_reading_a_short_lived_prefix_by_a_long_mark_does_not_prolong_its_lifetime(marked: Any) -> None:
    marked.bill(100, marks={0: "5m"})
    assert marked.bill(100, marks={0: "1h"}) == Used(read=100)
    marked.now = 301
    assert marked.bill(100, marks={0: "1h"}) == Used(written_long=100)


def test_a_prefix_below_the_least_is_not_written(till: Callable[..., Any]) -> None:
    cache = till(MarkedCache(least=1_024))
    for _ in range(2):
        assert cache.bill(1_023, marks={0: "5m"}) == Used(uncached=1_023)
    assert cache.bill(1_023, 1, marks={0: "1h", 1: "5m"}) == Used(written=1_024)


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-opus-5-5", 512),
        ("anthropic/claude-opus-5", 512),
        ("claude-opus-5-20261001", 512),
        ("claude-sonnet-5", 1_024),
        ("claude-sonnet-4-5-20250929", 1_024),
        ("claude-opus-4.7", 2_048),
        ("claude-haiku-4-5", 4_096),
        ("global.anthropic.claude-haiku-5-5", 512),
    ],
)
def test_models_differ_in_the_least_they_cache(model: str, least: int) -> None:
    assert least_of_claude(model) == least


def test_changed_settings_leave_no_message_cached(marked: Any) -> None:
    marked.bill(100, marks={0: "5m"}, settings={"thinking": 1})
    assert marked.bill(100, marks={0: "5m"}, settings={"thinking": 2}).read == 0


def test_qwen_caches_by_marks_or_by_itself(till: Callable[..., Any]) -> None:
    qwen = till(CACHINGS["qwen"].new("qwen3.8-max"))
    assert qwen.bill(2_000, marks={0: "5m"}) == Used(written=2_000)
    assert qwen.bill(2_000) == Used(uncached=2_000)
    assert qwen.bill(2_000, 5) == Used(read=2_000, uncached=5)
    qwen.now = 301
    assert qwen.bill(2_000, marks={0: "5m"}).read == 0
    assert qwen.bill(2_000).read == 2_000
