"""A session looks again for something to buy only when that may have changed."""

import pytest

from lowwater.core.turns.state import RecheckBackoff, recheck_backoff
from lowwater.testing.decision_contexts import candidates, offer, priced_plan

ELIDE = offer("elide", 20_000)
READ = 500


def rest(*, left: int) -> RecheckBackoff | None:
    plan = priced_plan(ELIDE, rent=0, price=left * 1_000, saves=1_000)
    return recheck_backoff(candidates(plan), meter=7_000, read_price=READ, prompt=50_000)


@pytest.mark.parametrize(("left", "calls"), [(0, 0), (1, 0), (3, 0), (4, 1), (40, 10)])
def test_it_rests_for_a_quarter_of_the_calls_that_the_nearest_plan_is_away(left: int, calls: int) -> None:
    resting = rest(left=left)
    if not calls:
        assert resting is None
        return
    assert resting is not None
    assert resting.is_too_early(meter=7_000 + (calls - 1) * READ, prompt=50_000)
    assert not resting.is_too_early(meter=7_000 + calls * READ, prompt=50_000)


def test_it_looks_again_when_the_prompt_has_grown() -> None:
    resting = rest(left=400)
    assert resting is not None
    assert resting.is_too_early(meter=7_000, prompt=51_499)
    assert not resting.is_too_early(meter=7_000, prompt=51_500)


def test_without_candidates_only_growth_ends_the_backoff() -> None:
    resting = recheck_backoff(candidates(), meter=0, read_price=READ, prompt=50_000)
    assert resting is not None
    assert resting.is_too_early(meter=10**15, prompt=50_001)
    assert not resting.is_too_early(meter=0, prompt=60_000)
