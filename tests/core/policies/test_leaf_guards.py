"""The guards before a leaf pass, in order, to the token (specification E)."""

import pytest

from lowwater.core.policies.guarded import LeafVerdict, guard_leaf
from lowwater.settings import LeafSettings
from lowwater.settings.resolve import SettingSource, resolve

PLAIN = LeafSettings()


def verdict(raw: int, assembled: int, budget: int | None, **leaf: float) -> LeafVerdict:
    return guard_leaf(raw=raw, assembled=assembled, budget=budget, leaf=LeafSettings(**leaf))  # type: ignore[arg-type]


def test_e_example_40k_of_a_200k_budget_is_skipped_for_headroom() -> None:
    found = verdict(18_000, 40_000, 200_000, leaf_chunk_tokens=15_000)
    assert found.outcome == "budget-headroom"
    assert (found.assembled, found.ceiling) == (40_000, 120_000)


def test_e_example_548k_without_a_budget_is_skipped_for_the_cache() -> None:
    found = verdict(24_000, 548_000, None)
    assert found.outcome == "cache-aware"
    assert (found.reduction, found.least_reduction, found.pressure) == (17_600, 27_400, "unknown")


def test_e_example_548k_of_a_750k_budget_is_compacted() -> None:
    found = verdict(24_000, 548_000, 750_000)
    assert found.outcome == "leaf-pressure"
    assert (found.assembled, found.ceiling, found.pressure) == (548_000, 450_000, "yes")


def test_e_example_the_same_40k_of_a_16k_budget_is_compacted() -> None:
    """One engine serves an orchestrator and its sub-agents."""
    found = verdict(18_000, 40_000, 16_000, leaf_chunk_tokens=15_000)
    assert found.outcome == "leaf-pressure"
    assert found.ceiling == 9_600


@pytest.mark.parametrize(
    ("raw", "assembled", "budget"),
    [(0, 0, 200_000), (0, 0, None), (19_999, 190_000, 200_000)],
    ids=["empty session", "empty session without budget", "one token short, under pressure"],
)
def test_e_guard_1_too_little_raw_comes_first(raw: int, assembled: int, budget: int | None) -> None:
    assert verdict(raw, assembled, budget).outcome == "too-little-raw"


@pytest.mark.parametrize(("assembled", "outcome"), [(119_999, "budget-headroom"), (120_000, "leaf-pressure")])
def test_e_guards_2_and_4_meet_at_the_ceiling_to_the_token(assembled: int, outcome: str) -> None:
    assert verdict(20_000, assembled, 200_000).outcome == outcome


@pytest.mark.parametrize(
    ("assembled", "outcome"),
    [(352_000, "leaf-due"), (352_001, "cache-aware")],
    ids=["17,600 is 5 %", "and now it is less"],
)
def test_e_guard_3_compares_the_reduction_to_the_token(assembled: int, outcome: str) -> None:
    assert verdict(20_000, assembled, None).outcome == outcome


def test_e_the_reduction_takes_one_chunk_and_is_never_negative() -> None:
    assert verdict(90_000, 100_000, None).reduction == 17_600
    assert verdict(20_000, 100_000, None, leaf_target_tokens=30_000).reduction == 0


def test_e_pressure_overrules_the_cache() -> None:
    found = verdict(20_000, 500_000, 800_000)
    assert found.reduction < found.least_reduction
    assert found.compacts


@pytest.mark.parametrize("budget", [None, 0, -1])
def test_e_a_missing_or_non_positive_budget_disables_headroom_and_pressure(budget: int | None) -> None:
    found = verdict(24_000, 40_000, budget)
    assert (found.outcome, found.ceiling, found.pressure) == ("leaf-due", None, "unknown")


def test_e_the_headroom_factor_at_0_makes_no_false_pressure() -> None:
    assert verdict(24_000, 40_000, 200_000, leaf_budget_headroom_factor=0).outcome == "leaf-due"
    assert verdict(24_000, 548_000, 750_000, leaf_budget_headroom_factor=0).outcome == "cache-aware"


def test_e_the_context_threshold_at_0_makes_no_false_pressure() -> None:
    assert verdict(24_000, 548_000, 750_000, context_threshold=0).outcome == "cache-aware"


def test_e_the_reduction_threshold_at_0_switches_the_cache_guard_off() -> None:
    assert verdict(24_000, 548_000, None, leaf_skip_reduction_threshold=0).outcome == "leaf-due"
    assert verdict(24_000, 40_000, 200_000, leaf_skip_reduction_threshold=0).outcome == "budget-headroom", (
        "the other guard stays on"
    )


@pytest.mark.parametrize(("raw", "outcome"), [(19_999, "too-little-raw"), (20_000, "leaf-due")])
def test_e_both_factors_at_0_are_the_plain_trigger(raw: int, outcome: str) -> None:
    off = {"leaf_budget_headroom_factor": 0, "leaf_skip_reduction_threshold": 0}
    assert verdict(raw, 900_000, 1_000_000, **off).outcome == outcome


def test_e_factors_are_clamped_to_0_and_1() -> None:
    raw = {"leaf_budget_headroom_factor": 7, "leaf_skip_reduction_threshold": -1}
    leaf = resolve([SettingSource(name="file", values=raw)]).settings.leaf
    found = guard_leaf(raw=24_000, assembled=140_000, budget=200_000, leaf=leaf)
    assert (found.ceiling, found.least_reduction) == (150_000, 0)


@pytest.mark.parametrize(
    ("raw", "assembled", "budget"),
    [(5, 9_000, 200_000), (24_000, 40_000, 200_000), (24_000, 548_000, None), (24_000, 548_000, 750_000)],
)
def test_e_every_verdict_has_its_size_and_pressure_for_the_log(
    raw: int, assembled: int, budget: int | None
) -> None:
    facts = verdict(raw, assembled, budget).because().facts
    assert facts["assembled"] == assembled
    assert facts["pressure"] in {"yes", "no", "unknown"}
    assert facts["raw"] == raw


def test_e_at_the_ceiling_there_is_pressure() -> None:
    assert verdict(20_000, 120_000, 200_000).pressure == "yes"
    assert verdict(20_000, 119_999, 200_000).pressure == "no"
