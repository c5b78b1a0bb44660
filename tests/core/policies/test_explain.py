"""Every decision in words, with its numbers."""

import re

import pytest

from lowwater.core.decisions import CODES, Compact, DecisionContext, Past, Reason
from lowwater.core.events import Rejected
from lowwater.core.policies.explanations import SENTENCES, explain, reason_sentence
from lowwater.core.policies.safety_rules import decide
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.decision_contexts import NOON, candidates, example_context, offer, priced_plan

SETTINGS = Settings()
ELIDE, SMALL, SUMMARY = offer("elide", 20_000), offer("elide", 6_000), offer("summarize", 50_000)
SHORT, LEAF, ALL = offer("elide", 8_000), offer("leaf", 17_600), offer("summarize_all", 90_000)
COOLING = Past(failures=2, failed_at=NOON)
STUCK = Past(fruitless=1, floor=69_000, fruitless_at=NOON)

FOUND_BY_THE_ENGINE = ("not-smaller", "too-large-at-the-door", "no-room-at-the-door", "images-refused")
CEILING = Settings(compression=CompressionSettings(max_view_tokens=65_000))

CASES: list[tuple[str, str, DecisionContext]] = [
    ("disabled", "runway", example_context(70_000, enabled=False)),
    ("policy-never", "never", example_context(70_000, SUMMARY)),
    ("below-threshold", "runway", example_context(60_000)),
    ("below-hygiene", "hygiene", example_context(60_000)),
    ("too-few-messages", "hygiene", example_context(110_000, SUMMARY, messages=3)),
    ("nothing-offered", "runway", example_context(70_000)),
    ("nothing-by-hand", "runway", example_context(7_000, forced=True)),
    ("no-leaf-offered", "guarded", example_context(90_000, outside_tail=30_000)),
    ("prune-alone-too-small", "runway", example_context(70_000, SMALL)),
    ("prune-alone-falls-short", "runway", example_context(70_000, SHORT)),
    ("too-little-raw", "guarded", example_context(70_000, outside_tail=9_000)),
    ("budget-headroom", "guarded", example_context(70_000, LEAF, outside_tail=30_000)),
    (
        "cache-aware",
        "guarded",
        example_context(548_000, context=750_000, outside_tail=24_000, has_budget=False),
    ),
    ("does-not-fit", "runway", example_context(112_000)),
    ("too-many-bytes", "runway", example_context(7_000, bytes=33_000_000, max_bytes=32_000_000)),
    ("ceiling-out-of-reach", "runway", example_context(70_000)),
    ("irreducible", "runway", example_context(70_000, offer("summarize", 4_000), past=STUCK)),
    (
        "rent-cannot-be-due",
        "rent-or-buy",
        example_context(70_000, candidates=candidates(most_rent=1, least_price=2)),
    ),
    ("undone", "rent-or-buy", example_context(70_000, candidates=candidates(paused_calls=7))),
    ("rent-rests", "rent-or-buy", example_context(70_000, candidates=candidates(is_from_earlier_turn=True))),
    ("nothing-to-buy", "rent-or-buy", example_context(70_000, candidates=candidates())),
    (
        "rent-below-price",
        "rent-or-buy",
        example_context(70_000, candidates=candidates(priced_plan(ELIDE, rent=3_000_000))),
    ),
    (
        "too-young-to-pay",
        "rent-or-buy",
        example_context(70_000, candidates=candidates(priced_plan(ELIDE, rent=30_000_000, wait=9))),
    ),
    ("cooling-down", "runway", example_context(70_000, SUMMARY, past=COOLING)),
    ("by-hand", "runway", example_context(70_000, SUMMARY, forced=True)),
    ("wall", "runway", example_context(112_000, SUMMARY)),
    ("wall-into-tail", "runway", example_context(170_000, SUMMARY, ALL)),
    (
        "wall-to-last",
        "rent-or-buy",
        example_context(112_000, candidates=candidates(lasting=priced_plan(ELIDE))),
    ),
    (
        "ceiling-to-last",
        "rent-or-buy",
        example_context(70_000, candidates=candidates(lasting=priced_plan(ELIDE))),
    ),
    ("ceiling-into-tail", "runway", example_context(70_000, offer("summarize", 4_000), ALL)),
    (
        "byte-limit",
        "runway",
        example_context(7_000, offer("images", 2_000), bytes=33_000_000, max_bytes=32_000_000),
    ),
    ("cliff", "runway", example_context(270_000, offer("elide", 90_000), context=400_000, cliff=200_001)),
    (
        "rent-paid",
        "rent-or-buy",
        example_context(70_000, candidates=candidates(priced_plan(ELIDE, rent=30_000_000))),
    ),
    (
        "waiting-in-vain",
        "rent-or-buy",
        example_context(70_000, candidates=candidates(priced_plan(ELIDE, should_buy_early=True))),
    ),
    (
        "free-now",
        "rent-or-buy",
        example_context(70_000, candidates=candidates(priced_plan(ELIDE, price=-5_000_000))),
    ),
    ("summary-due", "threshold", example_context(70_000, SUMMARY)),
    ("prune-suffices", "runway", example_context(70_000, ELIDE, SUMMARY)),
    ("prune-falls-short", "runway", example_context(70_000, SHORT, SUMMARY)),
    ("prune-too-small", "runway", example_context(70_000, SMALL, SUMMARY)),
    ("prune-and-summary", "hermes-classic", example_context(70_000, SMALL, SUMMARY)),
    ("leaf-due", "guarded", example_context(90_000, LEAF, outside_tail=30_000, has_budget=False)),
    ("leaf-pressure", "guarded", example_context(90_000, LEAF, outside_tail=30_000)),
    ("full-sweep", "guarded", example_context(100_000, LEAF)),
    ("cooling-down-prune", "runway", example_context(70_000, SHORT, SUMMARY, past=COOLING)),
]


