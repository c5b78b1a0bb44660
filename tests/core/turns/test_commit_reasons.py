"""An event says why it came to what it came to."""

import pytest

from lowwater.core.decisions import Reason
from lowwater.core.events import Phase
from lowwater.core.policies.explanations import reason_sentence
from lowwater.core.turns.commit import actual_reason
from lowwater.core.turns.compaction import CompactionResult

SUFFICES = Reason(
    code="prune-suffices",
    facts={"prompt": 70_000, "limit": "the threshold", "trigger": 64_000, "pruned": 48_000, "target": 54_400},
)
PRUNED = Phase(mechanism="elide", removed=9_000)


def test_a_prune_that_fell_short_of_what_it_promised_is_not_said_to_have_sufficed() -> None:
    phases = (PRUNED, Phase(mechanism="summarize", removed=30_000))
    came = actual_reason(SUFFICES, CompactionResult(items=(), phases=phases, summaries=1), prompt=70_000)
    assert came.code == "prune-falls-short"
    assert came.facts["pruned"] == 61_000
    assert "pruning alone should leave 61,000, more than the 54,400" in reason_sentence(came)


@pytest.mark.parametrize("summaries", [0, 1])
def test_every_other_reason_stays(summaries: int) -> None:
    due = Reason(code="summary-due", facts={})
    assert actual_reason(due, CompactionResult(items=(), summaries=summaries), prompt=1) is due
    assert actual_reason(SUFFICES, CompactionResult(items=(), phases=(PRUNED,)), prompt=70_000) is SUFFICES
