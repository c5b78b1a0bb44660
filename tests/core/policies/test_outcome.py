"""What a session's past becomes (specification D, K; in Hermes state leaks across a model switch)."""

from lowwater.core.decisions import Compact, Past, Reason
from lowwater.core.policies.safety_rules import (
    after_compaction,
    after_failure,
    after_summary,
    after_switch,
    after_turn,
)
from lowwater.testing.decision_contexts import NOON, example_context, offer


def plan(*, below: int) -> Compact:
    offers = (offer("elide", 8_000), offer("summarize", 30_000))
    return Compact(proposals=offers, because=Reason(code="test"), enough=54_400, below=below)


def test_ending_below_the_trigger_clears_the_past() -> None:
    now = example_context(70_000, past=Past(fruitless=3, floor=66_000, fruitless_at=5.0, undelivered=9))
    past = after_compaction(now, plan(below=64_000), prompt=63_999)
    assert past == Past(compactions=1)


def test_ending_at_the_trigger_was_in_vain() -> None:
    past = after_compaction(example_context(70_000), plan(below=64_000), prompt=64_000)
    assert past == Past(
        compactions=1, fruitless=1, floor=64_000, fruitless_at=NOON, undelivered=64_000 - 40_000
    )


def test_what_was_given_up_counts_as_in_vain_and_not_as_a_compaction() -> None:
    now = example_context(70_000, past=Past(compactions=2, turns_since=9, fruitless=1))
    past = after_compaction(now, plan(below=0), prompt=None)
    assert (past.compactions, past.turns_since) == (2, 9)
    assert (past.fruitless, past.floor, past.undelivered) == (2, 70_000, 30_000)


def test_a_leaf_pass_has_no_size_to_end_below() -> None:
    past = after_compaction(example_context(700_000, context=1_000_000), plan(below=0), prompt=690_000)
    assert past.fruitless == 0


def test_a_turn_is_counted() -> None:
    assert after_turn(Past(turns_since=3)).turns_since == 4


def test_g_a_switch_of_model_forgets_what_the_old_one_could_not_shrink() -> None:
    stuck = after_failure(Past(compactions=3, fruitless=2, floor=9, fruitless_at=1.0, undelivered=4), at=2.0)
    assert after_switch(stuck) == Past(compactions=3, failures=1, failed_at=2.0)


def test_more_than_was_promised_leaves_nothing_undelivered() -> None:
    past = after_compaction(example_context(110_000), plan(below=64_000), prompt=70_000)
    assert past.undelivered == 0


def test_a_success_of_the_summarizer_clears_its_failures() -> None:
    assert after_summary(Past(failures=4, failed_at=1.0)) == Past()
