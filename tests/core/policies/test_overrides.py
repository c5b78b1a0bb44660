"""What holds for every policy: off is off, by hand is by hand, and no prompt above the ceiling (specification A, docs/economics.md)."""

import pytest

from lowwater.core.decisions import Compact, Decision, Keep, Past
from lowwater.core.policies.registry import POLICIES
from lowwater.core.policies.safety_rules import decide
from lowwater.errors import BadSetting
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.decision_contexts import NOON, example_context, offer

SETTINGS = Settings()
OFFERS = (offer("elide", 30_000), offer("leaf", 17_600), offer("summarize", 60_000))
EVERY = pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])


def steps(decision: Decision) -> list[str]:
    assert isinstance(decision, Compact), decision
    return [proposal.mechanism for proposal in decision.proposals]


@EVERY
def test_a_by_hand_bypasses_guards_threshold_and_cool_down(policy: str) -> None:
    past = Past(fruitless=9, floor=9_000, fruitless_at=NOON, failures=9, failed_at=NOON)
    now = example_context(9_000, *OFFERS, messages=2, outside_tail=10, forced=True, past=past)
    decision = decide(now, SETTINGS, policy=policy)
    assert isinstance(decision, Compact)
    assert decision.because.code == "by-hand"
    assert decision.enough == 0, "no step is skipped"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("runway", ["elide", "summarize"]),
        ("threshold", ["summarize"]),
        ("guarded", ["leaf"]),
        ("never", ["elide", "summarize"]),
    ],
)
def test_by_hand_does_what_the_policy_would(policy: str, expected: list[str]) -> None:
    assert steps(decide(example_context(9_000, *OFFERS, forced=True), SETTINGS, policy=policy)) == expected


@EVERY
def test_by_hand_with_nothing_to_do_says_so(policy: str) -> None:
    decision = decide(example_context(9_000, forced=True), SETTINGS, policy=policy)
    assert decision == Keep(because=decision.because)
    assert decision.because.code == "nothing-by-hand"


@EVERY
def test_the_ceiling_holds_under_every_policy(policy: str) -> None:
    compression = CompressionSettings(max_view_tokens=40_000)
    settings = Settings(compression=compression)
    offers = (offer("elide", 8_000), offer("summarize", 25_000))
    above = decide(example_context(40_001, *offers, compression=compression), settings, policy=policy)
    assert isinstance(above, Compact)
    assert above.because.facts["limit"] == "ceiling max_view_tokens"
    assert above.because.facts["trigger"] == 40_001
    assert above.enough == 34_000, "with room to grow"


@pytest.mark.parametrize("policy", ["never", "guarded", "hygiene"])
def test_at_the_ceiling_nothing_is_forced(policy: str) -> None:
    compression = CompressionSettings(max_view_tokens=40_000)
    now = example_context(40_000, *OFFERS, compression=compression, outside_tail=9)
    assert isinstance(decide(now, Settings(compression=compression), policy=policy), Keep)


def test_the_policy_of_the_settings_decides_unless_another_is_named() -> None:
    settings = Settings(compression=CompressionSettings(policy="never"))
    now = example_context(70_000, *OFFERS)
    assert decide(now, settings).because.code == "policy-never"
    assert isinstance(decide(now, settings, policy="runway"), Compact)
    with pytest.raises(BadSetting, match="did you mean runway"):
        decide(now, settings, policy="runways")


@pytest.mark.parametrize(("ceiling", "enough"), [(30_000, 20_400), (9_000, 0)], ids=["room", "no room"])
def test_the_ceiling_leaves_room_under_itself_whatever_the_limits_say(ceiling: int, enough: int) -> None:
    settings = Settings(compression=CompressionSettings(max_view_tokens=ceiling))
    decision = decide(example_context(60_000, *OFFERS), settings, policy="never")
    assert isinstance(decision, Compact)
    assert (decision.enough, decision.below) == (enough, ceiling + 1)


def test_a_ceiling_above_the_threshold_compacts_down_to_the_target() -> None:
    settings = Settings(compression=CompressionSettings(max_view_tokens=80_000))
    decision = decide(example_context(90_000, *OFFERS), settings, policy="never")
    assert isinstance(decision, Compact)
    assert decision.enough == 54_400


def test_by_hand_takes_one_offer_if_all_are_doubtful() -> None:
    now = example_context(9_000, offer("summarize", -5), offer("elide", -9), forced=True)
    assert steps(decide(now, SETTINGS)) == ["summarize"]


def test_hygiene_compacts_around_a_policy_that_would_not() -> None:
    net = Settings(compression=CompressionSettings(hygiene=True))
    now = example_context(180_000, *OFFERS, context=200_000)
    assert isinstance(decide(now, SETTINGS, policy="never"), Keep)
    assert steps(decide(now, net, policy="never")) == ["elide", "summarize"]
    assert (
        decide(example_context(180_000, context=200_000), net, policy="never").because.code != "policy-never"
    ), "it is not settled before the mechanisms were asked"
    below = example_context(160_000, *OFFERS, context=200_000)
    assert decide(below, net, policy="never").because.code == "policy-never"
