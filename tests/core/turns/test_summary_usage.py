"""What reaches the engine of a call's usage, whatever the summarizer makes of it."""

from typing import Any

import pytest

from lowwater.core.api_calls import Usage
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.turns.effects import Failure
from lowwater.errors import SummaryFailed
from lowwater.session.turns import ask_summarizer
from lowwater.testing.fakes import ScriptedSummarizer, fail

REQUEST = SummaryRequest(messages=(), max_tokens=10)


@pytest.mark.parametrize(
    ("spent", "usage"), [(Usage(output=3), Usage(output=3)), (None, None), ("much", None)]
)
def test_a_failure_carries_what_the_call_consumed(spent: Any, usage: Usage | None) -> None:
    outcome = ask_summarizer(
        ScriptedSummarizer(fail(SummaryFailed("no", "refused", spent=spent))), REQUEST, 10.0
    )
    assert outcome == Failure(kind="refused", error="no", usage=usage)


@pytest.mark.parametrize("wrong", [{"usage": 7}, {"model": 7}], ids=["usage", "model"])
def test_a_summary_whose_bill_cannot_be_read_is_none(wrong: dict[str, Any]) -> None:
    outcome = ask_summarizer(ScriptedSummarizer(lambda _: Written(text="x", by="y", **wrong)), REQUEST, 10.0)
    assert isinstance(outcome, Failure)


def test_the_summarizer_is_told_how_long_anybody_waits() -> None:
    summarizer = ScriptedSummarizer(lambda _: Written(text="x", by="y"))
    ask_summarizer(summarizer, REQUEST, 7.5)
    assert [request.within for request in summarizer.requests] == [7.5]
