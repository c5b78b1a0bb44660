"""Passing an answer on while it is read: nothing waits but its very end, until it is recorded."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableSequence, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import aiohttp

from lowwater.core.formats.streams import before_last_event, stream_for
from lowwater.core.messages import Format
from lowwater.gateway.answering import Answering
from lowwater.gateway.exchange import Send, piece, start
from lowwater.gateway.logs import where

T = TypeVar("T")

_log = logging.getLogger("lowwater.gateway")

Record = Callable[[bytes | None], Awaitable[None]]
"""Takes the whole answer, or None if there is none."""

EVENTS = "text/event-stream"


class Watched:
    """Reads a stream beside its way to a client; whatever comes, and whatever is wrong with the reader, nothing is raised."""

    def __init__(self, format: Format) -> None:
        self._stream = stream_for(format)
        self._defect = ""

    @property
    def is_done(self) -> bool:
        """Whether the whole answer is there."""
        return not self._defect and self._stream.is_done

    @property
    def has_begun(self) -> bool:
        """Whether something of the answer has come."""
        return self._stream.has_begun

    @property
    def broken(self) -> str:
        """Why there will be no whole answer; empty if nothing speaks against one."""
        return self._defect or self._stream.broken

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        self._tried(lambda: self._stream.feed(chunk))

    def end(self) -> None:
        """Take note that no more bytes come."""
        self._tried(self._stream.end)

    def answer(self) -> bytes | None:
        """Return the whole answer; None if there is none."""
        return self._tried(self._stream.answer)

    def _tried(self, read: Callable[[], T]) -> T | None:
        if self._defect:
            return None
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - a provider may say anything, and its client gets all of it
            self._defect = f"the stream cannot be read: {type(error).__name__}"
            _log.error("a stream that cannot be read: %s", where(error))
            return None


async def relay(response: aiohttp.ClientResponse, answering: Answering) -> None:
    """Pass a response on as it is; a client that goes away takes it with it."""
    await while_listening(_copied(response, answering.send), partial(_close, response), answering)


async def relay_answer(
    response: aiohttp.ClientResponse,
    answering: Answering,
    *,
    format: Format,
    record: Record,
    before: Sequence[bytes] = (),
) -> None:
    """Pass a model's answer on, of which `before` was read already; it is recorded before the client gets the last of it."""
    if response.content_type == EVENTS:
        passing = _streamed(response, answering.send, format, record, before)
    else:
        passing = _whole(response, answering.send, record)
    await while_listening(passing, partial(_close, response), answering)


async def peeked(response: aiohttp.ClientResponse) -> bytes:
    """Return the whole body of a refusal."""
    try:
        return await response.read()
    except BaseException:
        response.close()
        raise


async def relay_read(response: aiohttp.ClientResponse, body: bytes, answering: Answering) -> None:
    """Pass on a response whose body was read already."""
    await start(answering.send, response)
    await piece(answering.send, body, more=False)
    response.release()


async def _copied(response: aiohttp.ClientResponse, send: Send) -> None:
    await start(send, response)
    async for chunk in received(response):
        await piece(send, chunk, more=True)
    await piece(send, b"", more=False)


async def _whole(response: aiohttp.ClientResponse, send: Send, record: Record) -> None:
    try:
        body = await response.read()
    except BaseException:
        await unfinished(response, record)
        raise
    await record(body)
    await start(send, response)
    await piece(send, body, more=False)


async def _streamed(
    response: aiohttp.ClientResponse, send: Send, format: Format, record: Record, before: Sequence[bytes]
) -> None:
    answer, recorded = Watched(format), False
    await start(send, response)
    try:
        async for chunk in chunks_of(response, before):
            # A short answer comes as one chunk: what stands before its last event need not wait for the store.
            for events in before_last_event(chunk):
                answer.feed(events)
                if answer.is_done and not recorded:
                    recorded = True
                    await record(answer.answer())
                if events:
                    await piece(send, events, more=True)
        if not recorded:
            answer.end()
            recorded = True
            await record(answer.answer())
    finally:
        if not recorded:
            await unfinished(response, record)
    await piece(send, b"", more=False)


async def unfinished(response: aiohttp.ClientResponse, record: Record) -> None:
    """Let go of the provider at once, and only then note that there is no whole answer."""
    response.close()
    with suppress(asyncio.CancelledError):
        await asyncio.shield(record(None))


async def chunks_of(response: aiohttp.ClientResponse, before: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Yield what was read of a stream, and what comes behind it."""
    for chunk in before:
        yield chunk
    async for chunk in received(response):
        yield chunk


async def received(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield a response's body as it comes; if its provider dies, all that came until then comes before the error."""
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError):
        if left := _left_in(response.content):
            yield left
        raise


def _left_in(content: aiohttp.StreamReader) -> bytes:
    """Take what was received and not asked for yet: aiohttp raises a provider's death at once, and keeps that to itself."""
    kept: MutableSequence[bytes] = getattr(content, "_buffer", [])
    left = b"".join(kept)[getattr(content, "_buffer_offset", 0) :]
    kept.clear()
    return left


class Close(Protocol):
    """Lets go of a provider's response."""

    def __call__(self, *, is_whole: bool) -> None:
        """Give its connection back if it was read to its end, or else cut it off."""
        ...


def _close(response: aiohttp.ClientResponse, *, is_whole: bool) -> None:
    response.release() if is_whole else response.close()


async def while_listening(passing: Coroutine[Any, Any, None], close: Close, answering: Answering) -> None:
    """Pass on until it is done or the client has gone, and let go of the provider either way."""
    is_whole = False
    try:
        await answering.unless_gone(passing)
        is_whole = True
    finally:
        close(is_whole=is_whole)
