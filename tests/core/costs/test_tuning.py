"""The tuning of a model follows from its prices: the figures of the break-even table, and the optimum checked by trying every period."""

from dataclasses import dataclass
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.costs.prices import Meter, price_of
from lowwater.core.costs.tuning import Tuning, limits_of, tuning_of
from lowwater.core.models.model import (
    CacheRules,
    Cliff,
    MarkedPrefixes,
    Model,
    Period,
    Prices,
    SteppedPrefixes,
    Uncached,
)
from lowwater.errors import BadInput

INPUT = 4_000_000


def sold(read: float, write: float, output: float, *, long: float | None = None) -> Prices:
    return Prices(
        input=INPUT,
        cache_read=round(INPUT * read),
        cache_write=round(INPUT * write),
        output=round(INPUT * output),
        cache_write_long=None if long is None else round(INPUT * long),
    )


OPUS = Model(
    name="opus",
    provider="a",
    family="a",
    context_length=1_000_000,
    cache=CacheRules(matching=MarkedPrefixes(max_marks=4, lookback_blocks=20), ttl=300, ttl_long=3_600),
    prices=sold(0.1, 1.25, 5, long=2),
)


def tuned(model: Model = OPUS, *, growth: int = 2_000, **options: object) -> Tuning:
    return tuning_of(model, growth=growth, preamble=20_000, tail=20_000, summary=3_000, **options)  # type: ignore[arg-type]


def priced(read: float, write: float, output: float) -> Model:
    return replace(OPUS, prices=sold(read, write, output))


# r, w, ρ | full riding, full not riding, prune: the break-even table
TABLE = [
    (0.10, 1.25, 5, "4.9", "17.3", "17.2"),
    (0.05, 1.25, 5, "8.7", "34.7", "36.0"),
    (0.025, 1.25, 5, "16.3", "69.6", "73.5"),
    (0.10, 1.0, 6, "4.7", "17.0", "13.5"),
    (0.02, 1.0, 4, "16.3", "83.3", "73.5"),
    (0.25, 1.0, 3, "2.3", "6.4", "4.5"),
]


@pytest.mark.parametrize("row", TABLE, ids=[f"r {row[0]}, w {row[1]}" for row in TABLE])
def test_break_evens_are_those_of_the_economics(row: tuple[float, float, float, str, str, str]) -> None:
    tuning = tuned(priced(*row[:3]))
    assert tuning.replaced == 120_000
    assert (tuning.prune.removes, tuning.prune.survives) == (40_000, 60_000)
    shown = (*(way.break_even for way in tuning.ways), tuning.prune.break_even)
    assert tuple(f"{round(calls or 0, 6):.1f}" for calls in shown) == row[3:]


@dataclass
class Cycle:
    """What a session pays that compacts every so many calls, on average at each; input tokens."""

    read: float
    write: float
    output: float
    growth: int = 2_000
    after: int = 43_000

    def per_call(self, calls: int) -> float:
        """Sum it call by call, as the provider bills: nothing here knows of rent or of a square root."""
        total, prompt = 0.0, self.after
        for call in range(calls):
            cached = prompt if call else 20_000
            total += self.read * cached + self.write * (prompt - cached)
            prompt += self.growth
        return (total + self.read * prompt + 400 + self.output * 3_000) / calls


@pytest.mark.parametrize("row", TABLE, ids=[f"r {row[0]}, w {row[1]}" for row in TABLE])
def test_no_other_period_is_cheaper(row: tuple[float, float, float, str, str, str]) -> None:
    session = Cycle(*row[:3])
    best = min(range(1, 400), key=session.per_call)
    assert tuned(priced(*row[:3])).calls == pytest.approx(best, abs=1.0)


@pytest.mark.parametrize("row", TABLE, ids=[f"r {row[0]}, w {row[1]}" for row in TABLE])
@pytest.mark.parametrize("growth", [500, 2_000, 5_000])
def test_the_online_rule_buys_there_without_knowing_the_growth(
    row: tuple[float, float, float, str, str, str], growth: int
) -> None:
    model = priced(*row[:3])
    prices = model.prices
    assert prices is not None
    tuning = tuned(model, growth=growth)
    meter, call, prompt = Meter(), 0, tuning.shape.after
    while True:
        call, prompt = call + 1, prompt + growth
        meter = meter.left_tail(call).advance(prices.cache_read)
        rent = sum(meter.rent(number, growth) for number in range(1, call + 1))
        summary = (prompt * prices.cache_read + 400 * prices.input + 3_000 * prices.output) // 1_000
        purchase = price_of(
            prices,
            prices,
            prompt=prompt,
            hit=prompt,
            hit_after=20_000,
            removes=prompt - 43_000,
            summary_cost=summary,
        )
        if rent >= purchase.price:
            break
    assert call == pytest.approx(tuning.calls, abs=1.0)
    assert purchase.price == pytest.approx(tuning.amounts.compaction, rel=0.01)


