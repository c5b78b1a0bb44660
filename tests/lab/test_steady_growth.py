"""A session that grows steadily is compacted when the tuning guide says, online and with hindsight."""

from itertools import pairwise

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.costs.tuning import tuning_of
from lowwater.lab.course import Course, CourseAction, CourseTurn, Sheet
from lowwater.lab.optimum import optimum
from lowwater.lab.schedules import RentOrBuy, Tally, run

CALLS = 400
"""Enough for several periods: with hindsight a short session is divided evenly, whatever the period."""


def periods(acts: tuple[CourseAction, ...]) -> list[int]:
    return [later.turn - earlier.turn for earlier, later in pairwise(acts)]


@pytest.mark.parametrize("growth", [2_000, 6_000])
@pytest.mark.parametrize("name", ["claude-opus-5-5", "claude-opus-5", "deepseek-flash", "grok-4.7"])
def test_the_policy_and_the_optimum_compact_at_the_period_that_prices_imply(name: str, growth: int) -> None:
    model = load_registry().find(name)
    prices = model.prices
    assert prices is not None
    turn = CourseTurn(text=growth, results=0, elided=0, chance=0, output=0, gap=5.0)
    course = Course(name=name, fixed=20_000, tail=20_000, turns=(turn,) * CALLS)
    sheet = Sheet(
        name=name,
        input=prices.input,
        read=prices.cache_read,
        write=prices.cache_write,
        output=prices.output,
        other_input=prices.input * 1_000,
        other_output=prices.output * 1_000,
        ttl=300,
        window=10_000_000,
    )
    tally = Tally(course, sheet)
    rented, best = run(tally, RentOrBuy(tally)), optimum(course, sheet, with_acts=True)
    wanted = tuning_of(model, growth=growth, preamble=20_000, tail=20_000, summary=3_000).ways[0].calls
    assert wanted is not None
    assert periods(rented.acts)
    assert all(abs(period - wanted) <= 1 for period in periods(rented.acts))
    assert all(abs(period - wanted) <= max(2.0, wanted / 8) for period in periods(best.acts))
    assert rented.cost is not None
    assert best.cost is not None
    assert rented.cost <= 1.02 * best.cost
