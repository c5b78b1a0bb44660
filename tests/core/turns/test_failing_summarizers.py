"""Invariant 9: a failing, slow, refusing or lying summarizer never blocks a turn for long and never loses anything."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.view import Summary
from lowwater.errors import BadInput, SummaryFailed
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import PrivacySettings, Settings
from lowwater.testing.fakes import (
    Act,
    AsyncScriptedSummarizer,
    RecordingSink,
    ScriptedClock,
    ScriptedSummarizer,
    cut_off,
    fail,
    grow,
    hang,
    lie,
    refuse,
    speak_another_language,
    tell_the_truth,
    write,
)
from lowwater.testing.legality import refusal_of
from tests.generated import generate_session

DEADLINE = 0.3
BOUND = 3.0
"""What a turn may take in all on a busy machine; no summarizer here would be done by then."""

FORM = generate_session("coding", seed=31, target_tokens=70_000)
MESSAGES = [json.loads(raw) for raw in FORM.as_anthropic().messages[:-1]]
TOOLS = json.loads(FORM.tools_json("anthropic"))


def nothing(_: SummaryRequest) -> Any:
    return None


def a_number(_: SummaryRequest) -> Any:
    return Written(text=7, by="numbers")  # type: ignore[arg-type]  # what it is about


FAILURES: dict[str, Act] = {
    "refuses": refuse,
    "is cut off": cut_off,
    "grows": grow,
    "says nothing": write(""),
    "says too little": write("ok"),
    "raises": fail(RuntimeError("secret sk-12345")),
    "raises what it should": fail(SummaryFailed("no summary", "auth")),
    "loses the connection": fail(ConnectionResetError()),
    "dies": fail(SystemExit(1)),
    "returns None": nothing,
    "returns something else": a_number,
}
EVERY_FAILURE = pytest.mark.parametrize("act", FAILURES.values(), ids=FAILURES)


class Opened:
    """A session past its threshold, in a window of 128,000 tokens."""

    def __init__(self, *summarizers: Any, policy: str = "threshold", **options: Any) -> None:
        self.sink = RecordingSink()
        self.clock = ScriptedClock(1_000.0)
        self.session: Session = Lowwater(
            model="model-nobody-knows",
            policy=policy,
            summarizer=summarizers,
            sinks=[self.sink],
            clock=self.clock,
            **{"deadline": DEADLINE, **options},
        ).session()
        self.session.append(MESSAGES)

    def check(self, request: Any) -> None:
        assert self.session.history() == MESSAGES
        body = {"model": "claude-opus-4-5", "max_tokens": 1, "tools": TOOLS, **request.as_anthropic()}
        assert refusal_of(body, "anthropic") is None


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.monotonic()
    return call(), time.monotonic() - start


@EVERY_FAILURE
def test_what_a_summarizer_gets_wrong_is_written_without_it(act: Act) -> None:
    opened = Opened(ScriptedSummarizer(act), deadline=30.0)
    request, _ = timed(opened.session.prepare)
    opened.check(request)
    (event,) = opened.sink.compactions
    assert event.summarizer == "extractive"
    assert event.score is not None
    assert event.score >= 0.5


@pytest.mark.parametrize(
    ("act", "code"),
    [(lie, "references_missing"), (speak_another_language, "other_language")],
    ids=["lies", "speaks another language"],
)
def test_a_fluent_text_about_nothing_is_passed_over(act: Act, code: str) -> None:
    opened = Opened(ScriptedSummarizer(act), deadline=30.0)
    opened.check(opened.session.prepare())
    (event,) = opened.sink.compactions
    assert event.summarizer == "extractive"
    assert event.score is not None
    assert event.score >= 0.5, "half of what matters is in it"
    assert [(told.by, told.code) for told in event.rejected] == [
        (act(SummaryRequest(messages=(), max_tokens=1)).by, code)
    ]


def test_a_summarizer_that_hangs_is_left_behind_at_the_deadline() -> None:
    release = threading.Event()
    opened = Opened(ScriptedSummarizer(hang(release)))
    request, seconds = timed(opened.session.prepare)
    release.set()
    assert DEADLINE <= seconds < BOUND
    opened.check(request)
    assert opened.sink.compactions[0].summarizer == "extractive"


def test_one_that_hangs_leaves_time_for_the_next() -> None:
    release = threading.Event()
    second = ScriptedSummarizer(refuse)
    opened = Opened(ScriptedSummarizer(hang(release)), second)
    _, seconds = timed(opened.session.prepare)
    release.set()
    assert len(second.requests) == 1
    assert seconds < BOUND


def test_many_passes_wait_no_longer_than_one() -> None:
    release = threading.Event()
    hanging = ScriptedSummarizer(hang(release))
    opened = Opened(hanging, policy="guarded")
    opened.session.learn_context_length(30_000)
    request, seconds = timed(opened.session.prepare)
    release.set()
    assert seconds < BOUND
    assert len(hanging.requests) == 1, "who failed in an event is not asked again in it"
    opened.check(request)
    assert opened.sink.compactions


def test_the_pause_counts_from_the_failure_and_not_from_the_beginning_of_the_wait() -> None:
    class Slow:
        def summarize(self, _: SummaryRequest, /) -> Written:
            opened.clock.advance(90)
            raise SummaryFailed("slow", "timeout")

    opened = Opened(Slow(), deadline=30.0)
    opened.session.prepare()
    opened.session.append([{"role": "assistant", "content": "Done."}, *MESSAGES])
    opened.session.prepare()
    assert "is left alone" in opened.session.explain()


def renamed(turn: int) -> list[Any]:
    text = json.dumps(MESSAGES).replace('"call_', f'"call_{turn}_')
    return list(json.loads(text))


# Awaited


def test_an_async_summarizer_is_awaited_and_a_blocking_call_says_so() -> None:
    opened = Opened(AsyncScriptedSummarizer(refuse), deadline=30.0)
    with pytest.raises(BadInput, match="call aprepare, acompress or aprefetch_summary"):
        opened.session.prepare()
    opened.check(asyncio.run(opened.session.aprepare()))
    assert opened.sink.compactions


@pytest.mark.parametrize("name", ["refuses", "loses the connection", "returns None"])
def test_what_an_awaited_summarizer_gets_wrong_is_written_without_it(name: str) -> None:
    opened = Opened(AsyncScriptedSummarizer(FAILURES[name]), deadline=30.0)
    opened.check(asyncio.run(opened.session.aprepare()))
    assert opened.sink.compactions[0].summarizer == "extractive"


def test_an_awaited_summarizer_that_hangs_is_left_behind_at_the_deadline() -> None:
    async def run() -> Opened:
        opened = Opened(AsyncScriptedSummarizer(refuse, gate=asyncio.Event()))
        opened.check(await opened.session.aprepare())
        return opened

    opened, seconds = timed(lambda: asyncio.run(run()))
    assert DEADLINE <= seconds < BOUND
    assert opened.sink.compactions[0].summarizer == "extractive"


def test_one_that_swallows_its_cancellation_is_left_behind_too() -> None:
    class Stubborn:
        def __init__(self) -> None:
            self.release = asyncio.Event()

        async def summarize(self, _: SummaryRequest, /) -> Written:
            while not self.release.is_set():
                try:
                    await self.release.wait()
                except asyncio.CancelledError:
                    continue
            return Written(text="too late", by="stubborn")

    async def run() -> float:
        stubborn = Stubborn()
        opened = Opened(stubborn)
        start = time.monotonic()
        opened.check(await opened.session.aprepare())
        seconds = time.monotonic() - start
        stubborn.release.set()
        return seconds

    assert DEADLINE <= asyncio.run(run()) < BOUND


def test_a_summarizer_that_blocks_does_not_block_the_event_loop_nor_its_end() -> None:
    release = threading.Event()

    async def run() -> int:
        opened = Opened(ScriptedSummarizer(hang(release)))
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        opened.check(await opened.session.aprepare())
        ticking.cancel()
        return ticks

    ticks, seconds = timed(lambda: asyncio.run(run()))
    release.set()
    assert seconds < BOUND
    assert ticks > 10


def test_a_cancelled_turn_leaves_the_session_as_it_was() -> None:
    async def run() -> None:
        gate = asyncio.Event()
        summarizer = AsyncScriptedSummarizer(refuse, gate=gate)
        opened = Opened(summarizer, deadline=30.0)
        session = opened.session
        before = internals(session).ledger
        turn = asyncio.create_task(session.aprepare([*MESSAGES, *renamed(9)], system="Be brief."))
        while not summarizer.waiting:
            await asyncio.sleep(0)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert internals(session).ledger is before
        assert opened.sink.events == []
        assert internals(session).decision is None
        gate.set()
        opened.check(await session.aprepare())

    asyncio.run(run())


# What it writes is checked like any input


def with_half_a_character(request: SummaryRequest) -> Written:
    told = tell_the_truth(request)
    return Written(text=f"{told.text}\n- half \ud83d of a \udc00character", by="half\ud800\0 a name")


def with_invented_handles(request: SummaryRequest) -> Written:
    told = tell_the_truth(request)
    outside = max(request.numbers) + 3
    return Written(
        text=f"{told.text}\n- see lw:999999, lw:{outside} and lw:{request.numbers[-1]}", by="inventive"
    )


@pytest.mark.parametrize(("store", "colour"), [("memory", "async"), ("file", "sync")])
def test_half_a_character_in_a_summary_breaks_no_request(store: str, colour: str, tmp_path: Path) -> None:
    where = {"store": f"sqlite:///{tmp_path / 'sessions.db'}"} if store == "file" else {}
    kind = ScriptedSummarizer if colour == "sync" else AsyncScriptedSummarizer
    opened = Opened(kind(with_half_a_character), deadline=30.0, **where)
    request = opened.session.prepare() if colour == "sync" else asyncio.run(opened.session.aprepare())
    (event,) = opened.sink.compactions
    assert event.summarizer == "half�  a name"
    assert "half � of a �character" in json.dumps(request.as_anthropic(), ensure_ascii=False)
    opened.check(request)


def test_handles_that_a_summary_invents_never_go_out() -> None:
    opened = Opened(ScriptedSummarizer(with_invented_handles), deadline=30.0)
    request = opened.session.prepare(offers_recall=True)
    (event,) = opened.sink.compactions
    assert event.summarizer == "inventive"
    sent = json.dumps(request.as_anthropic(), ensure_ascii=False)
    summary = next(item for item in internals(opened.session).ledger.view.items if isinstance(item, Summary))
    assert (
        f"- see [no such message], [no such message] and lw:{summary.sources[-1].last}"
        in summary.message.text
    )
    assert "lw:999999" not in sent


@pytest.mark.parametrize("redact", [True, False], ids=["redacted", "as it is"])
def test_a_summarizer_of_ones_own_sees_secrets_only_where_redaction_is_off(*, redact: bool) -> None:
    key = "sk-ant-api03-" + "Zq8Lr2Vx" * 11 + "AA"
    settings = Settings(privacy=PrivacySettings(redact=redact))
    own = ScriptedSummarizer(tell_the_truth)
    opened = Opened(own, settings=settings, deadline=30.0)
    opened.session.append(
        [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": f"Deploy with {key} now."}]
    )
    opened.session.append([{"role": "assistant", "content": "Done."}, *renamed(0)])
    opened.session.compress("the deployment")
    assert opened.sink.compactions
    (asked,) = own.requests
    assert (key in repr(asked)) is not redact
    assert asked.redact is redact
    assert ("[redacted: " in repr(asked.messages)) is redact
