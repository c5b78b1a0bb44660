"""Answers that are recorded late: each once and in order, and nobody waits for them longer than for the store."""

import asyncio
import threading
from collections.abc import Callable

import msgspec
import pytest

from lowwater.gateway import app
from lowwater.gateway import turns as bills
from lowwater.gateway.app import Gateway
from lowwater.gateway.client_request import ClientRequest, read_client_request
from lowwater.gateway.observability import GatewayMetrics
from lowwater.gateway.open_sessions import OpenSessions
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.turns import GatewayTurns, RecordingQueue, RequestContext, UnrecordedAnswer
from lowwater.session.internals import internals
from lowwater.stores.memory import MemoryStore
from tests.gateway.conftest import MODEL

CONTEXT = RequestContext(tenant="t", base_url="https://provider.example")


def asked(*said: str, hint: str = "") -> ClientRequest:
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    body = msgspec.json.encode({"model": MODEL, "max_tokens": 99, "messages": messages})
    named = {"x-claude-code-session-id": hint} if hint else {}
    read = read_client_request("/v1/messages", body, named, most_messages=100)
    assert isinstance(read, ClientRequest)
    return read


def bill(*said: str, answer: str = "well", hint: str = "") -> UnrecordedAnswer:
    told = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": answer}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    return UnrecordedAnswer(
        answer=msgspec.json.encode(told), client_request=asked(*said, hint=hint), context=CONTEXT
    )


class Recorder:
    """Late bills of a real store, which are recorded as soon as it may be written to."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.metrics = GatewayMetrics()
        options = GatewayOptions()
        self.sessions = OpenSessions(self.store, options)
        self.turns = GatewayTurns(self.sessions, options)
        self.may_write, self.is_begun = asyncio.Event(), asyncio.Event()
        self.bills = RecordingQueue(self.turns, self.metrics, self._in_thread)

    async def _in_thread(self, call: Callable[..., None], *arguments: object) -> None:
        self.is_begun.set()
        await self.may_write.wait()
        await asyncio.to_thread(call, *arguments)

    def counted(self, became: str) -> float:
        count: float = self.metrics.bills.labels(became=became)._value.get()
        return count

    def shape(self) -> list[tuple[int, int]]:
        return [(each.turns, each.messages) for each in self.store.sessions()]


def test_one_that_is_being_recorded_is_not_lost_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bills, "_MOST_WAITING", 2)

    async def work() -> None:
        late = Recorder()
        late.bills.enqueue(bill("one"))
        late.bills.enqueue(bill("two"))
        writing = asyncio.create_task(late.bills.drain())
        await late.is_begun.wait()
        late.bills.enqueue(bill("three"))
        late.may_write.set()
        assert await writing
        assert late.shape() == [(1, 2)] * 3
        assert (late.counted("late"), late.counted("lost")) == (3, 0)
        await late.bills.close()

    asyncio.run(asyncio.wait_for(work(), 30))


def test_a_turn_waits_for_what_is_being_recorded_and_may_give_up() -> None:
    async def work() -> None:
        late = Recorder()
        late.bills.enqueue(bill("one"))
        late.bills.enqueue(bill("one", "well", "two"))
        writing = asyncio.create_task(late.bills.drain())
        await late.is_begun.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(late.bills.drain_if_due(), 0.01)
        waiting = asyncio.create_task(late.bills.drain_if_due())
        writing.cancel()
        late.may_write.set()
        await waiting
        assert late.shape() == [(2, 4)], "all was recorded before the turn begins, and once"
        assert late.counted("late") == 2
        await late.bills.close()

    asyncio.run(asyncio.wait_for(work(), 30))


def test_a_request_waits_no_longer_for_late_answers_than_for_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "_STORE_SECONDS", 0.05)
    over = threading.Event()

    async def work() -> None:
        gateway = Gateway(GatewayOptions(), MemoryStore())
        busy = [gateway._threads.submit(over.wait) for _ in range(app._THREADS)]
        gateway._recordings.enqueue(bill("one"))
        try:
            async with asyncio.timeout(20) as patience:
                with pytest.raises(TimeoutError):
                    await gateway._prepare_turn(asked("one", "well", "two"), CONTEXT, "client")
            assert not patience.expired()
        finally:
            over.set()
        assert all(each.result() for each in busy)
        await gateway.close()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_an_answer_that_is_recorded_after_a_later_turn_takes_nothing_back() -> None:
    store = MemoryStore()
    turns = GatewayTurns(OpenSessions(store, GatewayOptions()), GatewayOptions())
    lists = [("one",), ("one", "well", "two"), ("one", "well", "two", "well", "three")]
    first, late, last = (bill(*each, hint="s") for each in lists)
    for each in (first, last):
        turns.end(turns.begin(each.client_request, CONTEXT), each.answer)
    turns.catch_up(late.client_request, CONTEXT, late.answer)
    (session,) = store.sessions()
    assert (session.turns, session.messages) == (3, 6), "it is billed"
    turn = turns.begin(asked(*lists[-1], "well", "four", hint="s"), CONTEXT)
    assert turn.session.name == session.name
    assert [each.text for each in internals(turn.session).ledger.view.messages] == [*lists[-1], "well"]


def test_counting_takes_no_place_of_a_session_that_goes_on() -> None:
    options = GatewayOptions(open_sessions=2)
    sessions = OpenSessions(MemoryStore(), options)
    turns = GatewayTurns(sessions, options)
    turn = turns.begin(asked("one"), CONTEXT)
    turns.end(turn, bill("one").answer)
    grown = ("one", "well", "two")
    turns.end(turns.begin(asked(*grown), CONTEXT), bill(*grown, answer="fine").answer)
    for number in range(4):
        turns.body_for_counting(asked(f"another {number}"), CONTEXT)
        turns.body_for_counting(asked("one", "well", f"instead {number}"), CONTEXT)
    assert sessions.open == 1
    assert turns.begin(asked(*grown, "fine", "three"), CONTEXT).session is turn.session
