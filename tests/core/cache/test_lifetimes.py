"""The lifetime `auto` asks for follows the measured gaps and the prices, and does not flip from turn to turn (specification B, F)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.cache.lifetimes import Gaps, Lifetime, choose_ttl, saved_by_long, settle_ttl
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
    ("gaps", "chosen"),
    [
        ([], "short"),
        ([SOON] * 50, "short"),
        ([LATER], "short"),
        ([LATER] * 2, "long"),
        ([SOON] * 10 + [LATER] * 3, "long"),
        ([NEXT_DAY] * 10, "short"),
        ([LATER] * 3 + [NEXT_DAY] * 5, "short"),
        ([300.0] * 10, "short"),
        ([3_600.0] * 10, "long"),
    ],
    ids=[
        "nothing measured",
        "a tool loop",
        "one pause pays for no change",
        "two pauses do",
        "pauses among quick calls",
        "pauses that outlive both",
        "more of those than of the others",
        "just within the short one",
        "just within the long one",
    ],
)
def test_long_pays_when_what_survives_is_worth_the_premium_and_the_change(
    gaps: list[float], chosen: Lifetime
) -> None:
    assert choose_ttl(gaps, PRICES, RULES) == chosen


@pytest.mark.parametrize("now", ["short", "long"])
@pytest.mark.parametrize(
    "gaps", [[], [LATER], [SOON] * 20, [LATER, *[SOON] * 20]], ids=["none", "one pause", "quick", "both"]
)
def test_between_the_two_prices_it_stays_as_it_is(gaps: list[float], now: Lifetime) -> None:
    assert choose_ttl(gaps, PRICES, RULES, now=now) == now


def test_long_is_given_up_when_its_premium_has_paid_for_the_change() -> None:
    """A twentieth of the prompt at 3.75 more, against 5.75 for all of it: after thirty quick calls it is the same."""
    assert choose_ttl([SOON] * 30, PRICES, RULES, now="long") == "long"
    assert choose_ttl([SOON] * 31, PRICES, RULES, now="long") == "short"


@given(st.lists(st.sampled_from([SOON, LATER, NEXT_DAY]), max_size=200), st.integers(1, 20))
def test_a_session_changes_its_mind_at_most_once_in_a_while(gaps: list[float], growth: int) -> None:
    chosen = [settle_ttl(gaps[:end], PRICES, RULES, prompt=20, growth=growth) for end in range(len(gaps) + 1)]
    changes = [at for at in range(1, len(chosen)) if chosen[at] != chosen[at - 1]]
    assert chosen[0] == "short"
    assert all(later - at > 1 for at, later in pairwise(changes))


def test_a_session_goes_to_long_and_back() -> None:
    gaps = [SOON] * 5 + [LATER] * 4
    assert settle_ttl(gaps, PRICES, RULES) == "long"
    assert settle_ttl(gaps + [SOON] * 20, PRICES, RULES) == "long"
    assert settle_ttl(gaps + [SOON] * 100, PRICES, RULES) == "short"


@pytest.mark.parametrize(
    ("prices", "rules"),
    [
        (replace(PRICES, cache_write_long=None), RULES),
        (PRICES, replace(RULES, ttl_long=None)),
        (PRICES, replace(RULES, ttl=None, ttl_long=None)),
    ],
    ids=["no price", "no long lifetime", "nothing published"],
)
@pytest.mark.parametrize("now", ["short", "long"])
def test_where_one_lifetime_is_sold_it_is_that(prices: Prices, rules: CacheRules, now: Lifetime) -> None:
    assert choose_ttl([LATER] * 50, prices, rules, now=now) == "short"
