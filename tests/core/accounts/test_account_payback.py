"""Whether a compaction paid for itself: by hand, and against the session played again without it."""

from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.accounts.payback import Payback, paybacks
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_at
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.models.model import CacheRules, Cliff, Prices, SteppedPrefixes, Uncached
from lowwater.core.models.registry import Registry
from tests.core.accounts.accounts import (
    MODEL,
    PRICES,
    REGISTRY,
    TTL,
    UNPRICED,
    account,
    compaction,
    skip,
    turn,
)

# The break-even table, "full" at r .10, w 1.25, ρ 5: S 20K, H 120K, K 20K, σ 3K, L 0.4K; the summary rides the warm prefix.
RIDING = 31_400_000
REMOVED = 117_000
BOUGHT = compaction(
    20,
    mode="summary",
    before=160_000,
    after=43_000,
    summary_tokens=3_000,
    cost=RIDING,
    price=46_150_000,
    saves=11_700_000,
)
FIRST = turn(20, read=20_000, write=23_000, removed=REMOVED)


Happened = TurnRecord | Compaction


def later(count: int, *, removed: int = REMOVED, since: int = 30) -> list[TurnRecord]:
    return [turn(since + 10 * at, read=43_000, write=100, removed=removed) for at in range(count)]


def one(*happened: Happened, ended_at: float | None = None) -> Payback:
    return paybacks(account(*happened, ended_at=ended_at), REGISTRY)[0]


def test_the_example_of_the_economics_is_paid_back_when_they_say() -> None:
    found = one(turn(10, read=150_000, write=10_000), BOUGHT, FIRST, *later(6))
    assert found.predicted == pytest.approx(3.944, abs=0.001)  # and the call right after it: 4.9
    assert found.turns == 4
    assert found.price == RIDING + (20_000 * 100 + 23_000 * 1_250) - 160_000 * 100 == 46_150_000
    assert found.rewriting == 23_000 * (1_250 - 100)
    assert found.saved == 4 * 11_700_000
    assert (found.missing, found.counted, found.over, found.failed) == (0, 6, "no", False)


def test_before_it_is_paid_back_it_says_what_is_missing() -> None:
    found = one(turn(10, read=150_000, write=10_000), BOUGHT, FIRST, *later(3))
    assert (found.turns, found.missing, found.failed) == (None, 46_150_000 - 3 * 11_700_000, False)


def test_before_the_next_call_nothing_can_be_told() -> None:
    found = one(turn(10, read=150_000, write=10_000), BOUGHT)
    assert (found.price, found.missing, found.turns, found.rewriting) == (None, None, None, 0)


def test_a_session_that_ends_before_has_not_paid_back() -> None:
    happened: list[Happened] = [turn(10, read=150_000, write=10_000), BOUGHT, FIRST, *later(2)]
    assert one(*happened, ended_at=99.0).failed
    assert not one(*happened).failed
    assert one(turn(10, read=150_000), BOUGHT, ended_at=99.0).missing == RIDING


def test_over_a_cold_cache_it_pays_at_once() -> None:
    cold = 20 + TTL + 1
    bought = compaction(cold, before=160_000, after=43_000)
    found = one(turn(10, read=150_000, write=10_000), bought, turn(cold, write=43_000, removed=REMOVED))
    assert found.price == -REMOVED * 1_250
    assert (found.turns, found.rewriting) == (0, 0)


def test_a_cut_at_the_very_start_of_a_warm_prompt_is_not_taken_for_a_cold_cache() -> None:
    bought = compaction(20, before=160_000, after=43_000)
    found = one(turn(10, read=150_000, write=10_000), bought, turn(20, write=43_000, removed=REMOVED))
    assert found.price == 43_000 * 1_250 - 160_000 * 100


def test_what_is_new_in_the_first_call_was_to_be_written_anyway() -> None:
    grown = replace(BOUGHT, before=165_000, after=48_000, cost=0)
    found = one(
        turn(10, read=150_000, write=10_000), grown, turn(20, read=20_000, write=28_000, removed=REMOVED)
    )
    assert found.rewriting == 23_000 * (1_250 - 100)
    assert found.price == 23_000 * (1_250 - 100) - REMOVED * 100


