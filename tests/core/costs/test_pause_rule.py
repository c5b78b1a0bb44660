"""The rule for pauses: what pays before a cached prefix expires, and that nothing pays more than it can lose."""

from itertools import product
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.costs.idle import TOOL_LULLS, USER_LULLS, IdleCosts, IdlePlan, Lulls, plan_pause

OPUS = IdleCosts(lifetime=300, ping=10, lost=115)
"""Reads at a tenth of the input price, writes at 1.25: 100,000 tokens, in thousandths of a cent."""


def cost_in(gap: float, plan: IdlePlan, costs: IdleCosts, *, comes_back: bool = True) -> int:
    """What a pause of `gap` seconds costs with a plan."""
    made = plan.made_in(gap) * costs.ping
    if plan.compacts_in(gap) and costs.compact is not None:
        return made + costs.compact + (costs.lost_compacted if comes_back else 0)
    return made + (0 if not comes_back or plan.is_warm_after(gap, costs.lifetime) else costs.lost)


def test_a_few_calls_pay_and_no_more() -> None:
    plan = plan_pause(OPUS)
    assert plan.action == "keep-warm"
    assert 2 <= plan.pings <= 6
    assert plan.expected < plan.expected_let_go


def test_the_cheaper_a_read_is_the_longer_it_is_kept() -> None:
    cheap = IdleCosts(lifetime=300, ping=5, lost=120)
    assert plan_pause(cheap).pings > plan_pause(OPUS).pings


def test_a_prefix_that_costs_as_much_to_read_as_to_write_is_let_go() -> None:
    assert plan_pause(IdleCosts(lifetime=300, ping=100, lost=20)).action == "let-go"


def test_what_is_compacted_at_the_return_anyway_is_not_worth_keeping() -> None:
    assert plan_pause(IdleCosts(lifetime=300, ping=10, lost=0)).action == "let-go"


def test_a_session_whose_user_comes_back_after_ten_minutes_is_kept_longer_than_one_whose_user_never_does() -> (
    None
):
    soon, late = plan_pause(OPUS, gaps=[560.0] * 50), plan_pause(OPUS, gaps=[40_000.0] * 50)
    assert soon.pings > late.pings
    assert soon.expected < late.expected


def test_compacting_while_it_is_warm_wins_where_it_leaves_little() -> None:
    costs = IdleCosts(lifetime=300, ping=10, lost=115, compact=12, lost_compacted=5)
    assert plan_pause(costs).then == "compact"
    assert plan_pause(costs, mode="keep-warm").then == "let-go"
    assert plan_pause(costs, mode="compact").pings == 0


def test_nothing_is_done_later_than_allowed() -> None:
    assert plan_pause(IdleCosts(lifetime=300, ping=1, lost=10_000), lasts=600).pings == 2
    assert plan_pause(IdleCosts(lifetime=300, ping=1, lost=10_000), elapsed=280, lasts=600).pings == 1
    assert plan_pause(IdleCosts(lifetime=300, ping=1, lost=10_000), lasts=100).pings == 0


@pytest.mark.parametrize("seconds", [1.0, 59.0, 300.0, 301.0, 5_000.0, 90_000.0, 1e6])
def test_the_general_experience_falls_from_point_to_point(seconds: float) -> None:
    for known in (USER_LULLS, TOOL_LULLS):
        assert known.share(seconds) >= known.share(seconds * 1.01) >= known.ends


ENDS: tuple[Literal["let-go", "compact"], ...] = ("let-go", "compact")
CHANCES = Lulls(
    longer=((100, 10_000), (400, 6_000), (700, 3_000), (1_000, 2_000), (1_300, 1_500)), ends=1_000
)


@settings(max_examples=25, deadline=None)
@given(
    ping=st.integers(0, 60),
    lost=st.integers(0, 200),
    compact=st.none() | st.integers(0, 100),
    left=st.integers(-50, 100),
)
def test_no_plan_of_the_kind_costs_less_on_average(
    ping: int, lost: int, compact: int | None, left: int
) -> None:
    """Exact on pauses as they are spread: the average over recorded pauses of each possible plan is compared."""
    costs = IdleCosts(lifetime=300, ping=ping, lost=lost, compact=compact, lost_compacted=left)
    found = plan_pause(costs, lasts=1_200, lulls=CHANCES)
    grid = [100.0 + 10 * each for each in range(3_000)]
    weights = [CHANCES.share(gap) - CHANCES.share(gap + 10) for gap in grid]

    def average(plan: IdlePlan) -> float:
        back = sum(weight * cost_in(gap + 5, plan, costs) for gap, weight in zip(grid, weights, strict=True))
        return back + CHANCES.ends * cost_in(1e7, plan, costs, comes_back=False)

    every = [
        IdlePlan(pings=pings, then=then, period=costs.period, expected=0, expected_let_go=0)
        for pings, then in product(range(5), ENDS)
        if then == "let-go" or compact is not None
    ]
    least = min(map(average, every))
    assert average(found) <= least + 150 * (ping + lost + (compact or 0) + abs(left)) / 2
