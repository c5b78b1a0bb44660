import asyncio
import threading

import pytest

from lowwater.core.decisions import Reason
from lowwater.core.events import Skip
from lowwater.core.messages import Message, Text
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.summary.validation import validate
from lowwater.errors import BadSetting, SummaryFailed
from lowwater.protocols import Summarizer
from lowwater.testing.fakes import (
    Act,
    AsyncScriptedSummarizer,
    RecordingSink,
    ScriptedClock,
    ScriptedSummarizer,
    WordTokenizer,
    cut_off,
    fail,
    grow,
    hang,
    lie,
    refuse,
    speak_another_language,
    write,
)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_the_clock_does_not_run_backwards(seconds: float) -> None:
    with pytest.raises(BadSetting, match="only goes forward"):
        ScriptedClock().advance(seconds)


REQUEST = SummaryRequest(
    messages=(Message(role="user", parts=(Text(text="Fix src/app.py."),)),), max_tokens=50
)


def test_a_scripted_summarizer_follows_its_script_and_repeats_the_end() -> None:
    summarizer = ScriptedSummarizer(write("one"), write("two"))
    assert [summarizer.summarize(REQUEST).text for _ in range(3)] == ["one", "two", "two"]
    assert summarizer.requests == [REQUEST] * 3
    port: Summarizer = summarizer
    assert port is summarizer


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (refuse, "refusal"),
        (cut_off, "cut_off"),
        (lie, "references_missing"),
        (speak_another_language, "other_language"),
        (grow, "not_smaller"),
    ],
    ids=["refuse", "cut off", "lie", "other language", "grow"],
)
def test_every_bad_act_is_bad_for_the_reason_it_says(act: Act, code: str) -> None:
    text = "Fix src/app.py, src/db.py and tests/test_app.py; do not touch setup.cfg. " * 40
    asked = SummaryRequest(messages=(Message(role="user", parts=(Text(text=text),)),), max_tokens=50)
    replaced = WordTokenizer().count(text)
    assert validate(act(asked), asked, WordTokenizer(), replaced).because.code == code


def test_a_scripted_summarizer_raises_and_waits() -> None:
    with pytest.raises(SystemExit):
        ScriptedSummarizer(fail(SystemExit(3))).summarize(REQUEST)
    released = threading.Event()
    released.set()
    with pytest.raises(SummaryFailed):
        ScriptedSummarizer(hang(released)).summarize(REQUEST)


def test_an_awaited_one_waits_at_its_gate() -> None:
    async def run() -> str:
        gate = asyncio.Event()
        summarizer = AsyncScriptedSummarizer(write("done"), gate=gate)
        task = asyncio.create_task(summarizer.summarize(REQUEST))
        while not summarizer.waiting:
            await asyncio.sleep(0)
        assert not task.done()
        gate.set()
        return (await task).text

    assert asyncio.run(run()) == "done"


def test_a_recording_sink_sorts_what_it_heard() -> None:
    sink = RecordingSink()
    skip = Skip(at=0.0, because=Reason(code="below-threshold"), prompt=5)
    sink.record("s", skip)
    assert (sink.events, sink.skips, sink.compactions) == ([("s", skip)], [skip], [])
    with pytest.raises(ValueError, match="full"):
        RecordingSink(ValueError("full")).record("s", skip)
