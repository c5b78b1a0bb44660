"""The price of a compaction, by hand."""

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.costs.prices import Purchase, price_of
from lowwater.core.models.model import Prices

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
    model = load_registry().find("gpt-6.1-sol")
    above, below = model.prices_at(280_000), model.prices_at(270_000)
    assert above is not None
    assert below is not None
    bought = price_of(above, below, prompt=280_000, hit=280_000, hit_after=0, removes=10_000, output=1_000)
    # Kept, above: 280,000 x 200 + 1,000 x 15,000. Cut, below, all written: 270,000 x 2,500 + 1,000 x 10,000.
    assert bought == Purchase(cost_now=685_000_000, cost_kept=71_000_000)


def test_what_is_removed_cannot_be_read():
    bought = price_of(OPUS, OPUS, prompt=1_000, hit=1_000, hit_after=900, removes=400)
    assert bought.cost_now == 600 * 200
