"""Specification E: the cache-aware guards before a leaf pass."""

import logging
from typing import Any

import pytest

from lowwater.core.decisions import Compact, Decision
from lowwater.core.policies.explanations import explain
from lowwater.core.policies.safety_rules import decide
from lowwater.errors import BadInput
from lowwater.settings import LeafSettings, Settings
from lowwater.testing.decision_contexts import NOON, example_context, offer
from lowwater.testing.views import Script

OFFERS = (offer("leaf", 17_600), offer("condense", 4_000))


def decided(assembled: int, raw: int, budget: int | None, *offers: Any, **leaf: Any) -> Decision:
    """Return what `guarded` does; a budget of None is a window nobody knows."""
    now = example_context(
        assembled,
        *(offers or OFFERS),
        context=budget or 2_000_000,
        outside_tail=raw,
        has_budget=budget is not None,
    )
    return decide(now, Settings(leaf=LeafSettings(**leaf)), policy="guarded")


# The worked examples


def test_e_chunk_15k_budget_200k_assembled_40k_raw_18k_is_skipped_for_headroom() -> None:
    decision = decided(40_000, 18_000, 200_000, leaf_chunk_tokens=15_000)
    assert decision.because.code == "budget-headroom"
    assert "The prompt of 40,000 tokens is below 120,000" in explain(decision)


def test_e_chunk_20k_assembled_548k_raw_24k_without_budget_is_skipped_for_the_cache() -> None:
    decision = decided(548_000, 24_000, None)
    assert decision.because.code == "cache-aware"
    assert "would remove 17,600 of 548,000 tokens, less than the 27,400" in explain(decision)


def test_e_the_same_with_a_750k_budget_is_compacted() -> None:
    decision = decided(548_000, 24_000, 750_000)
    assert isinstance(decision, Compact)
    assert "The prompt of 548,000 tokens has reached 450,000" in explain(decision)


def test_e_the_same_40k_with_a_16k_budget_is_compacted() -> None:
    assert isinstance(decided(40_000, 18_000, 16_000, leaf_chunk_tokens=15_000), Compact)
    small = decided(9_600, 15_000, 16_000, leaf_chunk_tokens=15_000)
    assert small.because.facts["ceiling"] == 9_600
    assert isinstance(small, Compact)


def test_e_one_engine_serves_an_orchestrator_and_its_sub_agents(opened, loop) -> None:
    settings = Settings(leaf=LeafSettings(leaf_chunk_tokens=4_000))
    codes = {}
    for name, window in (("orchestrator", 200_000), ("sub-agent", 44_000)):
        session = opened(loop(52), policy="guarded", window=window, settings=settings)
        session.prepare()
        codes[name] = session.status().decision.because.code
    assert codes == {"orchestrator": "budget-headroom", "sub-agent": "leaf-pressure"}


# The guards, in order


@pytest.mark.parametrize(("raw", "code"), [(19_999, "too-little-raw"), (20_000, "leaf-pressure")])
def test_e1_too_little_raw_outside_the_tail_is_skipped_first(raw: int, code: str) -> None:
    assert decided(140_000, raw, 200_000).because.code == code


def test_e1_an_empty_session_is_skipped_too(opened) -> None:
    empty = example_context(0, outside_tail=0, messages=0, at=NOON)
    assert decide(empty, Settings(), policy="guarded").because.code == "too-little-raw"
    session = opened(Script().user("Hello."), policy="guarded")
    session.prepare()
    assert session.status().decision.because.code == "too-little-raw"


@pytest.mark.parametrize(
    ("factor", "share", "assembled", "code"),
    [
        (0.8, 0.75, 119_999, "budget-headroom"),
        (0.8, 0.75, 120_000, "leaf-pressure"),
        (0.5, 0.75, 74_999, "budget-headroom"),
        (0.5, 0.75, 75_000, "leaf-pressure"),
        (0.8, 0.5, 79_999, "budget-headroom"),
        (0.8, 0.5, 80_000, "leaf-pressure"),
    ],
)
def test_e2_headroom_is_factor_times_context_threshold_times_budget(factor, share, assembled, code) -> None:
    leaf = {"leaf_budget_headroom_factor": factor, "context_threshold": share}
    because = decided(assembled, 30_000, 200_000, **leaf).because
    assert (because.code, because.facts["pressure"]) == (code, "yes" if code == "leaf-pressure" else "no")


@pytest.mark.parametrize(
    ("assembled", "leaf", "code"),
    [
        (352_000, {}, "leaf-due"),
        (352_001, {}, "cache-aware"),
        (176_000, {"leaf_skip_reduction_threshold": 0.1}, "leaf-due"),
        (176_001, {"leaf_skip_reduction_threshold": 0.1}, "cache-aware"),
        (150_000, {"leaf_target_tokens": 12_500}, "leaf-due"),
        (150_001, {"leaf_target_tokens": 12_500}, "cache-aware"),
        (1_000, {"leaf_target_tokens": 50_000}, "cache-aware"),
    ],
)
def test_e3_cache_aware_skip_when_the_reduction_is_too_small(assembled, leaf, code) -> None:
    assert decided(assembled, 90_000, None, **leaf).because.code == code


