"""How much of a changed layout is read, against a search through everything; and how fast."""

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.adapters.models import load_registry
from lowwater.core.cache.belief import (
    Belief,
    Boundary,
    Layout,
    MarkLifetime,
    Warmth,
    after_call,
    expected_usage,
    warmth,
)
from lowwater.core.models.model import CacheRules, MarkedPrefixes, SteppedPrefixes, Units
from tests.core.cache.layouts import layout_of

CLAUDE = load_registry().find("claude-opus-5-5")
GEMINI = load_registry().find("gemini-4-argon")


@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=60),
    held=st.sets(st.integers(0, 59)),
    marks=st.sets(st.integers(0, 59), min_size=1, max_size=4),
    lookback=st.integers(1, 8),
    least=st.sampled_from([0, 0, 500]),
    upto=st.integers(0, 6_000) | st.none(),
)
def test_a_boundary_is_found_exactly_where_a_mark_looks(
    sizes: list[int], held: set[int], marks: set[int], lookback: int, least: int, upto: int | None
):
    held, marks = {at % len(sizes) for at in held}, {at % len(sizes) for at in marks}
    layout = layout_of(sizes, marks=dict.fromkeys(marks, "short"))
    rules = CacheRules(
        matching=MarkedPrefixes(max_marks=4, lookback_blocks=lookback), ttl=300, min_cacheable=least or None
    )
    belief = Belief(
        boundaries=tuple(Boundary(key=layout.blocks[at].key, tokens=layout.ends[at], used=0.0) for at in held)
    )
    unchanged = [at for at in range(len(sizes)) if upto is None or layout.ends[at] <= upto]
    looking = [at for at in layout.marked if at in unchanged and layout.ends[at] >= least]
    if upto is not None and unchanged:
        looking.append(unchanged[-1])
    reached = [
        layout.ends[at]
        for at in held
        if at in unchanged and any(0 <= mark - at <= lookback for mark in looking)
    ]
    best = max(reached, default=0)
    assert warmth(belief, layout, rules, 1).hit(upto) == (best if best >= least else 0)


def test_a_changed_layout_is_taken_to_have_a_mark_where_it_stays_unchanged():
    layout = layout_of([600] * 60, marks={59: "short"})
    key = layout.blocks[20].key
    belief = Belief(boundaries=(Boundary(key=key, tokens=12_600, used=0.0),))
    warm = warmth(belief, layout, CLAUDE.cache, 1)
    assert [warm.hit(upto) for upto in (None, 12_599, 12_600, 24_600, 25_200)] == [0, 0, 12_600, 12_600, 0]


@given(
    depth=st.integers(0, 20_000),
    upto=st.integers(0, 30_000),
    step=st.sampled_from([1, 16, 128, 256]),
    least=st.sampled_from([0, 1_024]),
)
def test_steps_are_whole_and_never_beyond_what_is_shared(depth: int, upto: int, step: int, least: int):
    warm = Warmth(positions=(depth,), blocks=(0,), ends=(depth, 30_000), step=step, least=least)
    hit = warm.hit(upto)
    assert hit % step == 0
    assert hit <= min(depth, upto)
    assert hit > min(depth, upto) - step or hit == 0
    assert hit == 0 or hit >= least


def test_nothing_is_read_of_an_empty_layout():
    empty = Layout(blocks=())
    assert warmth(Belief(), empty, CLAUDE.cache, 0).hit() == 0
    assert expected_usage(Belief(), empty, CLAUDE, 0).prompt == 0


@pytest.mark.parametrize(
    ("rules", "gap", "chance"),
    [
        (CacheRules(matching=SteppedPrefixes()), 0, 1.0),
        (CacheRules(matching=SteppedPrefixes()), 3_600, 0.5),
        (CacheRules(matching=SteppedPrefixes()), 7_200, 0.25),
        (CacheRules(matching=Units()), 86_400, 0.5),
        (CacheRules(matching=SteppedPrefixes(), ttl=60), 60, 1.0),
    ],
    ids=["at once", "an hour", "two hours", "units: a day", "published"],
)
def test_without_a_published_lifetime_warmth_is_a_chance(rules: CacheRules, gap: float, chance: float):
    layout = layout_of([5_000])
    belief = Belief(boundaries=(Boundary(key=layout.blocks[0].key, tokens=5_000, used=100.0),))
    warm = warmth(belief, layout, rules, 100.0 + gap)
    assert warm.chance == pytest.approx(chance)
    assert warm.hit() == 5_000
    assert warm.expected() == round(5_000 * chance)


def test_what_is_almost_surely_gone_is_gone():
    belief = after_call(Belief(), layout_of([5_000]), GEMINI, 0).belief
    assert warmth(belief, layout_of([5_000]), GEMINI.cache, 86_400).hit() == 0


def test_expected_usage_of_a_thousand_blocks_takes_less_than_a_millisecond():
    sizes = [200] * 1_000
    marks: dict[int, MarkLifetime] = dict.fromkeys((0, 990, 995, 999), "short")
    belief = after_call(Belief(), layout_of(sizes, marks=marks), CLAUDE, 0).belief
    taken = []
    for _ in range(20):
        layout = layout_of(sizes, marks=marks)
        start = perf_counter()
        assert expected_usage(belief, layout, CLAUDE, 1).cache_read == 200_000
        taken.append(perf_counter() - start)
    assert min(taken) < 0.001


def test_a_block_is_told_from_another_by_everything_before_it():
    one, other = layout_of([1, 1], names=["a", "c"]), layout_of([1, 1], names=["b", "c"])
    assert one.blocks[1].key != other.blocks[1].key
    assert layout_of([1, 1], names=["a", "c"], marks={0: "long"}).blocks[1].key == one.blocks[1].key
