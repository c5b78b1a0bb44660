"""Many threads and tasks on one session: turns come one after another, and no message is ever lost."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.testing.fakes import AsyncScriptedSummarizer, RecordingSink, ScriptedSummarizer
from tests.generated import generate_session

MESSAGES: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=41, target_tokens=70_000).as_openai_chat()[:-1]
]


def keep_all(request: SummaryRequest) -> Written:
    """A summary with everything in it that could be missed."""
    paths = " ".join(sorted({word for message in request.messages for word in message.text.split()})[:900])
    return Written(text=f"## Goal\n- Go on.\n\n## Critical Context\n- {paths}", by="kept")


def open_session(summarizer: Any = (), sink: RecordingSink | None = None) -> Session:
    sinks = [sink] if sink else []
    lowwater = Lowwater(
        model="model-nobody-knows", policy="threshold", summarizer=summarizer, sinks=sinks, deadline=30.0
    )
    return lowwater.session()


class Gated(ScriptedSummarizer):
    """Says that it was asked, and answers once it may."""

    def __init__(self) -> None:
        super().__init__(keep_all)
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def summarize(self, request: SummaryRequest, /) -> Written:
        self.asked.set()
        assert self.may_answer.wait(30)
        return super().summarize(request)


def test_two_threads_that_prepare_the_same_list_compact_once() -> None:
    gated, sink = Gated(), RecordingSink()
    session = open_session(gated, sink)
    with ThreadPoolExecutor(2) as pool:
        turns = [pool.submit(session.prepare, MESSAGES) for _ in range(2)]
        assert gated.asked.wait(30)
        gated.may_answer.set()
        first, second = (turn.result(30) for turn in turns)
    assert first.as_openai() == second.as_openai()
    assert len(sink.compactions) == 1
    assert session.history() == MESSAGES


def test_what_is_appended_while_a_summary_is_written_is_not_lost() -> None:
    gated = Gated()
    session = open_session(gated)
    session.append(MESSAGES)
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(session.prepare)
        assert gated.asked.wait(30)
        session.append({"role": "user", "content": "One more thing."})
        gated.may_answer.set()
        request = turn.result(30)
    assert session.history() == [*MESSAGES, {"role": "user", "content": "One more thing."}]
    assert request.as_openai()["messages"][-1] == {"role": "user", "content": "One more thing."}


def test_reading_never_waits_for_a_turn() -> None:
    gated = Gated()
    session = open_session(gated)
    session.append(MESSAGES)
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(session.prepare)
        assert gated.asked.wait(30)
        assert session.status().history == len(MESSAGES)
        assert session.recall("lw:1")[0].number == 1
        assert session.view() == MESSAGES
        gated.may_answer.set()
        turn.result(30)


def test_a_session_that_never_rests_is_prepared_all_the_same() -> None:
    class Restless:
        """Whoever is asked for a summary adds a message: the state has always changed when it is done."""

        def __init__(self) -> None:
            self.asked = 0

        def summarize(self, request: SummaryRequest, /) -> Written:
            self.asked += 1
            session.append({"role": "user", "content": f"Number {self.asked}."})
            return keep_all(request)

    restless = Restless()
    session = open_session(restless)
    session.append(MESSAGES)
    session.prepare()
    assert len(session.history()) == len(MESSAGES) + restless.asked
    compaction = internals(session).last_compaction
    assert compaction is not None
    assert compaction.summarizer == "extractive", "the last try asks nobody"


def test_many_threads_append_and_prepare_and_every_message_is_there_once() -> None:
    session = open_session()

    def talk(who: int) -> None:
        for number in range(25):
            session.append({"role": "user", "content": f"{who}: {number} " + "word " * 200})
            session.prepare()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(talk, range(8)))
    said = [message["content"].split(" word")[0] for message in session.history()]
    assert sorted(said) == sorted(f"{who}: {number}" for who in range(8) for number in range(25))
    for who in range(8):
        mine = [text for text in said if text.startswith(f"{who}:")]
        assert mine == [f"{who}: {number}" for number in range(25)], "each in its own order"


def test_tasks_take_turns_and_an_append_in_between_is_kept() -> None:
    sink = RecordingSink()

    async def run() -> Session:
        gate = asyncio.Event()
        summarizer = AsyncScriptedSummarizer(keep_all, gate=gate)
        session = open_session(summarizer, sink)
        session.append(MESSAGES)
        turns = [asyncio.create_task(session.aprepare()) for _ in range(3)]
        while not summarizer.waiting:
            await asyncio.sleep(0)
        session.append({"role": "user", "content": "One more thing."})
        gate.set()
        requests = await asyncio.gather(*turns)
        assert requests[1].as_openai() == requests[2].as_openai()
        return session

    session = asyncio.run(run())
    assert session.history()[-1] == {"role": "user", "content": "One more thing."}
    assert len(sink.compactions) == 1


def test_a_session_outlives_an_event_loop() -> None:
    session = open_session()

    async def run(text: str) -> None:
        session.append({"role": "user", "content": text})
        await asyncio.gather(*(session.aprepare() for _ in range(3)))

    asyncio.run(run("first"))
    asyncio.run(run("second"))
    assert len(session.history()) == 2


def test_one_library_opens_each_session_once() -> None:
    lowwater = Lowwater(model="model-nobody-knows")
    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(lambda _: lowwater.session("same"), range(64)))
    assert len({id(session) for session in sessions}) == 1
