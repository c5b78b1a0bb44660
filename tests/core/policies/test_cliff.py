"""At a cliff the whole request costs more: what can be brought below it is (docs/specification.md: A)."""

import pytest

from lowwater.core.decisions import Compact, Decision, DecisionContext
from lowwater.core.policies.registry import POLICIES
from lowwater.core.policies.safety_rules import decide, final_without_proposals
from lowwater.settings import Settings
from lowwater.testing.decision_contexts import example_context, offer

CLIFF = 200_001
AVOIDING = [policy.name for policy in POLICIES if policy.avoids_cliffs]


def at(prompt: int, removes: int = 90_000) -> DecisionContext:
    return example_context(prompt, offer("elide", removes), context=1_000_000, cliff=CLIFF)


def decided(now: DecisionContext, policy: str = "runway") -> Decision:
    return decide(now, Settings(), policy=policy)


@pytest.mark.parametrize("policy", AVOIDING)
def test_every_policy_with_a_fixed_trigger_stays_below_a_cliff(policy: str) -> None:
    decision = decided(at(CLIFF), policy)
    assert isinstance(decision, Compact)
    assert decision.because.code == "cliff"
    assert decision.because.facts == {"prompt": CLIFF, "cliff": CLIFF, "expected": CLIFF - 90_000}


def test_below_the_cliff_and_under_never_it_is_no_reason() -> None:
    assert decided(at(CLIFF - 1)).because.code != "cliff"
    assert decided(at(CLIFF), "never").because.code == "policy-never"


def test_a_policy_that_compares_prices_finds_the_cliff_in_them() -> None:
    """What the whole request costs more is part of the price of the next call, and so of every plan."""
    assert "rent-or-buy" not in AVOIDING
    assert decided(at(CLIFF), "rent-or-buy").because.code != "cliff"


def test_where_edits_are_enough_no_summary_follows() -> None:
    now = example_context(
        CLIFF, offer("elide", 90_000), offer("summarize", 150_000), context=1_000_000, cliff=CLIFF
    )
    decision = decided(now)
    assert isinstance(decision, Compact)
    assert [step.mechanism for step in decision.proposals] == ["elide"]


def test_what_would_stay_above_the_cliff_is_left_to_the_policy() -> None:
    assert decided(at(CLIFF + 90_000)).because.code != "cliff"


def test_above_a_cliff_the_mechanisms_are_always_asked() -> None:
    below, above = at(CLIFF - 1), at(CLIFF)
    keep = decided(below, "never")
    assert final_without_proposals(keep, below)
    assert not final_without_proposals(keep, above)
