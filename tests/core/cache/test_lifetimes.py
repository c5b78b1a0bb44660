"""The lifetime `auto` asks for follows the measured gaps and the prices, and does not flip from turn to turn (specification B, F)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.cache.marks import WINDOW, Gaps, Lifetime, saved_by_long, settle_ttl, usual_gaps
from lowwater.core.models.model import CacheRules, MarkedPrefixes, Prices

PRICES = Prices(
    input=5_000_000, cache_read=500_000, cache_write=6_250_000, output=25_000_000, cache_write_long=10_000_000
)
RULES = CacheRules(matching=MarkedPrefixes(max_marks=4, lookback_blocks=20), ttl=300, ttl_long=3_600)
SOON, LATER, NEXT_DAY = 20.0, 900.0, 80_000.0


def cost(gaps: list[float], lifetime: Lifetime, *, prompt: int, growth: int) -> int:
    """What the calls behind these gaps cost, each written out as in the table of the contract."""
    write = PRICES.cache_write if lifetime == "short" else PRICES.cache_write_long or 0
    lives = 300 if lifetime == "short" else 3_600
    return sum(
        PRICES.cache_read * (prompt - growth) + write * growth if gap <= lives else write * prompt
        for gap in gaps
    )


@given(
    gaps=st.lists(st.sampled_from([SOON, 300.0, 300.1, LATER, 3_600.0, 3_601.0, NEXT_DAY]), max_size=40),
    prompt=st.integers(1, 10**6),
    share=st.integers(0, 100),
)
def test_what_is_saved_is_the_difference_of_the_two_bills(gaps: list[float], prompt: int, share: int) -> None:
    growth = prompt * share // 100
    counted = Gaps(
        within=sum(gap <= 300 for gap in gaps),
        between=sum(300 < gap <= 3_600 for gap in gaps),
        beyond=sum(gap > 3_600 for gap in gaps),
    )
    expected = cost(gaps, "short", prompt=prompt, growth=growth) - cost(
        gaps, "long", prompt=prompt, growth=growth
    )
    assert saved_by_long(counted, PRICES, prompt=prompt, growth=growth) == expected


def test_a_figure_by_hand() -> None:
    """One pause of a quarter of an hour with 100,000 tokens, 2,000 of them new: $0.5635, less $0.0075 of premium."""
    saved = saved_by_long(Gaps(between=1), PRICES, prompt=100_000, growth=2_000)
    assert saved // 1_000 == 563_500_000 - 7_500_000


@pytest.mark.parametrize(
    ("gaps", "growth", "chosen"),
    [
        ([], 1, "long"),
        ([NEXT_DAY] * 10, 1, "long"),
        ([SOON] * WINDOW, 1, "long"),
        ([SOON] * WINDOW, 10, "short"),
        ([SOON] * WINDOW + [LATER] * 5, 10, "short"),
        ([SOON] * (WINDOW - 5) + [LATER] * 5, 2, "long"),
        ([NEXT_DAY] * WINDOW, 1, "short"),
        ([NEXT_DAY] * WINDOW + [LATER] * WINDOW, 1, "long"),
    ],
    ids=[
        "nothing measured: as pauses are in general",
        "too few to know better",
        "a tool loop that adds little",
        "one that adds much to a prompt",
        "few pauses do not outweigh that",
        "pauses among quick calls",
        "pauses that outlive both",
        "only the newest count",
    ],
)
def test_what_is_known_in_general_decides_until_the_session_has_shown_otherwise(
    gaps: list[float], growth: int, chosen: Lifetime
) -> None:
    assert settle_ttl(gaps, PRICES, RULES, prompt=50, growth=growth) == chosen


@pytest.mark.parametrize("now", ["short", "long"])
def test_where_a_change_would_not_pay_the_lifetime_stays_what_it_is(now: Lifetime) -> None:
    assert settle_ttl([SOON] * WINDOW, PRICES, RULES, prompt=50, growth=1, now=now) == now


def test_where_reads_are_dear_and_little_is_kept_the_short_one_is_the_first() -> None:
    """OpenAI's lifetimes are half an hour and half a day: eight pauses in a thousand are between them."""
    openai = replace(RULES, ttl=1_800, ttl_long=43_200)
    dearer = replace(PRICES, cache_write_long=12_500_000)
    assert usual_gaps(1_800, 43_200) == Gaps(within=991, between=8, beyond=1)
    assert settle_ttl([], dearer, openai) == "short"
    assert settle_ttl([7_200.0] * WINDOW, dearer, openai) == "long"


@pytest.mark.parametrize(
    ("prices", "rules"),
    [
        (replace(PRICES, cache_write_long=None), RULES),
        (PRICES, replace(RULES, ttl_long=None)),
        (PRICES, replace(RULES, ttl=None, ttl_long=None)),
    ],
    ids=["no price", "no long lifetime", "nothing published"],
)
def test_where_one_lifetime_is_sold_it_is_that(prices: Prices, rules: CacheRules) -> None:
    assert settle_ttl([LATER] * WINDOW, prices, rules) == "short"
