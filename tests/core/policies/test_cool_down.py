"""After the summarizer failed (specification C): a pause that grows, ends by itself, and leaves edits alone."""

import pytest

from lowwater.core.decisions import Compact, Keep, Past
from lowwater.core.policies.safety_rules import (
    COOL_DOWN,
    after_failure,
    after_summary,
    cool_down_left,
    decide,
)
from lowwater.settings import Settings
from lowwater.testing.decision_contexts import NOON, example_context, offer

SETTINGS = Settings()
SUMMARY = offer("summarize", 50_000)


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 60), (2, 120), (3, 240), (6, 1_920), (7, 3_600), (1_000_000, 3_600)],
)
def test_the_pause_doubles_with_every_failure_up_to_an_hour(failures: int, seconds: int) -> None:
    assert COOL_DOWN.seconds(failures) == seconds
    assert cool_down_left(Past(failures=failures, failed_at=NOON), NOON) == seconds


def test_it_recovers_by_time() -> None:
    past = Past(failures=1, failed_at=NOON)
    waiting = decide(example_context(70_000, SUMMARY, past=past, at=NOON + 59.5), SETTINGS)
    assert isinstance(waiting, Keep)
    assert waiting.because.code == "cooling-down"
    assert waiting.because.facts == {
        "prompt": 70_000,
        "failures": 1,
        "seconds": 1,
        "reclaims": 0,
        "minimum": 6_400,
    }
    assert isinstance(decide(example_context(70_000, SUMMARY, past=past, at=NOON + 60), SETTINGS), Compact)


def test_it_ends_with_the_first_success() -> None:
    failed = after_failure(after_failure(Past(), at=NOON - 5), at=NOON)
    assert (failed.failures, failed.failed_at) == (2, NOON)
    assert cool_down_left(failed, NOON + 1) == 119
    assert cool_down_left(after_summary(failed), NOON + 1) == 0


@pytest.mark.parametrize("at", [NOON - 1, NOON - 10**9, float("nan"), float("inf")])
def test_a_clock_that_was_set_back_does_not_prolong_it(at: float) -> None:
    assert cool_down_left(Past(failures=3, failed_at=NOON), at) == 0


def test_edits_go_on_while_it_lasts() -> None:
    now = example_context(70_000, offer("elide", 8_000), SUMMARY, past=Past(failures=1, failed_at=NOON))
    decision = decide(now, SETTINGS)
    assert isinstance(decision, Compact)
    assert [proposal.mechanism for proposal in decision.proposals] == ["elide"]
    assert decision.because.code == "cooling-down-prune"
    assert decision.because.facts["expected"] == 62_000


def test_edits_too_small_to_count_are_not_dripped() -> None:
    now = example_context(70_000, offer("elide", 6_399), SUMMARY, past=Past(failures=1, failed_at=NOON))
    assert isinstance(decide(now, SETTINGS, policy="hermes-classic"), Keep)


def test_what_needs_no_model_is_decided_as_ever() -> None:
    past = Past(failures=1, failed_at=NOON)
    decision = decide(example_context(70_000, offer("elide", 20_000), past=past), SETTINGS)
    assert decision.because.code == "prune-suffices"


def test_edits_count_from_the_minimum_to_the_token() -> None:
    now = example_context(70_000, offer("elide", 6_400), SUMMARY, past=Past(failures=1, failed_at=NOON))
    assert isinstance(decide(now, SETTINGS), Compact)
