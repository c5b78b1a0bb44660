"""The gateway's safety net (specification A)."""

from lowwater.core.decisions import Compact, Keep
from lowwater.core.policies.hygiene import hygiene
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.decision_contexts import example_context, offer

SETTINGS = Settings()
OFFERS = (offer("elide", 60_000), offer("summarize", 120_000))


def test_a_hygiene_fires_at_85_percent_of_the_context_length() -> None:
    below = hygiene(example_context(169_999, *OFFERS, context=200_000), SETTINGS)
    assert isinstance(below, Keep)
    assert below.because.facts == {"prompt": 169_999, "hygiene": 170_000}
    assert isinstance(hygiene(example_context(170_000, *OFFERS, context=200_000), SETTINGS), Compact)


def test_a_hygiene_is_fixed_whatever_the_threshold() -> None:
    high = CompressionSettings(threshold=1.0)
    decision = hygiene(example_context(169_999, *OFFERS, context=200_000, compression=high), SETTINGS)
    assert decision.because.code == "below-hygiene"


def test_a_hygiene_fires_at_the_wall_where_that_is_lower() -> None:
    """64,000 tokens less a quarter for the answer are 48,000; 85 % would be 54,400."""
    assert isinstance(hygiene(example_context(48_000, *OFFERS, context=64_000), SETTINGS), Compact)
    assert isinstance(hygiene(example_context(47_999, *OFFERS, context=64_000), SETTINGS), Keep)


def test_a_hygiene_only_with_four_messages() -> None:
    three = hygiene(example_context(180_000, *OFFERS, context=200_000, messages=3), SETTINGS)
    assert isinstance(three, Keep)
    assert three.because.code == "too-few-messages"
    assert (three.because.facts["messages"], three.because.facts["least"]) == (3, 4)
    assert isinstance(
        hygiene(example_context(180_000, *OFFERS, context=200_000, messages=4), SETTINGS), Compact
    )


def test_hygiene_brings_an_overnight_conversation_down_to_the_loops_target() -> None:
    decision = hygiene(example_context(180_000, *OFFERS, context=200_000), SETTINGS)
    assert isinstance(decision, Compact)
    assert [proposal.mechanism for proposal in decision.proposals] == ["elide", "summarize"]
    assert (decision.enough, decision.below) == (85_000, 170_000)
