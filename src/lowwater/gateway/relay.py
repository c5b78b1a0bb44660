"""One request through the gateway: sent, its answer passed on while it is read, nothing held back but its very end."""

import asyncio
import logging
import re
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar

import aiohttp
from msgspec import Struct

from lowwater.core.formats.streams import before_last_event, stream_for
from lowwater.core.messages import Format
from lowwater.gateway.admission import TOO_SLOW, Arriving
from lowwater.gateway.observability import LogLine, where
from lowwater.gateway.upstream import Headers, Refused, returned

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


NO_STATUS = 600
"""The first number that is no HTTP status any more."""
_NOT_PLAIN = re.compile(rb"[^\x21-\x7e]")
"""Bytes that a request line may not hold."""
_PACKED = 64 * 1024
_UNPACKED = 1 << 20
"""Bytes that are unpacked at once: so many are in memory before anybody counts them."""
_MOST_MEMBERS = 1_000
"""Files of zlib's in one body."""


class Came(Struct, frozen=True, kw_only=True):
    """A request as it came over the wire, its body read."""

    method: str
    path: str
    target: str
    """Path and query, as they were written."""
    headers: dict[str, str]
    raw_headers: Headers
    body: bytes
    """As it came, and compressed if it came so."""

    @property
    def coding(self) -> str:
        """How the body is compressed; empty if it is not."""
        coding = self.headers.get("content-encoding", "").strip().lower()
        return "" if coding == "identity" else coding


async def read_request(
    scope: Scope, receive: Receive, arriving: Arriving, *, most_bytes: int, seconds: float
) -> Came:
    """Return the request with its body, or raise Refused if that is too large or does not come."""
    raw_headers: Headers = list(scope["headers"])
    headers = by_name(raw_headers)
    told = headers.get("content-length", "")
    if told.isdigit() and int(told) > most_bytes:
        raise too_large(most_bytes)
    try:
        async with arriving.until(seconds):
            body = await _body(receive, arriving, most_bytes)
    except TimeoutError:
        if arriving.is_cut_off:
            raise Refused(408, TOO_SLOW, retry_after=1) from None
        raise Refused(408, f"the request's body did not come within {seconds:g} seconds") from None
    path = scope["path"]
    query = scope.get("query_string", b"")
    raw = scope.get("raw_path") or path.encode()
    target = _NOT_PLAIN.sub(lambda found: b"%%%02X" % found[0][0], raw + (b"?" + query if query else b""))
    if target[:1] != b"/":
        raise Refused(400, "the path of a request must begin with a slash")
    return Came(
        method=scope["method"],
        path=path.rstrip("/") or "/",
        target=target.decode(),
        headers=headers,
        raw_headers=raw_headers,
        body=body,
    )


def by_name(raw_headers: Headers) -> dict[str, str]:
    """Return headers by their names; one that came several times has all its values, so that none of them hides another."""
    found: dict[str, list[str]] = {}
    for name, value in raw_headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(values) for name, values in found.items()}


def too_large(most_bytes: int) -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused(413, f"the request is larger than the {most_bytes:,} bytes this gateway takes")


class Gone(Exception):
    """The client has gone: there is nobody to answer."""


class Unpackable(Exception):
    """A body is compressed in a way that nobody here can read."""


def unpacked(body: bytes, coding: str) -> Iterator[bytes]:
    """Yield a body without its compression, in pieces none of which is empty or large; raise Unpackable if it cannot be read.

    Whoever takes the pieces counts them: a few bytes may become very many.
    """
    try:
        yield from _CODINGS[coding](body)
    except (KeyError, ImportError, zlib.error, ValueError, MemoryError) as error:
        raise Unpackable from error
    except Exception as error:
        # Each package has an error of its own for bytes that are not what they are said to be.
        if type(error).__name__.lower() in {"error", "zstderror"}:
            raise Unpackable from error
        raise


def _inflated(body: bytes, *, window: int) -> Iterator[bytes]:
    view, at = memoryview(body), 0
    for _ in range(_MOST_MEMBERS):
        inflating = zlib.decompressobj(window)
        while not inflating.eof:
            given = view[at : at + _PACKED]
            piece = inflating.decompress(given, _UNPACKED)
            at += len(given) - len(inflating.unused_data if inflating.eof else inflating.unconsumed_tail)
            if piece:
                yield piece
            elif not given and not inflating.eof:
                raise Unpackable
        # One file may follow another.
        if at >= len(view):
            return
    raise Unpackable


def _gunzipped(body: bytes) -> Iterator[bytes]:
    return _inflated(body, window=16 + zlib.MAX_WBITS)


def _deflated(body: bytes) -> Iterator[bytes]:
    """Yield what was deflated; some clients leave out the frame that the standard asks for, which begins with two bytes."""
    try:
        zlib.decompressobj().decompress(body[:2])
    except zlib.error:
        return _inflated(body, window=-zlib.MAX_WBITS)
    return _inflated(body, window=zlib.MAX_WBITS)


def _from_zstd(body: bytes) -> Iterator[bytes]:
    package = import_module("zstandard")
    reader = package.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body, read_across_frames=True)
    while piece := reader.read(_UNPACKED):
        yield piece


