"""Specification E: leaf pass, condensed pass, full sweep, and the simple payback calculator."""

from typing import Any

import pytest

from lowwater import simple_payback
from lowwater.session.internals import internals
from lowwater.settings import LeafSettings, Settings
from lowwater.testing.fakes import ScriptedSummarizer

CHUNKS = Settings(leaf=LeafSettings(leaf_chunk_tokens=3_000, leaf_target_tokens=400))


def test_e_a_leaf_pass_makes_one_summary_of_the_oldest_raw_chunk(opened, loop, faithful, summaries) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(40), policy="guarded", window=34_000, settings=CHUNKS, summarizer=summarizer)
    before = list(internals(session).ledger.view.items)
    session.prepare()
    assert session.decision.because.code == "leaf-pressure"
    (request,), (summary,) = summarizer.requests, summaries(session)
    assert request.numbers == tuple(range(5, request.numbers[-1] + 1)), "right behind the head"
    assert 2_000 < sum(before[number - 1].tokens for number in request.numbers) <= 3_000
    assert (summary.depth, request.max_tokens) == (1, 400)


def played(opened: Any, loop: Any, faithful: Any, told: Any, *, turns: int, window: int) -> Any:
    """Return a session that took a leaf pass whenever one was due."""
    session = opened(
        policy="guarded", window=window, settings=CHUNKS, summarizer=ScriptedSummarizer(faithful)
    )
    messages = told(loop(turns))
    for at in range(0, len(messages), 2):
        session.append(messages[at : at + 2])
        session.prepare()
    return session


def test_e_a_condensed_pass_makes_one_deeper_summary_of_several(
    opened, loop, faithful, told, summaries, sink
) -> None:
    session = played(opened, loop, faithful, told, turns=80, window=34_000)
    assert "condense" in {event.mode for event in sink.compactions}
    assert max(summary.depth for summary in summaries(session)) >= 2


def test_e_a_summary_knows_its_sources_and_the_chain_leads_back_to_the_messages(
    opened, loop, faithful, told, summaries
) -> None:
    session = played(opened, loop, faithful, told, turns=80, window=34_000)
    deep = max(summaries(session), key=lambda summary: summary.depth)
    numbers = [n for source in deep.sources for n in range(source.first, source.last + 1)]
    assert len(numbers) > 20
    history = session.history()
    for number in numbers:
        (found,) = session.recall(f"lw:{number}")
        assert str(history[number - 1].get("content") or "make -C") in found.text


def test_e_a_full_sweep_does_both_until_it_fits(opened, loop, told, faithful, summaries, compacted) -> None:
    session = opened(
        policy="guarded", window=34_000, settings=CHUNKS, summarizer=ScriptedSummarizer(faithful)
    )
    messages = told(loop(80))
    while len(summaries(session)) < 4:
        session.append([messages.pop(0), messages.pop(0)])
        session.prepare(max_tokens=500)
    while session.status().prompt <= 0.75 * 34_000:
        session.append([messages.pop(0), messages.pop(0)])
    session.prepare(max_tokens=500)
    event = compacted(session)
    assert event.because.code == "full-sweep"
    assert set(event.mechanisms) == {"leaf", "condense"}
    assert event.after <= 0.8 * 0.75 * 34_000


# The simple payback calculator


@pytest.mark.parametrize(("saved", "turns"), [(10_000, 13.5), (5_000, 27.0)])
def test_e_150k_cached_pay_back_in_13_and_a_half_turns_or_27(saved: int, turns: float) -> None:
    assert simple_payback(cached=150_000, saved=saved, input_price=5.0, read_price=0.5).turns == turns


@pytest.mark.parametrize(
    ("input_price", "read_price", "nano_dollars", "dollars"),
    [
        (5.0, 0.5, 675_000_000, "0.68"),
        (3.0, 0.3, 405_000_000, "0.41"),
        (1.0, 0.1, 135_000_000, "0.14"),
    ],
    ids=["$5/$0.50", "$3/$0.30", "$1/$0.10"],
)
def test_e_a_miss_on_150k_costs(
    input_price: float, read_price: float, nano_dollars: int, dollars: str
) -> None:
    found = simple_payback(cached=150_000, saved=1, input_price=input_price, read_price=read_price)
    assert found.miss_cost == nano_dollars
    assert f"{(found.miss_cost + 5_000_000) // 10_000_000 / 100:.2f}" == dollars
