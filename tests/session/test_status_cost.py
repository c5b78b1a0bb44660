"""What a session says it has cost so far."""

import json
from typing import Any

import pytest

from lowwater.core.api_calls import Usage
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.testing.fakes import RecordingSink, ScriptedSummarizer, WordTokenizer, fail
from tests.generated import generate_session

CHAT: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=91, target_tokens=30_000).as_openai_chat()[:-1]
]
ANSWER: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "text", "text": "Hi."}],
    "usage": {"input_tokens": 70_000, "cache_read_input_tokens": 100_000, "output_tokens": 2_000},
}
# At $1, $0.10 and $5 per million: $0.07 + $0.01 + $0.01.
ANSWER_COST = 90_000_000
SUMMARY_COST = 20_000_000 + 5_000_000


class Haiku(ScriptedSummarizer):
    """Writes what can be said without a model, and says that a model did."""

    model = "claude-haiku-4-5"

    def __init__(self, usage: Usage | None = Usage(uncached=20_000, output=1_000)) -> None:  # noqa: B008  # it is frozen
        super().__init__(self._write)
        self._usage = usage

    def _write(self, request: SummaryRequest) -> Written:
        text = extract(request, WordTokenizer())
        return Written(text=text, by=self.model, model=f"{self.model}-20251001", usage=self._usage)


def said_to(model: str, answer: dict[str, Any] = ANSWER, times: int = 1) -> str:
    session = Lowwater(model=model).session()
    for _ in range(times):
        session.append({"role": "user", "content": "Hello."})
        session.prepare()
        session.record(answer)
    return str(session.status())


def test_nothing_is_said_before_anything_was_paid() -> None:
    assert "cost" not in str(Lowwater(model="claude-haiku-4-5").session().status())


def test_the_cost_so_far_is_the_sum_of_all_answers() -> None:
    assert "cost so far $0.0900\n" in said_to("claude-haiku-4-5")
    assert "cost so far $1.08\n" in said_to("claude-haiku-4-5", times=12)


def test_a_compaction_by_the_provider_is_paid_for() -> None:
    compaction = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 4_000}
    usage = {**ANSWER["usage"], "iterations": [compaction, {"type": "message", **ANSWER["usage"]}]}
    # $0.09 for the answer, $0.18 + $0.02 for the compaction.
    assert "cost so far $0.2900\n" in said_to("claude-haiku-4-5", {**ANSWER, "usage": usage})


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        pytest.param("homemade-7b", ANSWER, id="no price"),
        pytest.param("claude-haiku-4-5", {**ANSWER, "usage": None}, id="no usage"),
    ],
)
def test_an_unknown_price_is_never_an_amount(model: str, answer: dict[str, Any]) -> None:
    said = said_to(model, answer)
    assert "cost so far unknown: " in said
    assert "$" not in said


def compressed(*summarizers: ScriptedSummarizer) -> tuple[Any, Any]:
    sink = RecordingSink()
    session = Lowwater(
        model="claude-haiku-4-5", summarizer=summarizers, sinks=[sink], policy="runway"
    ).session()
    internals(session).sync_messages(CHAT)
    session.compress()
    (event,) = sink.compactions
    assert event.summary_tokens > 0
    return event, session


def test_summaries_are_part_of_the_cost_and_named() -> None:
    event, session = compressed(Haiku())
    assert event.summarizer == "claude-haiku-4-5"
    assert event.cost == SUMMARY_COST
    session.prepare()
    session.record(ANSWER)
    totals = session.status().totals
    assert (totals.cost, totals.summary_cost) == (ANSWER_COST + SUMMARY_COST, SUMMARY_COST)
    assert "cost so far $0.1150 (summaries $0.0250)\n" in str(session.status())


def test_a_summary_without_a_model_costs_nothing() -> None:
    event, session = compressed()
    assert (event.summarizer, event.cost) == ("extractive", 0)
    assert "cost" not in str(session.status())


@pytest.mark.parametrize(
    "summarizer",
    [
        pytest.param(Haiku(usage=None), id="without usage"),
        pytest.param(ScriptedSummarizer(fail(RuntimeError())), id="failing"),
    ],
)
def test_a_summary_of_unknown_cost_leaves_the_cost_unknown(summarizer: ScriptedSummarizer) -> None:
    event, session = compressed(summarizer)
    assert event.cost is None
    assert session.status().totals.cost is None
    assert "cost so far unknown" in str(session.status())


class Vague(Haiku):
    """Writes what nobody can use, for the same money."""

    def _write(self, request: SummaryRequest) -> Written:
        return Written(text="Files were read.", by=self.model, model=self.model, usage=self._usage)


@pytest.mark.parametrize(
    ("summarizers", "calls"),
    [
        pytest.param([Vague(), Haiku()], 2, id="the second was good"),
        pytest.param([Vague()], 1, id="none was good"),
        pytest.param([ScriptedSummarizer(fail(ConnectionError())), Haiku()], 1, id="one was out of reach"),
    ],
)
def test_a_summary_that_was_of_no_use_was_paid_for(summarizers: list[ScriptedSummarizer], calls: int) -> None:
    event, _ = compressed(*summarizers)
    assert event.cost == calls * SUMMARY_COST