def _from_brotli(body: bytes) -> Iterator[bytes]:
    unpacking = import_module("brotli").Decompressor()
    # Older packages know no limit of what they unpack: the body goes on as it came then.
    if not hasattr(unpacking, "can_accept_more_data"):
        raise Unpackable
    data = body
    while not unpacking.is_finished():
        if piece := unpacking.process(data, output_buffer_limit=_UNPACKED):
            yield piece
        elif unpacking.can_accept_more_data():
            raise Unpackable
        data = b""


_CODINGS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _deflated,
    "zstd": _from_zstd,
    "br": _from_brotli,
}


async def _body(receive: Receive, arriving: Arriving, most_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        piece = message.get("body", b"")
        size += len(piece)
        if size > most_bytes:
            raise too_large(most_bytes)
        arriving.grow(len(piece))
        pieces.append(piece)
        if not message.get("more_body"):
            return b"".join(pieces)


async def start(send: Send, response: aiohttp.ClientResponse) -> None:
    """Pass on a provider's status and headers, or raise Refused if that is no status."""
    if response.status >= NO_STATUS:
        raise Refused(
            502, f"the provider answered with the status {response.status}, which HTTP does not have"
        )
    await send({"type": "http.response.start", "status": response.status, "headers": returned(response)})


async def piece(send: Send, body: bytes, *, more: bool) -> None:
    """Pass on a piece of the body."""
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def until_gone(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


T = TypeVar("T")

_OURS = b"x-lowwater-"
"""How our headers begin; those of a gateway behind this one are not this one's."""


class AnswerSender:
    """Sends one answer."""

    def __init__(
        self, receive: Receive, send: Send, line: LogLine, *, stalled_seconds: float | None = None
    ) -> None:
        self._stalled_seconds = stalled_seconds
        self.receive = receive
        """Gives what comes from the client; once its body is read, only that it has gone."""
        self._watching: asyncio.Task[None] | None = None
        self._send = send
        self._line = line
        self.anthropic = False
        """Whether the client speaks Anthropic's format."""

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of some work, or give it up and raise Gone as soon as the client goes away."""
        if self._watching is None:
            self._watching = asyncio.create_task(until_gone(self.receive))
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task, self._watching}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone
            return await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """Listen to the client no longer."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def send(self, message: Message) -> None:
        """Pass a message on to the server."""
        if message["type"] == "http.response.start":
            self._line.status = message["status"]
            ours = self._line.headers()
            theirs = [pair for pair in message["headers"] if not pair[0].startswith(_OURS)]
            message = {**message, "headers": [*theirs, *ours]} if ours else message
        elif message.get("body"):
            self._line.first_byte()
            self._line.response_bytes += len(message["body"])
        try:
            async with asyncio.timeout(self._stalled_seconds):
                await self._send(message)
        except TimeoutError:
            raise Gone from None

    async def refuse(self, refused: Refused) -> None:
        """Tell the client what is wrong; an answer that was begun is left unfinished, and the server cuts it off."""
        self._line.outcome = self._line.outcome or f"refused: {refused.said}"
        if self._line.status:
            return
        body = refused.body(anthropic=self.anthropic)
        await self.send(
            {"type": "http.response.start", "status": refused.status, "headers": refused.headers(body)}
        )
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def plain(self, status: int, body: bytes, kind: bytes = b"application/json") -> None:
        """Send a whole answer of our own."""
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


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


async def relay(response: aiohttp.ClientResponse, answering: AnswerSender) -> None:
    """Pass a response on as it is; a client that goes away takes it with it."""
    await while_listening(_copied(response, answering.send), partial(_close, response), answering)


async def relay_answer(
    response: aiohttp.ClientResponse,
    answering: AnswerSender,
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


async def relay_read(response: aiohttp.ClientResponse, body: bytes, answering: AnswerSender) -> None:
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


async def while_listening(passing: Coroutine[Any, Any, None], close: Close, answering: AnswerSender) -> None:
    """Pass on until it is done or the client has gone, and let go of the provider either way."""
    is_whole = False
    try:
        await answering.unless_gone(passing)
        is_whole = True
    finally:
        close(is_whole=is_whole)


class Opening(Struct, frozen=True, kw_only=True):
    """What came of a stream before anything of the answer did."""

    chunks: tuple[bytes, ...] = ()
    broken: str = ""
    """Why there will be no answer; empty if one has begun."""


async def opening_of(response: aiohttp.ClientResponse, format: Format) -> Opening:
    """Read a stream until something of the answer comes, where a refusal may still come instead; no other is waited for."""
    if format != "openai_responses" or response.content_type != EVENTS:
        return Opening()
    stream, chunks = Watched(format), []
    try:
        async for chunk in received(response):
            chunks.append(chunk)
            stream.feed(chunk)
            if stream.has_begun or stream.is_done or stream.broken:
                break
    except (aiohttp.ClientError, OSError):
        # What has come is passed on, and the same error is met again behind it.
        if not chunks:
            response.close()
            raise
    except BaseException:
        response.close()
        raise
    return Opening(chunks=tuple(chunks), broken=stream.broken)
