"""What an audit says of pauses: what they cost, and what each choice would have cost."""

import pytest

from lowwater.lab.audit.findings import PauseCosts
from lowwater.lab.audit.pauses import total_pauses
from tests.lab.audited_recordings import NOON, OPUS, PRICING, Talk


def worked(wait: float) -> PauseCosts:
    """A call, three of 100,000 tokens, a pause, and one more."""
    talk = Talk().says().call(prompt=20_000, read=0)
    for _ in range(3):
        talk.call(prompt=100_000, read=99_000)
    talk.says().call(prompt=101_000, read=0 if wait > 300 else 100_000, wait=wait)
    found = talk.audited().pauses
    assert found is not None
    return found


def test_a_pause_of_ten_minutes_costs_a_prefix_written_again_or_two_calls() -> None:
    found = worked(610)
    assert found.pauses == 1
    prices = PRICING.model(OPUS, NOON).prices
    assert prices is not None
    assert found.let_go == pytest.approx((prices.cache_write - prices.cache_read) * 100_000 / 1_000, rel=0.01)
    assert found.pings == 2
    assert found.kept_warm == pytest.approx(2 * prices.cache_read * 100_000 / 1_000, rel=0.01)
    assert found.longer is not None
    assert found.longer < found.let_go


def test_a_night_is_let_go_or_compacted_before() -> None:
    found = worked(40_000)
    assert found.kept_warm > found.let_go, "the calls at its beginning were for nothing"
    assert found.compacted < found.let_go


def test_without_a_pause_there_is_nothing_to_say() -> None:
    found = worked(20)
    assert (found.pauses, found.let_go, found.kept_warm, found.pings) == (0, 0, 0, 0)


def test_without_a_published_lifetime_nothing_is_known() -> None:
    talk = Talk("deepseek-chat").says()
    for _ in range(3):
        talk.call(prompt=9_000, read=8_000, wait=900)
    assert talk.audited().pauses is None


def test_sums_leave_out_what_is_not_known() -> None:
    one = worked(610)
    assert total_pauses([one, None, one]).let_go == 2 * one.let_go
