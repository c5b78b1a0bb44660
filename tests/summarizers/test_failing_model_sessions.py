"""Invariant 9 with a model behind a real server: whatever it does costs a bounded wait and nothing else."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lowwater.core.events import Compaction
from lowwater.core.summary.frame import unframe
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.summarizers.model import AsyncModelSummarizer, ModelSummarizer
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from lowwater.testing.legality import refusal_of
from lowwater.testing.provider import (
    Answer,
    Call,
    CallTools,
    CutOff,
    DropConnection,
    Fail,
    Hang,
    Provider,
    Refuse,
    Say,
    Seen,
)
from tests.generated import generate_session
from tests.summarizers.conftest import RudeServer, http

FORM = generate_session("coding", seed=31, target_tokens=16_000)
MESSAGES = [json.loads(raw) for raw in FORM.as_anthropic().messages[:-1]]
TOOLS = json.loads(FORM.tools_json("anthropic"))
FOREIGN = "作業はすべて順調に進んでいます。利用者の依頼どおりに修正を行い、確認も終わりました。" * 6
CAKE = (
    "## Goal\n- Bake a cake.\n\n## Progress\n### Done\n- Bought flour and eggs.\n- Whipped the cream.\n" * 2
)
DEADLINE = 30.0
BOUND = 15.0
"""Seconds that compacting may take on a busy machine with a summarizer that fails at once."""

Compress = Callable[[str, float], tuple[Session, Compaction | None, float]]


def opened(summarizer: Any, deadline: float) -> tuple[Session, RecordingSink]:
    sink = RecordingSink()
    session = Lowwater(
        model="model-nobody-knows",
        summarizer=summarizer,
        sinks=[sink],
        clock=ScriptedClock(1_000.0),
        deadline=deadline,
    ).session()
    session.append(MESSAGES)
    return session, sink


def blocking(url: str, deadline: float = DEADLINE) -> tuple[Session, Compaction | None, float]:
    summarizer = ModelSummarizer(model="claude-sonnet-4-5", base_url=url, format="anthropic", api_key="k")
    session, _ = opened(summarizer, deadline)
    start = time.monotonic()
    return session, session.compress(), time.monotonic() - start


def awaited(url: str, deadline: float = DEADLINE) -> tuple[Session, Compaction | None, float]:
    summarizer = AsyncModelSummarizer(
        model="claude-sonnet-4-5", base_url=url, format="anthropic", api_key="k"
    )
    session, _ = opened(summarizer, deadline)
    start = time.monotonic()
    return session, asyncio.run(session.acompress()), time.monotonic() - start


BOTH_COLOURS = pytest.mark.parametrize("compress", [blocking, awaited], ids=["sync", "async"])


def check(session: Session) -> None:
    """Nothing was lost, and what would be sent next is legal."""
    assert session.history() == MESSAGES
    body = {"model": "claude-opus-4-5", "max_tokens": 1, "tools": TOOLS, "messages": session.view()}
    assert refusal_of(body, "anthropic") is None


def grown(seen: Seen) -> Answer:
    return Say("Everything matters.\n" + seen.body["messages"][-1]["content"] * 3)


FAILURES: dict[str, Answer | Callable[[Seen], Answer]] = {
    "refuses": Refuse(),
    "refuses in words": Say("I'm sorry, but I can't help with summarizing this conversation. " * 3),
    "is cut off": CutOff("## Goal\n- " + "The goal is to make the tests pass and " * 8),
    "grows": grown,
    "says nothing": Say(""),
    "says too little": Say("ok"),
    "calls a tool": CallTools((Call("bash", {"command": "ls"}),)),
    "dies in the middle": DropConnection("x" * 4_000),
    "has no access": Fail(401, "authentication_error", "no"),
    "finds it too long": Fail(400, "invalid_request_error", "prompt is too long: 3 tokens > 2 maximum"),
    "is out of order": Fail(500, "api_error", "no", retry_after=0),
    "is rate limited for long": Fail(429, "rate_limit_error", "no", retry_after=600),
}
MOST_ASKED = {"is out of order": 6, "dies in the middle": 2, "calls a tool": 2, "says nothing": 2}


@BOTH_COLOURS
@pytest.mark.parametrize("failure", FAILURES)
def test_what_a_model_gets_wrong_is_written_without_it(compress: Compress, failure: str) -> None:
    scripted = FAILURES[failure]
    script = scripted if callable(scripted) else (lambda _: scripted)
    with Provider(script, default_context=10**9) as provider:
        session, done, seconds = compress(provider.anthropic_base_url, DEADLINE)
        asked = len(provider.requests)
        assert not provider.refusals
    assert done is not None
    assert done.summarizer == "extractive"
    assert done.score is not None
    assert done.score >= 0.5
    assert asked == MOST_ASKED.get(failure, 1)
    assert seconds < BOUND
    check(session)


@BOTH_COLOURS
@pytest.mark.parametrize("text", [FOREIGN, CAKE], ids=["another language", "a lie"])
def test_a_fluent_text_about_nothing_is_repaired_or_passed_over(compress: Compress, text: str) -> None:
    with Provider(default=Say(text), default_context=10**9) as provider:
        session, done, _ = compress(provider.anthropic_base_url, DEADLINE)
    assert done is not None
    assert done.score is not None
    assert done.score >= 0.5, "half of what matters is in it, whoever wrote it"
    check(session)


@BOTH_COLOURS
def test_one_that_hangs_is_left_at_the_deadline(compress: Compress) -> None:
    with Provider(default=Hang(), default_context=10**9) as provider:
        session, done, seconds = compress(provider.anthropic_base_url, 0.5)
        assert len(provider.requests) == 1
        asking = [thread for thread in threading.enumerate() if thread.name == "lowwater-summarizer"]
        for thread in asking:
            thread.join(BOUND)
        assert not any(thread.is_alive() for thread in asking), (
            "it has stopped although the server never answers"
        )
    assert done is not None
    assert done.summarizer == "extractive"
    assert 0.5 <= seconds < BOUND
    check(session)


@BOTH_COLOURS
@pytest.mark.parametrize(
    "answer",
    [http(b'{"content": [{"ty'), b""],
    ids=["malformed", "nothing"],
)
def test_a_server_without_manners_does_no_harm(
    compress: Compress, answer: bytes, rude: type[RudeServer]
) -> None:
    session, done, seconds = compress(rude(answer).url, DEADLINE)
    assert done is not None
    assert done.summarizer == "extractive"
    assert seconds < BOUND
    check(session)


@BOTH_COLOURS
def test_a_good_summary_is_taken_with_its_writers_name(compress: Compress) -> None:
    without, _ = opened((), DEADLINE)
    assert without.compress() is not None
    (framed,) = [message["content"] for message in without.view() if message not in MESSAGES][:1]
    told = framed if isinstance(framed, str) else next(part["text"] for part in framed if "text" in part)
    good = unframe(told) + "\n- A model wrote this."
    with Provider(default=Say(good), default_context=10**9) as provider:
        session, done, _ = compress(provider.anthropic_base_url, DEADLINE)
    assert done is not None
    assert done.summarizer == "claude-sonnet-4-5"
    assert "A model wrote this." in json.dumps(session.view())
    check(session)
