"""At the wall the prompt is made to fit (specification A, C2)."""

import pytest

from lowwater.core.decisions import Compact, Decision, Keep, Past
from lowwater.core.policies.registry import POLICIES
from lowwater.core.policies.safety_rules import decide
from lowwater.settings import Settings
from lowwater.testing.decision_contexts import NOON, example_context, offer

SETTINGS = Settings()
EVERY = pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])


def steps(decision: Decision) -> list[str]:
    assert isinstance(decision, Compact), decision
    return [proposal.mechanism for proposal in decision.proposals]


@EVERY
def test_every_policy_compacts_at_the_wall_with_everything_that_helps(policy: str) -> None:
    offers = (offer("dedupe", 300), offer("elide", 20_000), offer("summarize", 92_000))
    decision = decide(example_context(112_000, *offers), SETTINGS, policy=policy)
    assert steps(decision) == ["dedupe", "elide", "summarize"]
    assert decision.because.code == "wall"


def test_below_the_wall_the_policy_decides() -> None:
    now = example_context(111_999, offer("summarize", 90_000))
    assert decide(now, SETTINGS, policy="never").because.code == "policy-never"


@EVERY
def test_a_cool_down_or_earlier_failures_never_block_the_wall(policy: str) -> None:
    past = Past(fruitless=30, floor=113_000, fruitless_at=NOON, failures=30, failed_at=NOON)
    now = example_context(113_000, offer("summarize", 90_000), messages=1, past=past)
    assert steps(decide(now, SETTINGS, policy=policy)) == ["summarize"]


def test_while_the_middle_is_enough_the_tail_stays_whole() -> None:
    offers = (offer("summarize", 30_000), offer("shorten", 20_000), offer("summarize_all", 80_000))
    decision = decide(example_context(120_000, *offers), SETTINGS)
    assert steps(decision) == ["summarize"]
    assert isinstance(decision, Compact)
    assert decision.enough == 54_400


def test_outputs_in_the_tail_are_shortened_before_the_tail_is_summarised() -> None:
    offers = (offer("elide", 2_000), offer("summarize", 5_000), offer("shorten", 20_000))
    decision = decide(example_context(120_000, *offers, offer("summarize_all", 80_000)), SETTINGS)
    assert steps(decision) == ["elide", "shorten", "summarize"]
    assert decision.because.code == "wall-into-tail"


def test_the_tail_is_summarised_when_nothing_milder_fits() -> None:
    offers = (offer("elide", 2_000), offer("summarize", 5_000), offer("shorten", 4_000))
    decision = decide(example_context(120_000, *offers, offer("summarize_all", 80_000)), SETTINGS)
    assert steps(decision) == ["elide", "shorten", "summarize_all"]
    assert isinstance(decision, Compact)
    assert decision.because.facts == {
        "prompt": 120_000,
        "wall": 112_000,
        "middle": 115_000,
        "enough": 102_400,
        "expected": 40_000,
    }
    assert decision.enough == 102_400, "no more of the tail than fitting with a runway takes"


def test_if_nothing_fits_the_plan_that_gets_furthest_is_tried() -> None:
    offers = (offer("elide", 2_000), offer("summarize", 5_000), offer("shorten", 40_000))
    decision = decide(example_context(300_000, *offers, offer("summarize_all", 150_000)), SETTINGS)
    assert steps(decision) == ["elide", "shorten", "summarize_all"]


def test_what_did_not_fit_in_fact_goes_into_the_tail_next_time() -> None:
    """The estimate said that the middle was enough, and the compaction still ended above the wall."""
    offers = (offer("summarize", 30_000), offer("summarize_all", 80_000))
    past = Past(fruitless=1, floor=113_000, fruitless_at=NOON)
    assert steps(decide(example_context(113_000, *offers, past=past), SETTINGS)) == ["summarize_all"]


def test_after_a_fruitless_compaction_fitting_means_with_a_runway_to_spare() -> None:
    """Else the wall is reached again at every turn, and a model called each time."""
    offers = (offer("summarize", 2_500), offer("summarize_all", 80_000))
    first = decide(example_context(113_000, *offers), SETTINGS)
    assert steps(first) == ["summarize"]
    again = example_context(113_000, *offers, past=Past(fruitless=1, floor=111_000, fruitless_at=NOON))
    assert steps(decide(again, SETTINGS)) == ["summarize_all"]


def test_while_the_summarizer_cools_down_edits_that_fit_come_first() -> None:
    offers = (offer("elide", 20_000), offer("summarize", 80_000))
    cooling = example_context(113_000, *offers, past=Past(failures=1, failed_at=NOON))
    assert steps(decide(cooling, SETTINGS)) == ["elide"]
    too_little = example_context(
        113_000, offer("elide", 900), offers[1], past=Past(failures=1, failed_at=NOON)
    )
    assert steps(decide(too_little, SETTINGS)) == ["elide", "summarize"]
    by_hand = example_context(113_000, *offers, past=Past(failures=1, failed_at=NOON), forced=True)
    assert steps(decide(by_hand, SETTINGS)) == ["elide", "summarize"]


@pytest.mark.parametrize(
    "offers", [(), (offer("elide", 0), offer("summarize", -900))], ids=["none", "useless"]
)
def test_what_cannot_be_made_to_fit_is_said_to_be_so(offers: tuple[()]) -> None:
    decision = decide(example_context(113_000, *offers), SETTINGS)
    assert isinstance(decision, Keep)
    assert decision.because.code == "does-not-fit"
    assert decision.because.facts == {"prompt": 113_000, "wall": 112_000}


def test_a_mechanism_unknown_to_the_plans_helps_too() -> None:
    assert steps(decide(example_context(113_000, offer("native", 50_000)), SETTINGS)) == ["native"]


def test_exactly_the_wall_does_not_fit_and_one_token_less_does() -> None:
    wide = offer("summarize_all", 80_000)
    exact = example_context(113_000, offer("summarize", 1_000), wide)
    assert steps(decide(exact, SETTINGS)) == ["summarize_all"]
    less = example_context(113_000, offer("summarize", 1_001), wide)
    assert steps(decide(less, SETTINGS)) == ["summarize"]


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        (Past(fruitless=1, floor=112_000, fruitless_at=NOON), ["summarize_all"]),
        (Past(fruitless=1, floor=111_999, fruitless_at=NOON), ["summarize"]),
        (Past(fruitless=0, floor=112_000), ["summarize"]),
    ],
    ids=["ended at the wall", "ended below it", "was no failure"],
)
def test_only_what_ended_at_the_wall_is_taken_for_hopeless(past: Past, expected: list[str]) -> None:
    offers = (offer("summarize", 30_000), offer("summarize_all", 80_000))
    assert steps(decide(example_context(113_000, *offers, past=past), SETTINGS)) == expected


def test_by_hand_at_the_wall_makes_it_fit() -> None:
    offers = (offer("summarize", 500), offer("summarize_all", 80_000))
    assert steps(decide(example_context(112_000, *offers, forced=True), SETTINGS)) == ["summarize"]
    assert steps(decide(example_context(112_500, *offers, forced=True), SETTINGS)) == ["summarize_all"]
    assert steps(decide(example_context(112_000, offers[1], forced=True), SETTINGS)) == ["summarize_all"]


def test_by_hand_at_the_wall_spares_the_tail_while_the_middle_is_enough() -> None:
    offers = (offer("elide", 5_000), offer("shorten", 5_000), offer("summarize", 20_000))
    assert steps(decide(example_context(112_000, *offers, forced=True), SETTINGS)) == ["elide", "summarize"]
