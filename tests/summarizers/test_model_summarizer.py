"""A model behind a real server that misbehaves: every failure is a SummaryFailed, in bounded time, without the key."""

import asyncio
import logging
import socket
import time
import traceback
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from lowwater.core.messages import Format
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.errors import SummaryFailed
from lowwater.summarizers.http import MOST_ANSWER_BYTES
from lowwater.summarizers.model import AsyncModelSummarizer, ModelSummarizer
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
    Think,
)
from tests.summarizers.conftest import DRIP, MODELS, RudeServer, http, request_of

KEY = "sk-very-secret-4711"
GOOD = "## Goal\n- Make the tests pass.\n"
BOUND = 5.0
"""Seconds that a failing call may take on a busy machine."""

Ask = Callable[..., Written]


def blocking(request: SummaryRequest, **options: Any) -> Written:
    return ModelSummarizer(**options).summarize(request)


def awaited(request: SummaryRequest, **options: Any) -> Written:
    return asyncio.run(AsyncModelSummarizer(**options).summarize(request))


BOTH_COLOURS = pytest.mark.parametrize("ask", [blocking, awaited], ids=["sync", "async"])
ALL_FORMATS = pytest.mark.parametrize("format", MODELS)


def options_for(url: str, format: Format = "openai_chat", **others: Any) -> dict[str, Any]:
    base = url if format == "anthropic" else f"{url}/v1"
    model = MODELS[format]
    return {"model": model, "base_url": base, "api_key": KEY, "format": format, "timeout": 10.0, **others}


def failing(ask: Ask, options: dict[str, Any]) -> tuple[SummaryFailed, float]:
    """The failure, and how long it took; nothing that could be printed of it holds the key."""
    start = time.monotonic()
    with pytest.raises(SummaryFailed) as caught:
        ask(request_of(options["format"]), **options)
    seconds = time.monotonic() - start
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return caught.value, seconds


@BOTH_COLOURS
@ALL_FORMATS
def test_a_summary_comes_with_its_usage(ask: Ask, format: Format) -> None:
    with Provider(default=Say(GOOD)) as provider:
        written = ask(request_of(format), **options_for(provider.anthropic_base_url, format))
        (seen,) = provider.requests
    assert (written.text, written.by, written.cut_off) == (GOOD.strip(), MODELS[format], False)
    assert written.usage is not None
    assert written.usage.prompt > 500
    assert seen.refusal is None