def test_a_cold_call_later_on_saves_what_would_have_been_written() -> None:
    found = one(
        turn(10, read=150_000, write=10_000), BOUGHT, FIRST, turn(9_000, write=43_100, removed=REMOVED)
    )
    assert (found.saved, found.turns) == (REMOVED * 1_250, 1)


def test_staying_below_a_cliff_counts_for_the_whole_request() -> None:
    dear = Prices(input=2_000_000, cache_read=200_000, cache_write=2_500_000, output=10_000_000)
    registry = Registry([replace(MODEL, cliffs=(Cliff(above=100_000, prices=dear),))])
    happened = account(
        turn(10, read=150_000, write=10_000), BOUGHT, FIRST, turn(30, read=43_000, output=10, removed=REMOVED)
    )
    found = paybacks(happened, registry)[0]
    assert found.saved == 160_000 * 200 - 43_000 * 100 + 10 * (10_000 - 5_000)


def test_after_a_rewind_nothing_more_is_saved() -> None:
    back = [turn(60 + at, read=43_000, write=117_000, removed=0) for at in range(5)]
    found = one(turn(10, read=150_000, write=10_000), BOUGHT, FIRST, *later(2), *back)
    assert (found.over, found.counted, found.turns, found.failed) == ("undone", 2, None, True)


def test_what_was_undone_before_the_next_call_cost_its_summary_and_saved_nothing() -> None:
    found = one(turn(10, read=150_000, write=10_000), BOUGHT, turn(21, read=160_000, write=10))
    assert (found.over, found.price, found.saved, found.failed) == ("undone", RIDING, 0, True)


def test_a_better_count_of_what_is_kept_out_is_no_rewind() -> None:
    much = 2_000_000
    small = compaction(20, before=60_000, after=50_000)
    happened: list[Happened] = [
        turn(10, read=60_000, removed=much),
        small,
        turn(20, read=40_000, write=10, removed=much - 50_000),
    ]
    assert one(*happened, turn(30, read=50_000, removed=much - 100_000)).over == "no"


def test_undoing_something_smaller_does_not_undo_it() -> None:
    also = later(2, removed=REMOVED + 20_000)
    found = one(turn(10, read=150_000, write=10_000), BOUGHT, FIRST, *also, *later(4, since=60))
    assert (found.over, found.turns) == ("no", 4)


def test_the_cache_of_another_model_is_not_read() -> None:
    bought = compaction(20, before=160_000, after=43_000)
    first = turn(20, write=43_000, removed=REMOVED)
    found = one(turn(10, read=150_000, write=10_000, model=UNPRICED.name), bought, first)
    assert (found.price, found.rewriting) == (-REMOVED * 1_250, 0)


def test_where_nothing_is_marked_nothing_would_have_been_read() -> None:
    bought = compaction(20, before=160_000, after=43_000)
    found = one(turn(10, uncached=160_000), bought, turn(20, uncached=43_000, removed=REMOVED))
    assert found.price == -REMOVED * 1_000


def test_a_cache_that_needs_no_marks_keeps_a_prompt_that_reports_no_writes() -> None:
    by_itself = replace(MODEL, cache=CacheRules(matching=SteppedPrefixes(tokens=128), ttl=TTL))
    bought = compaction(20, before=160_000, after=43_000)
    happened = account(turn(10, uncached=160_000), bought, turn(20, uncached=43_000, removed=REMOVED))
    assert paybacks(happened, Registry([by_itself]))[0].price == 43_000 * 1_000 - 160_000 * 100
    never = replace(MODEL, cache=CacheRules(matching=Uncached(), ttl=TTL))
    assert paybacks(happened, Registry([never]))[0].price == -REMOVED * 1_000


def test_it_counts_until_a_compaction_that_begins_no_later_in_the_view() -> None:
    start: list[Happened] = [turn(10, read=150_000, write=10_000), BOUGHT, FIRST, *later(2)]
    behind = compaction(55, before=43_200, after=40_000, first_changed=BOUGHT.first_changed + 1, number=2)
    before = replace(behind, first_changed=BOUGHT.first_changed)
    rest = later(3, removed=REMOVED + 3_200, since=60)
    assert one(*start, behind, *rest).counted == 5
    assert (one(*start, before, *rest).counted, one(*start, before, *rest).over) == (2, "replaced")


