"""`Session.prefetch_summary`: beside the turns of a session, from threads and tasks, and nothing paid for is thrown away."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lowwater.core.api_calls import Usage
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import AsyncScriptedSummarizer, RecordingSink, ScriptedClock, ScriptedSummarizer
from tests.generated import generate_session

MODEL = "claude-haiku-4-5"
MESSAGES: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=1, turns=60).as_anthropic().messages[:121]
]
MORE = {"role": "assistant", "content": "Done with that."}


def told(request: SummaryRequest) -> Written:
    text = extract(request, CharacterTokenizer())
    return Written(text=text, by="model", model=MODEL, usage=Usage(cache_read=1_000, output=100))


def open_session(
    summarizer: Any = (), sink: RecordingSink | None = None, clock: ScriptedClock | None = None
) -> Session:
    """A session that fits its window only with a summary: a prune is not enough."""
    session = Lowwater(
        model=MODEL,
        policy="never",
        summarizer=summarizer,
        sinks=[sink] if sink else [],
        clock=clock,
        settings=Settings(output=OutputSettings(quiet=True)),
        deadline=30.0,
    ).session()
    session.append(MESSAGES)
    session.learn_context_length(round(0.9 * session.status().prompt))
    return session


class Gated(ScriptedSummarizer):
    """Says that it was asked, and answers once it may."""

    def __init__(self) -> None:
        super().__init__(told)
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def summarize(self, request: SummaryRequest, /) -> Written:
        self.asked.set()
        assert self.may_answer.wait(30)
        return super().summarize(request)


async def started(summarizer: AsyncScriptedSummarizer) -> None:
    """Return once the summarizer was asked."""
    async with asyncio.timeout(30):
        while not summarizer.waiting:
            await asyncio.sleep(0.001)


def test_what_is_appended_while_a_summary_is_prepared_is_kept_and_so_is_the_summary() -> None:
    gated, sink = Gated(), RecordingSink()
    session = open_session(gated, sink)
    with ThreadPoolExecutor(1) as pool:
        prefetching = pool.submit(session.prefetch_summary)
        assert gated.asked.wait(30)
        session.append(MORE)
        gated.may_answer.set()
        assert prefetching.result(30)
    assert session.history() == [*MESSAGES, MORE]
    session.prepare()
    assert [event.summarizer for event in sink.compactions] == ["model"]
    assert len(gated.requests) == 1


def test_a_turn_does_not_wait_for_a_summary_that_is_being_prepared() -> None:
    gated = Gated()
    session = open_session(gated)
    with ThreadPoolExecutor(1) as pool:
        prefetching = pool.submit(session.prefetch_summary)
        assert gated.asked.wait(30)
        session.learn_context_length(10**6)
        request = session.prepare()
        assert not prefetching.done()
        gated.may_answer.set()
        assert prefetching.result(30)
    assert len(request.messages) == len(MESSAGES)


def test_what_the_client_edits_meanwhile_makes_it_stale_and_it_is_billed_all_the_same() -> None:
    gated = Gated()
    session = open_session(gated)
    with ThreadPoolExecutor(1) as pool:
        prefetching = pool.submit(session.prefetch_summary)
        assert gated.asked.wait(30)
        internals(session).sync_messages([*MESSAGES[:10], {"role": "user", "content": "Something else."}])
        gated.may_answer.set()
        assert not prefetching.result(30)
    assert session.status().totals.summary_cost
    assert len(session.history()) == len(MESSAGES) + 1


def test_two_who_prefetch_at_a_time_ask_once_and_the_second_does_not_wait() -> None:
    gated = Gated()
    session = open_session(gated)
    with ThreadPoolExecutor(1) as pool:
        prefetching = pool.submit(session.prefetch_summary)
        assert gated.asked.wait(30)
        assert not session.prefetch_summary(), "it is not ready yet"
        gated.may_answer.set()
        assert prefetching.result(30)
    assert session.prefetch_summary()
    assert len(gated.requests) == 1


def test_awaited_it_leaves_the_loop_free_and_the_turn_after_it_asks_nobody() -> None:
    sink = RecordingSink()

    async def run() -> tuple[Session, AsyncScriptedSummarizer]:
        gate = asyncio.Event()
        summarizer = AsyncScriptedSummarizer(told, gate=gate)
        session = open_session(summarizer, sink)
        prefetching = asyncio.create_task(session.aprefetch_summary())
        await started(summarizer)
        session.append(MORE)
        gate.set()
        assert await prefetching
        await session.aprepare()
        return session, summarizer

    session, summarizer = asyncio.run(run())
    assert session.history()[-1] == MORE
    assert [event.summarizer for event in sink.compactions] == ["model"]
    assert len(summarizer.requests) == 1


def test_one_that_is_cancelled_prefetches_nothing_and_the_next_one_waits_as_after_a_failure() -> None:
    async def run() -> None:
        gate = asyncio.Event()
        summarizer = AsyncScriptedSummarizer(told, gate=gate)
        clock = ScriptedClock()
        session = open_session(summarizer, clock=clock)
        prefetching = asyncio.create_task(session.aprefetch_summary())
        await started(summarizer)
        prefetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await prefetching
        assert not summarizer.requests
        gate.set()
        assert not await session.aprefetch_summary(), "it may be billed, so it is not asked again and again"
        assert internals(session).shared.state.totals.summary_cost is None, "what it cost is not known"
        clock.advance(61)
        assert await session.aprefetch_summary()
        assert len(summarizer.requests) == 1

    asyncio.run(run())


def test_a_summarizer_that_has_to_be_awaited_is_refused_with_what_to_call() -> None:
    session = open_session(AsyncScriptedSummarizer(told))
    with pytest.raises(BadInput, match="aprefetch_summary"):
        session.prefetch_summary()


def test_without_a_model_that_writes_summaries_nothing_is_prefetched() -> None:
    session = open_session()
    ledger = internals(session).ledger
    assert not session.prefetch_summary()
    assert internals(session).ledger is ledger
