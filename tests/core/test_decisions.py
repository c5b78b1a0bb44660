"""What a decision context says of its own numbers."""

from math import inf, nan

import pytest

from lowwater.core.decisions import effective_size
from lowwater.testing.decision_contexts import example_context, offer


@pytest.mark.parametrize(
    ("stored", "live", "size"),
    [
        (40_000, 90_000, 90_000),
        (90_000, 40_000, 90_000),
        (5, None, 5),
        (5, nan, 5),
        (5, inf, 5),
        (5, -inf, 5),
    ],
    ids=["live", "stored", "no live count", "nan", "infinite", "minus infinite"],
)
def test_e_effective_size_is_the_larger_and_a_live_count_that_is_not_finite_is_ignored(
    stored: int, live: float | None, size: int
) -> None:
    assert effective_size(stored, live) == size


def test_what_proposals_remove_is_scaled_to_the_models_tokens() -> None:
    now = example_context(100_000, offer("elide", 10_000), offer("images", 2_000), scale=1.5)
    assert now.removes(now.proposals) == 18_000
    assert now.after(now.proposals) == 82_000


@pytest.mark.parametrize("scale", [nan, inf, -inf, 0.0, -2.0])
def test_a_scale_that_is_no_positive_number_counts_as_one(scale: float) -> None:
    now = example_context(100_000, offer("elide", 10_000), scale=scale)
    assert now.after(now.proposals) == 90_000


def test_no_plan_leaves_less_than_nothing() -> None:
    assert example_context(5_000, offer("elide", 10_000)).after((offer("elide", 10_000),)) == 0


def test_offers_come_in_the_order_of_the_mechanisms_asked_for() -> None:
    now = example_context(9_000, offer("images", 1), offer("elide", 2), offer("dedupe", 3))
    assert [p.mechanism for p in now.offers("dedupe", "images")] == ["dedupe", "images"]
