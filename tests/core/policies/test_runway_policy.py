"""Prune first, with runway, without it, and always both (specification D)."""

import pytest

from lowwater.core.decisions import Compact, Decision
from lowwater.core.policies.at_threshold import hermes_classic, prune_naive, runway
from lowwater.settings import Settings
from lowwater.testing.decision_contexts import example_context, offer

SETTINGS = Settings()


def steps(decision: Decision) -> list[str]:
    assert isinstance(decision, Compact), decision
    return [proposal.mechanism for proposal in decision.proposals]


def test_d_a_prune_to_48000_needs_no_summary() -> None:
    now = example_context(70_000, offer("elide", 22_000), offer("summarize", 50_000))
    decision = runway(now, SETTINGS)
    assert steps(decision) == ["elide", "summarize"]
    assert isinstance(decision, Compact)
    assert decision.because.code == "prune-suffices"
    assert decision.because.facts == {
        "prompt": 70_000,
        "limit": "threshold",
        "trigger": 64_000,
        "pruned": 48_000,
        "target": 54_400,
    }
    assert now.after(decision.proposals[:1]) <= decision.enough, "the summary is skipped"


@pytest.mark.parametrize(
    ("removes", "expected"),
    [(6_400, ["dedupe", "elide", "summarize"]), (6_399, ["summarize"])],
    ids=["counts", "discarded whole"],
)
def test_d_a_prune_counts_from_the_minimum_to_the_token(removes: int, expected: list[str]) -> None:
    offers = (offer("elide", removes - 400), offer("dedupe", 400), offer("summarize", 50_000))
    assert steps(runway(example_context(70_000, *offers), SETTINGS)) == expected


def test_d_the_minimum_is_measured_in_the_models_tokens() -> None:
    now = example_context(70_000, offer("elide", 5_000), offer("summarize", 40_000), scale=1.28)
    assert steps(runway(now, SETTINGS)) == ["elide", "summarize"]


def test_d_with_nothing_to_prune_the_summary_comes_at_once() -> None:
    decision = runway(example_context(70_000, offer("summarize", 50_000)), SETTINGS)
    assert steps(decision) == ["summarize"]
    assert decision.because.facts["expected"] == 20_000


def test_an_offer_that_would_remove_nothing_is_not_taken() -> None:
    offers = (offer("dedupe", -10), offer("elide", 22_000), offer("images", 0))
    assert steps(runway(example_context(70_000, *offers), SETTINGS)) == ["elide"]


def test_d_prune_naive_is_content_with_anything_below_the_threshold() -> None:
    now = example_context(70_000, offer("elide", 8_000), offer("summarize", 50_000))
    decision = prune_naive(now, SETTINGS)
    assert isinstance(decision, Compact)
    assert decision.because.code == "prune-suffices"
    assert now.after(decision.proposals[:1]) == 62_000 <= decision.enough == 63_999


def test_hermes_classic_always_does_both() -> None:
    now = example_context(70_000, offer("elide", 100), offer("summarize", 50_000), floor=False)
    decision = hermes_classic(now, SETTINGS)
    assert steps(decision) == ["elide", "summarize"]
    assert isinstance(decision, Compact)
    assert decision.enough == 0, "nothing is skipped"
    assert (decision.because.facts["reclaims"], decision.because.facts["expected"]) == (100, 20_000)