def test_the_trigger_is_the_square_root_law() -> None:
    tuning = tuned()
    fixed = 1.15 * 23_000 + 0.1 * 43_000 + 400 + 5 * 3_000
    assert tuning.ways[0].fixed == pytest.approx(fixed)
    assert tuning.trigger == round(43_000 + 2_000 * sqrt(2 * fixed / (0.1 * 2_000)))
    assert (tuning.trigger_by, tuning.forced_by) == ("rent", "wall")
    assert tuning.runway == tuning.trigger - 43_000


@given(context=st.integers(200_000, 2_000_000))
def test_the_trigger_does_not_depend_on_the_window(context: int) -> None:
    assert tuned(replace(OPUS, context_length=context)).trigger == tuned().trigger


@given(read=st.floats(0.01, 0.5), more=st.floats(0.01, 0.5), growth=st.integers(200, 20_000))
def test_dearer_reads_and_a_dearer_pace_bring_compactions_closer(
    read: float, more: float, growth: int
) -> None:
    cheap, dear = (tuned(priced(at, 1.25, 5), growth=growth).ways[0] for at in (read, read + more))
    assert (dear.calls or 0) < (cheap.calls or 0)
    faster = tuned(priced(read, 1.25, 5), growth=growth * 2).ways[0]
    assert (faster.calls or 0) < (cheap.calls or 0)


CLIFF = Cliff(above=60_000, prices=sold(0.2, 2.5, 7.5))


@pytest.mark.parametrize(
    ("model", "ceiling", "by", "at"),
    [
        (replace(OPUS, cliffs=(CLIFF,)), None, "cliff", 60_001),
        (replace(OPUS, context_length=80_000), None, "wall", 64_000),
        (OPUS, 70_000, "ceiling", 70_000),
    ],
    ids=["cliff", "wall", "ceiling"],
)
def test_a_size_that_comes_first_takes_the_place_of_the_trigger(
    model: Model, ceiling: int | None, by: str, at: int
) -> None:
    tuning = tuned(model, ceiling=ceiling)
    assert (tuning.trigger_by, tuning.forced_by, tuning.trigger) == (by, by, at)
    assert tuning.calls == (at - 43_000) / 2_000


def test_limits_are_those_of_the_priced_policy() -> None:
    limits = limits_of(replace(OPUS, cliffs=(CLIFF,)), growth=1_000)
    assert (limits.threshold, limits.cliff, limits.wall) == (60_001, 60_001, 984_000)
    assert (limits.runway, limits.target) == (30_000, 30_001)


def test_amounts_are_bills() -> None:
    of = tuned(replace(OPUS, cliffs=(replace(CLIFF, above=200_000),))).amounts
    assert of.rent == 10_000 * 400_000 // 1_000
    assert of.cold_saves == 10_000 * 5_000_000 // 1_000
    trigger = tuned().trigger
    assert of.warm_call == ((trigger - 2_000) * 400_000 + 2_000 * 5_000_000) // 1_000
    assert of.cold_call == trigger * 5_000_000 // 1_000
    # the 2,000 new tokens are written and 198,001 are read, at twice the prices from 200,001 on
    assert of.over_cliff == (198_001 * 400_000 + 2_000 * 5_000_000) // 1_000


def test_before_a_cold_call_a_compaction_saves_the_write_of_what_it_removes() -> None:
    tuning = tuned()
    # the summary reads what it replaces and is written out; the next call is smaller by what was removed
    tokens = (3_000 + tuning.runway + 400) + 5 * 3_000 - 1.25 * tuning.runway
    assert tuning.amounts.cold_compaction == pytest.approx(tokens * INPUT / 1_000, abs=1)
    assert tuning.amounts.cold_compaction < tuning.amounts.compaction


