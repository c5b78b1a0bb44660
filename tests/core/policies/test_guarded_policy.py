"""The policy `guarded`: leaf pass, condensed pass, full sweep (specification E)."""

from math import nan

from lowwater.core.decisions import Compact, Decision, effective_size
from lowwater.core.messages import Span
from lowwater.core.policies.guarded import guarded
from lowwater.settings import LeafSettings, Settings
from lowwater.testing.decision_contexts import example_context, offer

SETTINGS = Settings()
LEAVES = (
    offer("leaf", 17_600, span=Span(start=4, stop=12)),
    offer("leaf", 17_600, span=Span(start=12, stop=20)),
)
CONDENSE = offer("condense", 6_000, span=Span(start=1, stop=4))


def steps(decision: Decision) -> list[str]:
    assert isinstance(decision, Compact), decision
    return [proposal.mechanism for proposal in decision.proposals]


def test_e_a_condensed_pass_comes_with_a_leaf_pass() -> None:
    now = example_context(548_000, CONDENSE, *LEAVES, context=750_000, outside_tail=60_000)
    assert steps(guarded(now, SETTINGS)) == ["leaf", "condense"]


def test_e_a_condensed_pass_comes_alone_when_no_leaf_can_be_taken() -> None:
    now = example_context(548_000, CONDENSE, context=750_000, outside_tail=60_000)
    assert steps(guarded(now, SETTINGS)) == ["condense"]


def test_e_a_full_sweep_does_both_until_it_fits() -> None:
    now = example_context(150_001, CONDENSE, *LEAVES, context=200_000, outside_tail=5_000)
    decision = guarded(now, SETTINGS)
    assert steps(decision) == ["leaf", "leaf", "condense"]
    assert isinstance(decision, Compact)
    assert decision.because.code == "full-sweep"
    assert (decision.enough, decision.below) == (120_000, 150_001)
    assert decision.because.facts["expected"] == 150_001 - 2 * 17_600 - 6_000


def test_e_a_sweep_ends_a_runway_below_its_trigger_even_without_headroom_guard() -> None:
    off = Settings(leaf=LeafSettings(leaf_budget_headroom_factor=0))
    decision = guarded(example_context(160_000, *LEAVES, context=200_000), off)
    assert isinstance(decision, Compact)
    assert decision.enough == 150_000 - 15_000


def test_e_an_unknown_budget_or_a_threshold_of_0_sweeps_nothing() -> None:
    now = example_context(190_000, *LEAVES, context=200_000, outside_tail=5_000, has_budget=False)
    assert guarded(now, SETTINGS).because.code == "too-little-raw"
    off = Settings(leaf=LeafSettings(context_threshold=0))
    now = example_context(190_000, *LEAVES, context=200_000, outside_tail=5_000)
    assert guarded(now, off).because.code == "too-little-raw"


def test_e_the_sweep_and_the_early_return_use_the_effective_size() -> None:
    grown = example_context(effective_size(90_000, 151_000), *LEAVES, context=200_000, outside_tail=5_000)
    assert guarded(grown, SETTINGS).because.code == "full-sweep"
    lying = example_context(effective_size(90_000, nan), *LEAVES, context=200_000, outside_tail=5_000)
    found = guarded(lying, SETTINGS)
    assert (found.because.code, found.because.facts["assembled"]) == ("too-little-raw", 90_000)


def test_e_a_sweep_that_nobody_offers_says_so() -> None:
    decision = guarded(example_context(160_000, context=200_000, outside_tail=5_000), SETTINGS)
    assert decision.because.code == "nothing-offered"
    assert decision.because.facts["trigger"] == 150_000
