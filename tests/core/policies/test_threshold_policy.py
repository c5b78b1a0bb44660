"""The threshold in the loop, and the policy `threshold` (specification A, D)."""

import pytest

from lowwater.core.decisions import Compact, Keep
from lowwater.core.limits import derive_limits
from lowwater.core.policies.at_threshold import should_compress, threshold
from lowwater.core.policies.safety_rules import decide
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.decision_contexts import example_context, offer

SETTINGS = Settings()
LIMITS = derive_limits(200_000, SETTINGS.compression)


@pytest.mark.parametrize(("tokens", "due"), [(0, False), (99_999, False), (100_000, True), (100_001, True)])
def test_a_should_compress_is_true_at_the_threshold(tokens: int, due: bool) -> None:
    assert should_compress(tokens, LIMITS) is due


def test_a_zero_is_a_count_and_not_unknown() -> None:
    assert should_compress(0, LIMITS, known=150_000) is False
    assert should_compress(None, LIMITS, known=150_000) is True
    assert should_compress(None, LIMITS) is False


def test_a_the_loop_fires_at_half_the_context_length() -> None:
    summary = offer("summarize", 80_000)
    below = threshold(example_context(99_999, summary, context=200_000), SETTINGS)
    assert isinstance(below, Keep)
    assert below.because.code == "below-threshold"
    assert below.because.facts == {"prompt": 99_999, "threshold": 100_000}
    at = threshold(example_context(100_000, summary, context=200_000), SETTINGS)
    assert isinstance(at, Compact)
    assert at.because.facts["expected"] == 20_000


def test_a_the_threshold_is_configurable() -> None:
    compression = CompressionSettings(threshold=0.7, policy="threshold")
    now = example_context(139_999, offer("summarize", 90_000), context=200_000, compression=compression)
    assert isinstance(decide(now, Settings(compression=compression)), Keep)
    now = example_context(140_000, offer("summarize", 90_000), context=200_000, compression=compression)
    assert isinstance(decide(now, Settings(compression=compression)), Compact)


def test_d_without_pruning_there_is_a_summary_only() -> None:
    offers = (offer("elide", 30_000), offer("dedupe", 9_000), offer("summarize", 50_000))
    decision = decide(example_context(70_000, *offers), SETTINGS, policy="threshold")
    assert isinstance(decision, Compact)
    assert [proposal.mechanism for proposal in decision.proposals] == ["summarize"]
    assert decision.because.code == "summary-due"


def test_without_an_offer_the_threshold_alone_compacts_nothing() -> None:
    decision = threshold(example_context(70_000, offer("elide", 30_000)), SETTINGS)
    assert isinstance(decision, Keep)
    assert decision.because.code == "nothing-offered"
    assert decision.because.facts == {"prompt": 70_000, "limit": "threshold", "trigger": 64_000}