def test_every_code_has_a_sentence_and_a_case_here() -> None:
    assert set(SENTENCES) == set(CODES)
    assert [*(code for code, _, _ in CASES), *FOUND_BY_THE_ENGINE] == list(CODES)


@pytest.mark.parametrize(("code", "policy", "now"), CASES, ids=[code for code, _, _ in CASES])
def test_every_reason_is_a_sentence_with_all_its_numbers(
    code: str, policy: str, now: DecisionContext
) -> None:
    reason = decide(now, CEILING if "ceiling" in code else SETTINGS, policy=policy).because
    assert reason.code == code
    words = reason_sentence(reason)
    for name, fact in reason.facts.items():
        shown = fact if isinstance(fact, str) else f"{fact:,}"
        assert re.search(rf"(?<![\d,]){re.escape(shown)}(?![\d,]\d)", words), f"{name} is missing: {words}"
    for fact in reason.facts.values():
        words = words.replace(fact, "", 1) if isinstance(fact, str) else words
    assert len(re.findall(r"(?<![\w,])\d[\d,]*", words)) == sum(
        not isinstance(fact, str) for fact in reason.facts.values()
    ), f"no other numbers: {words}"
    assert words[0].isupper() or words[0].isdigit()
    assert words.endswith(".")
    assert "{" not in words


def test_a_prune_reads_like_this() -> None:
    now = example_context(
        70_000, offer("elide", 22_000, survives=31_500), offer("summarize", 50_000, survives=9_000)
    )
    assert explain(decide(now, SETTINGS)) == (
        "The prompt of 70,000 tokens has reached the threshold of 64,000; pruning alone should leave 48,000, no more "
        "than the 54,400 it has to get down to, so no summary is needed.\n"
        "1. Put short placeholders in place of old tool results: about 22,000 tokens less, from message 5 on; no "
        "model is called.\n"
        "2. Replace the messages between the protected start and end by one summary: about 50,000 tokens less, from "
        "message 5 on; a summary is written.\n"
        "From message 5 on, about 9,000 tokens are written to the cache again.\n"
        "Once 54,400 tokens or fewer are left, the remaining steps are skipped."
    )


def test_keeping_is_one_line() -> None:
    assert explain(decide(example_context(60_000), SETTINGS)) == (
        "The prompt of 60,000 tokens is below the threshold of 64,000."
    )


def test_steps_are_told_in_the_models_tokens() -> None:
    decision = decide(example_context(70_000, SUMMARY, forced=True, scale=1.2), SETTINGS)
    assert "about 60,000 tokens less" in explain(decision, scale=1.2)
    assert "about 50,000 tokens less" in explain(decision, scale=float("nan"))


def test_where_nothing_is_skipped_nothing_is_said_of_it() -> None:
    decision = decide(example_context(70_000, ELIDE, SUMMARY), SETTINGS, policy="hermes-classic")
    assert isinstance(decision, Compact)
    assert "skipped" not in explain(decision)


@pytest.mark.parametrize(
    "reason",
    [
        Reason(code="of-a-later-version", facts={"prompt": 70_000}),
        Reason(code="below-threshold", facts={"prompt": 70_000}),
        Reason(code="below-threshold", facts={"prompt": 70_000, "threshold": 1, "more": "yes"}),
    ],
    ids=["unknown code", "a fact too few", "a fact too many"],
)
def test_a_reason_of_another_version_is_listed_as_it_is(reason: Reason) -> None:
    assert reason_sentence(reason).startswith(f"{reason.code}: prompt 70,000")


def test_a_mechanism_of_another_version_goes_by_its_name() -> None:
    decision = decide(example_context(113_000, offer("weave", 50_000)), SETTINGS)
    assert "1. weave: about 50,000 tokens less" in explain(decision)


def test_a_single_step_skips_nothing() -> None:
    assert "skipped" not in explain(decide(example_context(70_000, SUMMARY), SETTINGS))


def test_what_was_tried_in_vain_says_so() -> None:
    reason = Reason(code="not-smaller", facts={"prompt": 70_000, "wanted": "summary-due"})
    assert reason_sentence(reason) == (
        "What was tried (summary-due) would not have made the prompt of 70,000 tokens smaller, so it stays as it is."
    )


@pytest.mark.parametrize(
    ("missing", "first", "said"),
    [
        (0, (), "The summary by haiku was not accepted as written (too_short)."),
        (2, ("a.py", "b c"), "(too_short): it misses 2 critical references. They are: a.py; b c"),
        (6, ("1", "2", "3", "4", "5"), "it misses 6 critical references. Among them: 1; 2; 3; 4; 5"),
    ],
)
def test_j_a_summary_that_was_not_accepted_is_told_with_what_it_misses(
    missing: int, first: tuple[str, ...], said: str
) -> None:
    decision = decide(example_context(70_000, SUMMARY), SETTINGS, policy="threshold")
    rejected = Rejected(by="haiku", code="too_short", missing=missing, first_missing=first)
    assert explain(decision, rejected=[rejected]).splitlines()[-1].endswith(said)
