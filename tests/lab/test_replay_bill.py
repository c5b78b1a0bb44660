"""The bill of one session, as the demo shows it."""

import pytest
from msgspec.structs import replace

from lowwater.errors import BadInput
from lowwater.lab.replay.session import BILLED_POLICIES, bill_of
from tests.generated import generate_session

SESSION = generate_session("coding", seed=7, turns=90).as_recording()


def test_the_bill_has_four_policies_and_the_optimum_last():
    bill = bill_of(SESSION, model="claude-opus-4-5")
    assert {line.policy for line in bill} == {*BILLED_POLICIES, "optimum"}
    assert [line.total for line in bill] == sorted((line.total for line in bill), reverse=True)
    assert (bill[-1].policy, bill[-1].over_optimum) == ("optimum", 1.0)


def test_system_and_tools_are_counted_where_no_usage_is_recorded():
    bare = bill_of(replace(SESSION, system=b"", tools=b""), model="claude-opus-4-5")
    assert bill_of(SESSION, model="claude-opus-4-5")[0].peak > bare[0].peak


def test_what_cannot_be_replayed_is_refused():
    with pytest.raises(BadInput, match="no call"):
        bill_of(replace(SESSION, messages=()), model="claude-opus-4-5")