ANSWERS: dict[str, tuple[Answer, str, str]] = {
    "refuses": (Refuse(), "declined", "refused"),
    "calls a tool": (CallTools((Call("bash"),)), "called a tool", "failed"),
    "says nothing": (Say(""), "answered with nothing", "failed"),
    "has no access": (Fail(401, "authentication_error", f"bad key {KEY}"), "no access", "auth"),
    "forbids": (Fail(403, "permission_error", "no"), "no access", "auth"),
    "does not know it": (Fail(404, "not_found_error", "no such model"), "refuses the request", "refused"),
    "finds it too long": (
        Fail(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"),
        "window of 200,000 tokens",
        "refused",
    ),
    "finds it too large": (Fail(413, "request_too_large", "too large"), "longer than", "refused"),
    "dies in the middle": (DropConnection("x" * 5_000), "in the middle of the answer", "network"),
    "wants an hour": (Fail(429, "rate_limit_error", "slow down", retry_after=3_600), "3600 s", "timeout"),
}


@BOTH_COLOURS
@ALL_FORMATS
@pytest.mark.parametrize("failure", ANSWERS)
def test_a_provider_that_does_not_write_one_is_asked_once(ask: Ask, format: Format, failure: str) -> None:
    answer, says, kind = ANSWERS[failure]
    with Provider(default=answer) as provider:
        error, seconds = failing(ask, options_for(provider.anthropic_base_url, format))
        assert len(provider.requests) == 1
    assert says in str(error)
    assert error.kind == kind
    assert seconds < BOUND


@BOTH_COLOURS
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_one_that_is_busy_is_asked_again(ask: Ask, status: int) -> None:
    busy = Fail(status, "overloaded_error", "busy", retry_after=0)
    with Provider([busy, busy, Say(GOOD)]) as provider:
        written = ask(request_of(), **options_for(provider.anthropic_base_url, "anthropic"))
        assert len(provider.requests) == 3
    assert written.text == GOOD.strip()


@BOTH_COLOURS
def test_one_that_stays_busy_is_given_up(ask: Ask) -> None:
    with Provider(default=Fail(529, "overloaded_error", "busy", retry_after=0)) as provider:
        error, _ = failing(ask, options_for(provider.anthropic_base_url, "anthropic"))
        assert len(provider.requests) == 3
    assert error.kind == "network"


@BOTH_COLOURS
@ALL_FORMATS
def test_what_its_length_ended_is_cut_off(ask: Ask, format: Format) -> None:
    with Provider(default=CutOff("## Goal\n- Make the")) as provider:
        assert ask(request_of(format), **options_for(provider.anthropic_base_url, format)).cut_off


@BOTH_COLOURS
@pytest.mark.parametrize("format", ["anthropic", "openai_responses"])
def test_thinking_before_it_does_not_matter(ask: Ask, format: Format) -> None:
    with Provider(default=Think("hm", Say(GOOD))) as provider:
        written = ask(request_of(format), **options_for(provider.anthropic_base_url, format))
    assert written.text == GOOD.strip()


@BOTH_COLOURS
@pytest.mark.parametrize("format", ["anthropic", "openai_responses"])
@pytest.mark.parametrize("by", ["timeout", "request"])
def test_one_that_hangs_is_left_in_time(ask: Ask, by: str, format: Format) -> None:
    with Provider(default=Hang()) as provider:
        options = options_for(provider.anthropic_base_url, format)
        request = request_of(format)
        if by == "timeout":
            options["timeout"] = 0.3
        else:
            request = replace(request, within=0.3)
        start = time.monotonic()
        with pytest.raises(SummaryFailed) as caught:
            ask(request, **options)
        seconds = time.monotonic() - start
    assert caught.value.kind == "timeout"
    assert 0.3 <= seconds < BOUND


RUDE: dict[str, tuple[bytes, str, str, int]] = {
    "malformed JSON": (http(b'{"choices": [{'), "cannot be read", "failed", 1),
    "a page": (http(b"<html>Bad gateway</html>"), "cannot be read", "failed", 1),
    "an error in a success": (http(b'{"error": {"message": "no"}}'), "cannot be read", "failed", 1),
    "a response that failed": (
        http(b'{"status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []}'),
        "not able to answer now",
        "network",
        1,
    ),
    "nothing": (b"", "connection failed", "network", 3),
    "half a head": (b"HTTP/1.1 200 OK\r\ncontent-le", "connection failed", "network", 3),
    "half a body": (http(b"x" * 90)[:-30], "in the middle", "network", 1),
    "a redirect": (
        http(b"", "307 Temporary Redirect", "location: http://127.0.0.1:9/"),
        "refuses",
        "refused",
        1,
    ),
    "a broken compression": (
        http(b"xxxx", "200 OK", "content-encoding: gzip"),
        "cannot be read",
        "failed",
        1,
    ),
    "without end": (
        http(b" " * (MOST_ANSWER_BYTES + 1)),
        "longer than 8,000,000 bytes",
        "refused",
        1,
    ),
}


@BOTH_COLOURS
@pytest.mark.parametrize("answer", RUDE)
def test_a_server_without_manners_costs_a_bounded_wait(ask: Ask, answer: str, rude: type[RudeServer]) -> None:
    raw, says, kind, times = RUDE[answer]
    server = rude(raw)
    error, seconds = failing(ask, options_for(server.url))
    assert says in str(error)
    assert error.kind == kind
    assert len(server.seen) == times
    assert seconds < BOUND


@BOTH_COLOURS
def test_one_that_answers_drop_by_drop_is_left_in_time(ask: Ask, rude: type[RudeServer]) -> None:
    server = rude(DRIP + http(b"x" * 1_000_000))
    error, seconds = failing(ask, options_for(server.url, timeout=0.4))
    assert error.kind == "timeout"
    assert 0.4 <= seconds < BOUND


@BOTH_COLOURS
def test_nobody_there_is_a_failure_of_the_network(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = "http://{}:{}".format(*closed.getsockname())
    error, seconds = failing(ask, options_for(url))
    assert error.kind == "network"
    assert seconds < BOUND


def test_the_key_is_sent_and_never_shown(rude: type[RudeServer]) -> None:
    server = rude(http(b"{}"))
    summarizer = ModelSummarizer(**options_for(server.url))
    with pytest.raises(SummaryFailed):
        summarizer.summarize(request_of())
    assert f"authorization: bearer {KEY}".encode() in server.seen[0].lower()
    assert KEY not in f"{summarizer!r} {summarizer} {AsyncModelSummarizer(**options_for(server.url))!r}"
    assert repr(summarizer) == "ModelSummarizer(model='gpt-4.1', format='openai_chat', host='127.0.0.1')"


@BOTH_COLOURS
@ALL_FORMATS
def test_no_log_holds_the_key_or_what_was_said(
    ask: Ask, format: Format, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    busy = Fail(503, "api_error", "busy", retry_after=0)
    with Provider([busy, Say(GOOD)]) as provider:
        ask(request_of(format), **options_for(provider.anthropic_base_url, format))
    assert "503" in caplog.text, "the client does log"
    assert KEY not in caplog.text
    assert "transcript" not in caplog.text


def test_a_client_of_ones_own_is_used_and_left_open() -> None:
    with Provider(default=Say(GOOD)) as provider, httpx2.Client(headers={"x-mine": "yes"}) as client:
        summarizer = ModelSummarizer(**options_for(provider.openai_base_url[:-3], client=client))
        summarizer.summarize(request_of())
        summarizer.summarize(request_of())
        assert [seen.headers["x-mine"] for seen in provider.requests] == ["yes", "yes"]
        assert not client.is_closed


def test_an_async_client_of_ones_own_is_used_and_left_open() -> None:
    async def twice(url: str) -> bool:
        async with httpx2.AsyncClient(headers={"x-mine": "yes"}) as client:
            summarizer = AsyncModelSummarizer(**options_for(url, client=client))
            await asyncio.gather(summarizer.summarize(request_of()), summarizer.summarize(request_of()))
            return not client.is_closed

    with Provider(default=Say(GOOD)) as provider:
        assert asyncio.run(twice(provider.anthropic_base_url))
        assert [seen.headers["x-mine"] for seen in provider.requests] == ["yes", "yes"]


def test_one_that_is_cancelled_stops() -> None:
    async def cancelled(url: str) -> None:
        task = asyncio.create_task(AsyncModelSummarizer(**options_for(url)).summarize(request_of()))
        while not provider.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Provider(default=Hang()) as provider:
        asyncio.run(cancelled(provider.anthropic_base_url))
