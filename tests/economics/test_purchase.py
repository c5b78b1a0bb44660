"""The price of a compaction, by hand and against the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.economics.after_call import after_call
from lowwater.economics.belief import Belief, warmth
from lowwater.economics.purchase import Cut, Purchase, price_cuts, price_of
from lowwater.economics.warmth import Warmth
from lowwater.load.registry import load_registry
from lowwater.values.model import CacheRules, Model, Prices, Uncached
from tests.economics.layouts import layout_of

REGISTRY = load_registry()
CLAUDE = REGISTRY.find("claude-opus-5-5")
OPUS = Prices(
    input=4_000_000, cache_read=200_000, cache_write=5_000_000, cache_write_long=8_000_000, output=20_000_000
)


def test_a_warm_compaction_by_hand():
    # 160,000 tokens, all read: 160,000 x 200 = 32,000,000.
    # After: 43,000, of which 20,000 are read: 20,000 x 200 + 23,000 x 5,000 = 119,000,000, and the summary.
    bought = price_of(
        OPUS, OPUS, prompt=160_000, hit=160_000, hit_after=20_000, removes=117_000, summary_cost=7
    )
    assert bought == Purchase(cost_now=119_000_007, cost_kept=32_000_000, summary_cost=7)
    assert bought.price == 87_000_007


def test_on_a_cold_call_a_prune_pays_at_once():
    bought = price_of(OPUS, OPUS, prompt=100_000, hit=0, hit_after=0, removes=40_000)
    # It saves the write of 40,000 tokens at 5,000.
    assert bought.price == -200_000_000


@pytest.mark.parametrize(
    ("lifetime", "price"),
    [("short", 5_000), ("long", 8_000), ("", 4_000)],
    ids=["short writes", "long writes", "caching off"],
)
def test_what_is_rewritten_is_paid_at_the_lifetime_asked_for(lifetime, price: int):
    bought = price_of(OPUS, OPUS, prompt=1_000, hit=1_000, hit_after=0, removes=500, lifetime=lifetime)
    assert bought.cost_now == 500 * price


def test_staying_below_a_cliff_is_part_of_the_price():
    model = REGISTRY.find("gpt-6.1-sol")
    warm = Warmth(positions=(280_000,), blocks=(0,), ends=(280_000,))
    prices = price_cuts([Cut(first_changed=0, removes=10_000)], warm, model, prompt=280_000, output=1_000)
    assert prices is not None
    # Kept, above: 280,000 x 200 + 1,000 x 15,000. Cut, below, all written: 270,000 x 2,500 + 1,000 x 10,000.
    assert prices[0] == Purchase(cost_now=685_000_000, cost_kept=71_000_000)


def test_what_is_removed_cannot_be_read():
    bought = price_of(OPUS, OPUS, prompt=1_000, hit=1_000, hit_after=900, removes=400)
    assert bought.cost_now == 600 * 200


def test_an_unknown_price_prices_nothing():
    rules = CacheRules(matching=Uncached())
    model = Model(name="m", provider="p", family="", context_length=1_000, cache=rules)
    assert price_cuts([Cut(first_changed=0, removes=1)], Warmth(), model, prompt=10) is None


@given(
    sizes=st.lists(st.integers(1, 3_000), min_size=4, max_size=50),
    cuts=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 50_000)), max_size=20),
    at=st.sampled_from([10.0, 1_000.0]),
)
def test_many_cuts_in_one_pass_are_priced_like_each_alone(
    sizes: list[int], cuts: list[tuple[int, int]], at: float
):
    last = len(sizes) - 1
    layout = layout_of(sizes, marks={0: "short", last - 1: "short", last: "short"})
    warm = warmth(after_call(Belief(), layout, CLAUDE, 0).belief, layout, CLAUDE.cache, at)
    offers = [Cut(first_changed=first, removes=min(removes, layout.total)) for first, removes in cuts]
    prices = price_cuts(offers, warm, CLAUDE, prompt=layout.total)
    assert prices == [
        price_of(
            OPUS,
            OPUS,
            prompt=layout.total,
            hit=warm.hit(),
            hit_after=warm.hit(offer.first_changed),
            removes=offer.removes,
        )
        for offer in offers
    ]


def test_a_chance_of_warmth_weighs_what_is_read():
    warm = Warmth(positions=(10_000,), blocks=(0,), ends=(10_000,), step=1, chance=0.5)
    prices = price_cuts([Cut(first_changed=4_000, removes=1_000)], warm, CLAUDE, prompt=10_000)
    assert prices is not None
    assert prices[0].cost_kept == 5_000 * 200 + 5_000 * 5_000
    assert prices[0].cost_now == 2_000 * 200 + 7_000 * 5_000
