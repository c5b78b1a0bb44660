"""Carries out the steps of an exchange over HTTP, blocking or awaited, within its time and a limit of bytes."""

import asyncio
import ssl
import time
from collections.abc import Generator
from functools import cache

import httpx2

from lowwater.errors import SummaryFailed
from lowwater.summarizers.endpoint import Endpoint
from lowwater.summarizers.exchange import ExchangeStep, Lost, Post, Reply, RetryPause, StepResult

MOST_ANSWER_BYTES = 8_000_000
"""The longest answer that is read; no summary is that long."""
_CONNECT = 10.0
_TOO_LATE = "no answer in time"


def fulfil(
    steps: Generator[ExchangeStep, StepResult, bytes], endpoint: Endpoint, client: httpx2.Client | None
) -> bytes:
    """Run an exchange to its end; without a client, a new one is used."""
    if client is None:
        with httpx2.Client(verify=_trusted()) as own:
            return fulfil(steps, endpoint, own)
    outcome: StepResult = None
    try:
        while True:
            match steps.send(outcome):
                case RetryPause(seconds=seconds):
                    time.sleep(seconds)
                    outcome = None
                case Post() as post:
                    outcome = _post(post, endpoint, client)
    except StopIteration as done:
        return bytes(done.value)


async def afulfil(
    steps: Generator[ExchangeStep, StepResult, bytes], endpoint: Endpoint, client: httpx2.AsyncClient | None
) -> bytes:
    """Do what `fulfil` does without blocking the event loop."""
    if client is None:
        async with httpx2.AsyncClient(verify=await asyncio.to_thread(_trusted)) as own:
            return await afulfil(steps, endpoint, own)
    outcome: StepResult = None
    while True:
        try:
            step = steps.send(outcome)
        except StopIteration as done:
            return bytes(done.value)
        match step:
            case RetryPause(seconds=seconds):
                await asyncio.sleep(seconds)
                outcome = None
            case Post():
                outcome = await _apost(step, endpoint, client)


@cache
def _trusted() -> ssl.SSLContext:
    """Return the trusted certificates, read once: that takes longer than everything else about a client."""
    return httpx2.create_ssl_context()


def _post(post: Post, endpoint: Endpoint, client: httpx2.Client) -> Reply | Lost:
    until = time.monotonic() + post.seconds
    began = False
    try:
        request = _request(post, endpoint, client)
        response = client.send(request, stream=True, auth=None, follow_redirects=False)
        began = True
        try:
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MOST_ANSWER_BYTES:
                    return _too_much()
                # The client's timeout starts anew with each chunk: a server that sends byte by byte would hold us for ever.
                if time.monotonic() > until:
                    return _too_late()
        finally:
            response.close()
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        return _lost(error, began=began)
    return _reply(response, bytes(body))


async def _apost(post: Post, endpoint: Endpoint, client: httpx2.AsyncClient) -> Reply | Lost:
    began = False
    try:
        async with asyncio.timeout(post.seconds):
            request = _request(post, endpoint, client)
            response = await client.send(request, stream=True, auth=None, follow_redirects=False)
            began = True
            try:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MOST_ANSWER_BYTES:
                        return _too_much()
            finally:
                await response.aclose()
    except TimeoutError:
        return _too_late()
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        return _lost(error, began=began)
    return _reply(response, bytes(body))


def _request(post: Post, endpoint: Endpoint, client: httpx2.Client | httpx2.AsyncClient) -> httpx2.Request:
    timeout = httpx2.Timeout(post.seconds, connect=min(_CONNECT, post.seconds))
    return client.build_request(
        "POST", endpoint.url, content=post.body, headers=dict(endpoint.headers), timeout=timeout
    )


def _reply(response: httpx2.Response, body: bytes) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(status=response.status_code, headers=headers, body=body)


def _lost(error: Exception, *, began: bool) -> Lost:
    """Return what an error means; only its type is named, because its text may quote what was sent."""
    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return Lost(because=SummaryFailed("no connection in time", "network"), again=True)
        case httpx2.TimeoutException():
            return _too_late()
        case httpx2.TransportError() if began:
            return Lost(because=SummaryFailed("the connection broke in the middle of the answer", "network"))
        case httpx2.TransportError():
            said = f"the connection failed ({type(error).__name__})"
            return Lost(because=SummaryFailed(said, "network"), again=True)
        case _:
            return Lost(because=SummaryFailed(f"the answer cannot be read ({type(error).__name__})"))


def _too_late() -> Lost:
    return Lost(because=SummaryFailed(_TOO_LATE, "timeout"))


def _too_much() -> Lost:
    return Lost(because=SummaryFailed(f"the answer is longer than {MOST_ANSWER_BYTES:,} bytes", "refused"))