def test_e4_at_the_ceiling_it_compacts_whatever_the_cache_says() -> None:
    decision = decided(450_000, 20_000, 750_000)
    assert decision.because.facts["reduction"] == 17_600, "less than 5 %"
    assert isinstance(decision, Compact)


def test_e4_past_all_guards_it_compacts() -> None:
    decision = decided(100_000, 20_000, None)
    assert (type(decision), decision.because.code) == (Compact, "leaf-due")


@pytest.mark.parametrize(
    ("assembled", "raw", "budget", "compared"),
    [
        (9_000, 5, 200_000, {"raw": 5, "chunk": 20_000}),
        (40_000, 30_000, 200_000, {"ceiling": 120_000}),
        (548_000, 24_000, None, {"reduction": 17_600, "least_reduction": 27_400}),
        (548_000, 24_000, 750_000, {"ceiling": 450_000, "reduction": 17_600}),
        (100_000, 24_000, None, {"reduction": 17_600, "least_reduction": 5_000}),
    ],
    ids=["raw", "headroom", "cache", "pressure", "due"],
)
def test_e_each_guard_says_what_it_compared_with_numbers(assembled, raw, budget, compared) -> None:
    facts = decided(assembled, raw, budget).because.facts
    assert facts.items() >= compared.items()
    assert facts["assembled"] == assembled


@pytest.mark.parametrize(("steps", "code"), [(2, "too-little-raw"), (60, "budget-headroom")])
def test_e_every_skip_is_recorded_and_logged_with_reason_size_and_pressure(
    opened, loop, sink, caplog, steps, code
) -> None:
    settings = Settings(leaf=LeafSettings(leaf_chunk_tokens=4_000))
    session = opened(loop(steps), policy="guarded", settings=settings)
    with caplog.at_level(logging.DEBUG, "lowwater"):
        request = session.prepare()
    (skip,) = sink.skips
    assert (skip.because.code, skip.prompt) == (code, request.tokens)
    for said in (code, f"assembled {request.tokens}", "pressure no"):
        assert said in caplog.text


# Budget and factors


def test_e_a_missing_budget_disables_headroom_and_pressure() -> None:
    below, above = decided(40_000, 24_000, None), decided(1_900_000, 24_000, None)
    assert (below.because.code, above.because.code) == ("leaf-due", "cache-aware")
    assert below.because.facts["pressure"] == "unknown"


@pytest.mark.parametrize("assembled", [140_000, 140_001])
def test_e_a_headroom_factor_of_0_makes_no_false_pressure(assembled: int) -> None:
    leaf = {"leaf_budget_headroom_factor": 0.0, "leaf_skip_reduction_threshold": 0.2}
    assert decided(assembled, 24_000, 200_000, **leaf).because.code == "cache-aware"


def test_e_a_reduction_threshold_of_0_switches_the_cache_guard_off() -> None:
    off = {"leaf_skip_reduction_threshold": 0.0}
    assert decided(1_500_000, 20_000, None, **off).because.code == "leaf-due"
    assert decided(100_000, 20_000, 200_000, **off).because.code == "budget-headroom"


@pytest.mark.parametrize(
    ("assembled", "raw", "code"),
    [(1_000, 20_000, "leaf-due"), (149_000, 20_000, "leaf-due"), (149_000, 19_999, "too-little-raw")],
)
def test_e_both_at_0_is_the_plain_trigger(assembled: int, raw: int, code: str) -> None:
    off = {"leaf_skip_reduction_threshold": 0.0, "leaf_budget_headroom_factor": 0.0}
    assert decided(assembled, raw, 200_000, **off).because.code == code


def test_e_a_budget_that_is_not_positive_is_none(opened) -> None:
    for nonsense in (0, -1):
        with pytest.raises(BadInput, match="makes no sense"):
            opened(policy="guarded", window=nonsense)


# The effective size


def test_e_a_live_count_above_the_stored_one_is_what_counts(opened, loop, reported) -> None:
    settings = Settings(leaf=LeafSettings(leaf_chunk_tokens=4_000))
    session = opened(loop(40), policy="guarded", settings=settings)
    reported(session, 90_000)
    session.prepare()
    assert session.status().decision.because.facts["assembled"] == 90_000
    assert session.status().decision.because.code == "leaf-pressure"


def test_e_in_the_full_sweep_too(opened, loop, reported) -> None:
    session = opened(loop(40), policy="guarded")
    reported(session, 96_001)
    session.prepare()
    assert (
        session.status().decision.because.code,
        session.status().decision.because.facts["assembled"],
    ) == (
        "full-sweep",
        96_001,
    )


def test_e_a_stored_count_above_the_live_one_is_what_counts(opened, loop, reported) -> None:
    session = opened(loop(72, lines=90), policy="guarded")
    stored = session.status().prompt
    assert stored > 76_800
    reported(session, 60_000)
    session.prepare()
    assert session.status().decision.because.facts["assembled"] >= stored


@pytest.mark.parametrize("live", [float("nan"), float("inf")])
def test_e_a_live_count_that_is_not_finite_is_ignored(opened, live) -> None:
    session = opened(Script().user("Hello."), policy="guarded")
    before = session.status().prompt
    session.prepare()
    answer = {"choices": [{"message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]}
    session.record({**answer, "usage": {"prompt_tokens": live, "completion_tokens": 1}})
    assert before < session.status().prompt < before + 20