def test_another_model_is_compared_and_chosen_only_if_asked_for_and_cheaper() -> None:
    cheap = replace(
        OPUS, name="cheap", prices=Prices(input=100_000, cache_read=0, cache_write=0, output=500_000)
    )
    dear = replace(cheap, name="dear", prices=replace(sold(0.1, 1, 5), input=INPUT * 3))
    assert [way.by for way in tuned(other=cheap).ways] == ["warm", "cold", "other"]
    assert tuned(other=cheap).trigger == tuned().trigger
    chosen = tuned(other=cheap, prefer_other=True)
    assert (chosen.ways[0].by, chosen.other) == ("other", "cheap")
    assert chosen.trigger < tuned().trigger
    other = chosen.way("other")
    # 1.15 x 23,000 are written again; 1/40 of the input price for 120,400 tokens, 1/8 for the summary's
    assert other is not None
    assert other.break_even == pytest.approx((26_450 + 120_400 / 40 + 3_000 / 8) / (0.1 * 117_000))
    assert tuned(other=dear, prefer_other=True).ways[0].by == "warm"


def test_unknown_prices_are_assumed_and_give_no_dollars() -> None:
    unknown = replace(OPUS, prices=None)
    tuning = tuned(unknown, other=OPUS)
    assert (tuning.currency, tuning.prices, tuning.other) == ("tokens", None, None)
    assert tuning.ratios == tuned(priced(0.1, 1.25, 5)).ratios
    assert tuning.amounts.rent == 1_000 * 1_000_000 // 1_000  # as if a million tokens cost a dollar
    plain = replace(unknown, cache=CacheRules(matching=SteppedPrefixes()))
    assert tuned(plain).ratios.write == 1.0


def test_without_a_cache_every_token_is_plain_input() -> None:
    tuning = tuned(replace(OPUS, cache=CacheRules(matching=Uncached())))
    assert (tuning.ratios.read, tuning.ratios.write) == (1.0, 1.0)
    assert tuning.ways[0].break_even == tuning.ways[1].break_even
    assert tuning.prune.break_even == 0.0


def test_reads_that_cost_nothing_leave_only_the_size_to_force_a_compaction() -> None:
    tuning = tuned(priced(0.0, 1.25, 5))
    assert (tuning.ways[0].break_even, tuning.ways[0].calls, tuning.prune.break_even) == (None, None, None)
    assert (tuning.trigger, tuning.trigger_by) == (984_000, "wall")


def test_prices_are_those_of_the_moment() -> None:
    later = replace(OPUS, periods=(Period(since=1_000.0, prices=sold(0.05, 1.25, 5)),))
    assert tuned(later, at=999.0).ratios.read == 0.1
    assert tuned(later, at=1_000.0).ratios.read == 0.05
    assert tuned(later).ratios.read == 0.1


def test_the_long_lifetime_pays_from_a_share_of_pauses_on() -> None:
    tuning = tuned()
    sold_ = tuning.lifetimes
    prompt = (43_000 + tuning.trigger) // 2
    within, between = 0.75 * 2_000, 1.15 * (prompt - 2_000) - 0.75 * 2_000
    assert (sold_.short, sold_.long) == (300, 3_600)
    assert sold_.within_costs == pytest.approx(within * INPUT / 1_000)
    assert sold_.between_saves == pytest.approx(between * INPUT / 1_000)
    assert sold_.beyond_costs == pytest.approx(0.75 * prompt * INPUT / 1_000)
    assert sold_.least_share == pytest.approx(within / (within + between))


def test_a_lifetime_without_a_price_of_its_own_is_not_weighed() -> None:
    only = tuned(priced(0.1, 1.0, 5)).lifetimes
    assert (only.short, only.long, only.least_share, only.within_costs) == (300, 3_600, None, None)


def test_a_session_that_cannot_fit_is_refused_with_its_numbers() -> None:
    with pytest.raises(BadInput, match=r"43,000 tokens, and opus must be kept below 40,000"):
        tuned(ceiling=40_000)


def test_every_listed_model_has_a_tuning() -> None:
    for model in load_registry().models:
        tuning = tuning_of(model, growth=2_000, preamble=20_000, tail=20_000, summary=3_000)
        assert 43_000 < tuning.trigger <= tuning.limits.threshold, model.name
        assert tuning.currency == "usd"