def test_what_is_compacted_before_one_call_counts_as_one() -> None:
    first = compaction(20, before=160_000, after=100_000, price=5, saves=2, cost=3, number=1)
    second = compaction(20, before=100_000, after=43_000, price=3, saves=2, cost=4, number=2)
    found = paybacks(account(turn(10, read=150_000, write=10_000), first, second, FIRST, *later(1)), REGISTRY)
    assert [each.numbers for each in found] == [(1, 2)]
    assert (found[0].predicted, found[0].summaries, found[0].saved) == (2.0, 7, REMOVED * 100)


def test_what_is_truncated_on_arrival_is_no_purchase() -> None:
    assert paybacks(account(compaction(20, mode="shorten"), FIRST, skip(30, "wall")), REGISTRY) == []


def test_what_has_no_price_is_not_told_in_money() -> None:
    happened: list[Happened] = [
        turn(10, read=150_000, write=10_000, model=UNPRICED.name),
        BOUGHT,
        turn(20, read=20_000, write=23_000, removed=REMOVED, model=UNPRICED.name),
    ]
    found = one(*happened)
    assert (found.price, found.rewriting, found.missing, found.turns, found.failed) == (
        None,
        None,
        None,
        None,
        False,
    )
    unknown_summary = one(turn(10, read=150_000, write=10_000), replace(BOUGHT, cost=None), FIRST, *later(9))
    assert (unknown_summary.price, unknown_summary.turns) == (None, None)


class Played(NamedTuple):
    """A session played over a cache that keeps every prompt for its lifetime: what each call was billed."""

    usages: list[Usage]

    def cost(self, at: int) -> int:
        return cost_at(self.usages[at], PRICES)


def play(sizes: list[int], kept: list[int], gaps: list[int]) -> Played:
    """Play prompts of these sizes; of the prompt before each, so many tokens at its start stayed as they were."""
    usages, before = [], 0
    for size, same, gap in zip(sizes, kept, gaps, strict=True):
        read = min(before, same) if gap <= TTL else 0
        usages.append(Usage(cache_read=read, cache_write=size - read))
        before = size
    return Played(usages)


@given(
    growth=st.lists(st.integers(1, 5_000), min_size=3, max_size=20),
    gaps=st.lists(st.integers(1, 2 * TTL), min_size=20, max_size=20),
    start=st.integers(1_000, 20_000),
    where=st.floats(0, 1),
    cut=st.floats(0, 1),
    share=st.floats(0.05, 1),
    summary=st.integers(0, 10**8),
)
def test_it_says_what_playing_the_session_without_the_compaction_says(
    growth: list[int], gaps: list[int], start: int, where: float, cut: float, share: float, summary: int
) -> None:
    gaps = gaps[: len(growth)]
    whole = [start + sum(growth[: at + 1]) for at in range(len(growth))]
    when = 1 + int(where * (len(whole) - 2))
    before = whole[when - 1]
    first = int(cut * (before - 1))
    removed = int(share * (before - first))
    assume(removed > 0)
    smaller = [size - removed * (at >= when) for at, size in enumerate(whole)]
    everything = 10**9
    with_it = play(smaller, [first if at == when else everything for at in range(len(whole))], gaps)
    without = play(whole, [everything] * len(whole), gaps)

    moments = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    records = [
        TurnRecord(at=at, model=MODEL.name, usage=usage, removed=removed * (turn >= when))
        for turn, (at, usage) in enumerate(zip(moments, with_it.usages, strict=True))
    ]
    event = compaction(moments[when], before=whole[when], after=smaller[when], cost=summary)
    found = one(*records[:when], event, *records[when:])

    price = summary + with_it.cost(when) - without.cost(when)
    savings = [without.cost(at) - with_it.cost(at) for at in range(when + 1, len(whole))]
    reached = [n for n in range(len(savings) + 1) if sum(savings[:n]) >= price]
    turns = reached[0] if reached else None
    assert (found.price, found.turns, found.saved) == (price, turns, sum(savings[:turns]))
