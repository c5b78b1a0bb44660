"""Break-even figures, those of docs/economics.md among them, and the economic scenarios of specification E."""

from math import inf, sqrt

import pytest

from lowwater.core.costs.tuning import (
    PlannedCompaction,
    Ratios,
    SimplePayback,
    break_even,
    break_even_prune,
    optimal_turns,
    other_summary,
    own_summary,
    ratios_of,
    simple_payback,
)
from lowwater.core.models.model import Prices

FULL = PlannedCompaction(before=20_000, replaced=120_000, kept=20_000, summary=3_000, instruction=400)
LEAF = PlannedCompaction(before=20_000, replaced=20_000, kept=110_000, summary=2_000, instruction=400)

# r, w, ρ | full: PR 306, riding, not riding | leaf: PR 306, exact | prune
TABLE = [
    (0.10, 1.25, 5, "1.2", "4.9", "17.3", "7.5", "75", "17.2"),
    (0.05, 1.25, 5, "1.3", "8.7", "34.7", "7.9", "156", "36.0"),
    (0.025, 1.25, 5, "1.3", "16.3", "69.6", "8.1", "318", "73.5"),
    (0.10, 1.0, 6, "1.2", "4.7", "17.0", "7.5", "59", "13.5"),
    (0.02, 1.0, 4, "1.3", "16.3", "83.3", "8.2", "322", "73.5"),
    (0.25, 1.0, 3, "1.0", "2.3", "6.4", "6.2", "20", "4.5"),
]
IDS = [f"r {row[0]}, w {row[1]}, output {row[2]}" for row in TABLE]
OPUS = Ratios(read=0.1, write=1.25, output=5)


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_the_break_even_table_is_reproduced(row: tuple[float, float, float, str, str, str, str, str, str]):
    at = Ratios(read=row[0], write=row[1], output=row[2])
    leaf_summary = other_summary(LEAF, input=0.2, output=1.0)
    assert (
        _one_digit(_simple(at, FULL)),
        _one_digit(break_even(at, FULL, own_summary(at, FULL, how="warm"))),
        _one_digit(break_even(at, FULL, own_summary(at, FULL, how="cold"))),
        _one_digit(_simple(at, LEAF)),
        f"{break_even(at, LEAF, leaf_summary):.0f}",
        _one_digit(break_even_prune(at, removes=40_000, survives=60_000)),
    ) == row[3:]


def _simple(at: Ratios, what: PlannedCompaction) -> float:
    turns = simple_payback(cached=what.prompt, saved=what.removes, input_price=1.0, read_price=at.read).turns
    assert turns is not None
    return turns


def _one_digit(calls: float) -> str:
    return f"{round(calls, 6):.1f}"  # 17.25 is exact on paper: the table rounds halves to even


def test_removing_nothing_never_pays():
    nothing = PlannedCompaction(before=10, replaced=5, kept=10, summary=5)
    assert break_even(OPUS, nothing) == inf
    assert simple_payback(cached=150_000, saved=0, input_price=5.0, read_price=0.5).turns is None


def test_what_was_not_cached_costs_no_miss():
    found = simple_payback(cached=0, saved=10, input_price=5.0, read_price=0.5)
    assert found == SimplePayback(miss_cost=0, turns=0.0)


def test_the_square_root_law():
    # Σ over n calls of rent r·g·k is r·g·n²/2; with the fixed cost F it is least per call at n = sqrt(2F/(r·g)).
    best = optimal_turns(OPUS, fixed=50_000, growth=2_000)
    assert best == pytest.approx(sqrt(2 * 50_000 / (0.1 * 2_000)))

    def per_call(n: float) -> float:
        return 50_000 / n + 0.1 * 2_000 * n / 2

    assert per_call(best) < min(per_call(best - 1), per_call(best + 1))


def test_a_prompt_that_does_not_grow_needs_no_compaction():
    assert optimal_turns(OPUS, fixed=50_000, growth=0) == inf


def test_ratios_are_multiples_of_the_input_price():
    prices = Prices(
        input=4_000_000,
        cache_read=200_000,
        cache_write=5_000_000,
        cache_write_long=8_000_000,
        output=20_000_000,
    )
    assert ratios_of(prices) == Ratios(read=0.05, write=1.25, output=5.0)
    assert ratios_of(prices, long=True).write == 2.0
