"""No compaction right after one in vain; and then one again (Hermes' anti-thrash never recovers)."""

import pytest
from msgspec.structs import replace

from lowwater.core.decisions import Compact, DecisionContext, Keep, Past
from lowwater.core.policies.safety_rules import after_compaction, decide
from lowwater.settings import Settings
from lowwater.testing.decision_contexts import NOON, example_context, offer

SETTINGS = Settings()
SUMMARY = offer("summarize", 5_000)


def stuck(prompt: int = 72_000, *, at: float = NOON, tries: int = 1, removes: int = 5_000) -> DecisionContext:
    """Return a session whose last compaction ended at 70,000 tokens, above the threshold of 64,000."""
    past = Past(fruitless=tries, floor=70_000, fruitless_at=NOON)
    return example_context(prompt, offer("summarize", removes), past=past, at=at)


def test_after_a_compaction_in_vain_the_next_is_held_back() -> None:
    decision = decide(stuck(), SETTINGS)
    assert isinstance(decision, Keep)
    assert decision.because.code == "irreducible"
    assert decision.because.facts == {
        "prompt": 72_000,
        "tries": 1,
        "floor": 70_000,
        "retry_at": 79_600,
        "fresh": 5_000,
        "needed": 6_400,
        "seconds": 600,
    }


@pytest.mark.parametrize(
    ("now", "compacts"),
    [
        (stuck(79_599), False),
        (stuck(79_600), True),
        (stuck(removes=6_399), False),
        (stuck(removes=6_400), True),
        (stuck(at=NOON + 599), False),
        (stuck(at=NOON + 600), True),
        (stuck(at=NOON + 1_199, tries=2), False),
        (stuck(at=NOON + 3_600, tries=500), True),
    ],
    ids=[
        "not yet grown",
        "grown by a runway",
        "not enough that is new",
        "enough that is new",
        "not yet time",
        "in time",
        "twice in vain waits twice as long",
        "never longer than an hour",
    ],
)
def test_it_recovers_by_growth_by_new_offers_and_by_time(now: DecisionContext, compacts: bool) -> None:
    assert isinstance(decide(now, SETTINGS), Compact) is compacts


def test_what_was_promised_before_and_not_delivered_is_nothing_new() -> None:
    now = example_context(70_000, offer("summarize", 50_000))
    decision = decide(now, SETTINGS)
    assert isinstance(decision, Compact)
    given_up = after_compaction(now, decision, prompt=None)
    assert given_up.undelivered == 50_000
    assert isinstance(
        decide(example_context(72_000, offer("summarize", 52_000), past=given_up), SETTINGS), Keep
    )
    more = example_context(72_000, offer("summarize", 56_400), past=given_up)
    assert isinstance(decide(more, SETTINGS), Compact)


def test_a_clock_that_was_set_back_does_not_hold_it_up() -> None:
    assert isinstance(decide(stuck(at=NOON - 5), SETTINGS), Compact)


def test_a_time_that_is_not_known_leaves_growth() -> None:
    past = Past(fruitless=1, floor=70_000)
    assert isinstance(decide(example_context(72_000, SUMMARY, past=past), SETTINGS), Keep)
    assert isinstance(decide(example_context(79_600, SUMMARY, past=past), SETTINGS), Compact)


def test_what_is_below_the_threshold_says_so_rather() -> None:
    assert decide(stuck(60_000), SETTINGS).because.code == "below-threshold"


def test_what_the_policy_would_not_take_is_nothing_new() -> None:
    """Tool output that `threshold` never prunes must not make it summarise again and again."""
    now = example_context(72_000, SUMMARY, offer("elide", 30_000), past=stuck().past)
    assert isinstance(decide(now, SETTINGS, policy="threshold"), Keep)
    assert isinstance(decide(now, SETTINGS, policy="runway"), Compact)


def test_a_prune_in_vain_while_the_summarizer_cools_down_is_not_repeated() -> None:
    cooling = Past(failures=1, failed_at=NOON)
    now = example_context(70_000, offer("elide", 8_000), offer("summarize", 50_000), past=cooling)
    decision = decide(now, SETTINGS)
    assert isinstance(decision, Compact)
    given_up = after_compaction(now, decision, prompt=None)
    again = decide(replace(now, past=given_up), SETTINGS)
    assert again.because.code == "irreducible"
