"""The HTTP side of one request: reading it, and passing the provider's answer on while it is read along.

Nothing of an answer is held back but its very end, which waits until the answer is recorded.
"""

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
from lowwater.gateway.admission import TOO_SLOW, IncomingBody
from lowwater.gateway.observability import LogLine, error_location
from lowwater.gateway.upstream import Headers, Refused, returned

T = TypeVar("T")

Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
RecordAnswer = Callable[[bytes | None], Awaitable[None]]
"""Takes the complete answer, or None if there is none."""

_log = logging.getLogger("lowwater.gateway")

EVENTS = "text/event-stream"
NO_STATUS = 600
"""The first number that is no HTTP status any more."""
_NOT_PLAIN = re.compile(rb"[^\x21-\x7e]")
"""Bytes that a request line may not hold."""
_COMPRESSED_CHUNK = 64 * 1024
_DECOMPRESSED_CHUNK = 1 << 20
"""Bytes that are decompressed at once: so many are in memory before anybody counts them."""
_MOST_MEMBERS = 1_000
"""Concatenated gzip or zlib members in one body."""
_OUR_HEADERS = b"x-lowwater-"
"""How our headers begin; those of another gateway behind this one are dropped."""


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request as it came over the wire, with its body read."""

    method: str
    path: str
    target: str
    """Path and query, as they were written."""
    headers: dict[str, str]
    raw_headers: Headers
    body: bytes
    """As it came, still compressed if it was."""

    @property
    def coding(self) -> str:
        """How the body is compressed; empty if it is not."""
        coding = self.headers.get("content-encoding", "").strip().lower()
        return "" if coding == "identity" else coding


class ClientDisconnected(Exception):
    """The client has gone: there is nobody to answer."""


class UndecodableBody(Exception):
    """A body is compressed in a way that cannot be read here."""


async def read_request(
    scope: Scope, receive: Receive, incoming_body: IncomingBody, *, most_bytes: int, seconds: float
) -> HttpRequest:
    """Return the request with its body; raise Refused if the body is too large or does not come in time."""
    raw_headers: Headers = list(scope["headers"])
    headers = headers_by_name(raw_headers)
    content_length = headers.get("content-length", "")
    if content_length.isdigit() and int(content_length) > most_bytes:
        raise body_too_large(most_bytes)
    try:
        async with incoming_body.until(seconds):
            body = await _read_body(receive, incoming_body, most_bytes)
    except TimeoutError:
        if incoming_body.is_cut_off:
            raise Refused(408, TOO_SLOW, retry_after=1) from None
        raise Refused(408, f"the request's body did not come within {seconds:g} seconds") from None
    path = scope["path"]
    query = scope.get("query_string", b"")
    raw = scope.get("raw_path") or path.encode()
    target = _NOT_PLAIN.sub(lambda found: b"%%%02X" % found[0][0], raw + (b"?" + query if query else b""))
    if target[:1] != b"/":
        raise Refused(400, "the path of a request must begin with a slash")
    return HttpRequest(
        method=scope["method"],
        path=path.rstrip("/") or "/",
        target=target.decode(),
        headers=headers,
        raw_headers=raw_headers,
        body=body,
    )


async def _read_body(receive: Receive, incoming_body: IncomingBody, most_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        piece = message.get("body", b"")
        size += len(piece)
        if size > most_bytes:
            raise body_too_large(most_bytes)
        incoming_body.reserve(len(piece))
        pieces.append(piece)
        if not message.get("more_body"):
            return b"".join(pieces)


def headers_by_name(raw_headers: Headers) -> dict[str, str]:
    """Return headers by their names; the values of a repeated header are joined, so that none of them hides another."""
    found: dict[str, list[str]] = {}
    for name, value in raw_headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(values) for name, values in found.items()}


def body_too_large(most_bytes: int) -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused(413, f"the request is larger than the {most_bytes:,} bytes this gateway takes")


def decompress(body: bytes, coding: str) -> Iterator[bytes]:
    """Yield a decompressed body in chunks, none of them empty or large; raise UndecodableBody if it cannot be read.

    The caller has to limit the total: a few bytes may expand to very many.
    """
    try:
        yield from _CODINGS[coding](body)
    except (KeyError, ImportError, zlib.error, ValueError, MemoryError) as error:
        raise UndecodableBody from error
    except Exception as error:
        # The zstd and brotli packages raise error classes of their own, which cannot be imported without them.
        if type(error).__name__.lower() in {"error", "zstderror"}:
            raise UndecodableBody from error
        raise


def _inflate(body: bytes, *, window: int) -> Iterator[bytes]:
    view, at = memoryview(body), 0
    for _ in range(_MOST_MEMBERS):
        decompressor = zlib.decompressobj(window)
        while not decompressor.eof:
            given = view[at : at + _COMPRESSED_CHUNK]
            piece = decompressor.decompress(given, _DECOMPRESSED_CHUNK)
            left = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
            at += len(given) - len(left)
            if piece:
                yield piece
            elif not given and not decompressor.eof:
                raise UndecodableBody
        # Another member may follow.
        if at >= len(view):
            return
    raise UndecodableBody


def _from_gzip(body: bytes) -> Iterator[bytes]:
    return _inflate(body, window=16 + zlib.MAX_WBITS)


def _from_deflate(body: bytes) -> Iterator[bytes]:
    """Decompress `deflate`; some clients leave out the zlib header that the standard asks for."""
    try:
        zlib.decompressobj().decompress(body[:2])
    except zlib.error:
        return _inflate(body, window=-zlib.MAX_WBITS)
    return _inflate(body, window=zlib.MAX_WBITS)


def _from_zstd(body: bytes) -> Iterator[bytes]:
    package = import_module("zstandard")
    reader = package.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body, read_across_frames=True)
    while piece := reader.read(_DECOMPRESSED_CHUNK):
        yield piece


def _from_brotli(body: bytes) -> Iterator[bytes]:
    decompressor = import_module("brotli").Decompressor()
    # Older versions of the package cannot limit their output: such a body is forwarded as it came.
    if not hasattr(decompressor, "can_accept_more_data"):
        raise UndecodableBody
    data = body
    while not decompressor.is_finished():
        if piece := decompressor.process(data, output_buffer_limit=_DECOMPRESSED_CHUNK):
            yield piece
        elif decompressor.can_accept_more_data():
            raise UndecodableBody
        data = b""


_CODINGS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _from_gzip,
    "x-gzip": _from_gzip,
    "deflate": _from_deflate,
    "zstd": _from_zstd,
    "br": _from_brotli,
}


class AnswerSender:
    """Sends one answer to its client, and notices when the client goes away."""

    def __init__(
        self, receive: Receive, send: Send, line: LogLine, *, stalled_seconds: float | None = None
    ) -> None:
        self._stalled_seconds = stalled_seconds
        self.receive = receive
        """Gives what comes from the client; once its body is read, only the disconnect."""
        self._watching: asyncio.Task[None] | None = None
        self._send = send
        self._line = line
        self.anthropic = False
        """Whether the client speaks Anthropic's format."""

    async def unless_disconnected(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of some work; cancel it and raise ClientDisconnected as soon as the client goes away."""
        if self._watching is None:
            self._watching = asyncio.create_task(_wait_for_disconnect(self.receive))
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task, self._watching}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientDisconnected
            return await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """Stop watching for the client's disconnect."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def send(self, message: AsgiMessage) -> None:
        """Pass an ASGI message to the server, with our headers added to the head of the answer."""
        if message["type"] == "http.response.start":
            self._line.status = message["status"]
            ours = self._line.headers()
            theirs = [pair for pair in message["headers"] if not pair[0].startswith(_OUR_HEADERS)]
            message = {**message, "headers": [*theirs, *ours]} if ours else message
        elif message.get("body"):
            self._line.first_byte()
            self._line.response_bytes += len(message["body"])
        try:
            async with asyncio.timeout(self._stalled_seconds):
                await self._send(message)
        except TimeoutError:
            raise ClientDisconnected from None

    async def refuse(self, refused: Refused) -> None:
        """Tell the client what is wrong; an answer that has begun is left unfinished, and the server cuts it off."""
        self._line.outcome = self._line.outcome or f"refused: {refused.message}"
        if self._line.status:
            return
        body = refused.body(anthropic=self.anthropic)
        await self.send(
            {"type": "http.response.start", "status": refused.status, "headers": refused.headers(body)}
        )
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def plain(self, status: int, body: bytes, content_type: bytes = b"application/json") -> None:
        """Send a complete answer of our own."""
        headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class StreamObserver:
    """Reads a stream along on its way to the client; it never raises, whatever the provider sends."""

    def __init__(self, format: Format) -> None:
        self._stream = stream_for(format)
        self._defect = ""

    @property
    def is_done(self) -> bool:
        """Whether the answer is complete."""
        return not self._defect and self._stream.is_done

    @property
    def has_begun(self) -> bool:
        """Whether something of the answer has come."""
        return self._stream.has_begun

    @property
    def broken(self) -> str:
        """Why there will be no complete answer; empty as long as there may be one."""
        return self._defect or self._stream.broken

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        self._guarded(lambda: self._stream.feed(chunk))

    def end(self) -> None:
        """Take note that no more bytes come."""
        self._guarded(self._stream.end)

    def answer(self) -> bytes | None:
        """Return the complete answer; None if there is none."""
        return self._guarded(self._stream.answer)

    def _guarded(self, read: Callable[[], T]) -> T | None:
        if self._defect:
            return None
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - a provider may send anything, and its client gets all of it
            self._defect = f"the stream cannot be read: {type(error).__name__}"
            _log.error("a stream that cannot be read: %s", error_location(error))
            return None


class StreamOpening(Struct, frozen=True, kw_only=True):
    """What came of a stream before the answer began."""

    chunks: tuple[bytes, ...] = ()
    broken: str = ""
    """Why there will be no answer; empty if one has begun."""


async def read_refusal(response: aiohttp.ClientResponse) -> bytes:
    """Return the whole body of a refusal."""
    try:
        return await response.read()
    except BaseException:
        response.close()
        raise


async def read_opening(response: aiohttp.ClientResponse, format: Format) -> StreamOpening:
    """Read a stream until the answer begins or a refusal comes instead; nothing of other responses is read.

    OpenAI's Responses API may refuse a prompt inside the stream, after the status 200.
    """
    if format != "openai_responses" or response.content_type != EVENTS:
        return StreamOpening()
    stream, chunks = StreamObserver(format), []
    try:
        async for chunk in response_chunks(response):
            chunks.append(chunk)
            stream.feed(chunk)
            if stream.has_begun or stream.is_done or stream.broken:
                break
    except (aiohttp.ClientError, OSError):
        # What has come is passed on first; reading on raises the same error again.
        if not chunks:
            response.close()
            raise
    except BaseException:
        response.close()
        raise
    return StreamOpening(chunks=tuple(chunks), broken=stream.broken)


async def relay(response: aiohttp.ClientResponse, sender: AnswerSender) -> None:
    """Pass a response on as it is."""
    await run_until_disconnect(_copy(response, sender.send), partial(_close, response), sender)


async def relay_answer(
    response: aiohttp.ClientResponse,
    sender: AnswerSender,
    *,
    format: Format,
    record: RecordAnswer,
    before: Sequence[bytes] = (),
) -> None:
    """Pass a model's answer on, of which `before` was read already; it is recorded before the client gets its end."""
    if response.content_type == EVENTS:
        passing = _relay_stream(response, sender.send, format, record, before)
    else:
        passing = _relay_whole(response, sender.send, record)
    await run_until_disconnect(passing, partial(_close, response), sender)


async def relay_read(response: aiohttp.ClientResponse, body: bytes, sender: AnswerSender) -> None:
    """Pass on a response whose body was read already."""
    await _send_head(sender.send, response)
    await send_body(sender.send, body, more=False)
    response.release()


async def _copy(response: aiohttp.ClientResponse, send: Send) -> None:
    await _send_head(send, response)
    async for chunk in response_chunks(response):
        await send_body(send, chunk, more=True)
    await send_body(send, b"", more=False)


async def _relay_whole(response: aiohttp.ClientResponse, send: Send, record: RecordAnswer) -> None:
    try:
        body = await response.read()
    except BaseException:
        await abort_response(response, record)
        raise
    await record(body)
    await _send_head(send, response)
    await send_body(send, body, more=False)


async def _relay_stream(
    response: aiohttp.ClientResponse,
    send: Send,
    format: Format,
    record: RecordAnswer,
    before: Sequence[bytes],
) -> None:
    answer, is_recorded = StreamObserver(format), False
    await _send_head(send, response)
    try:
        async for chunk in stream_chunks(response, before):
            # A short answer comes as one chunk: what precedes its last event need not wait for the store.
            for events in before_last_event(chunk):
                answer.feed(events)
                if answer.is_done and not is_recorded:
                    is_recorded = True
                    await record(answer.answer())
                if events:
                    await send_body(send, events, more=True)
        if not is_recorded:
            answer.end()
            is_recorded = True
            await record(answer.answer())
    finally:
        if not is_recorded:
            await abort_response(response, record)
    await send_body(send, b"", more=False)


async def _send_head(send: Send, response: aiohttp.ClientResponse) -> None:
    """Pass on a provider's status and headers; raise Refused if its status is none of HTTP's."""
    if response.status >= NO_STATUS:
        raise Refused(
            502, f"the provider answered with the status {response.status}, which HTTP does not have"
        )
    await send({"type": "http.response.start", "status": response.status, "headers": returned(response)})


async def send_body(send: Send, body: bytes, *, more: bool) -> None:
    """Pass on a piece of the body."""
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def abort_response(response: aiohttp.ClientResponse, record: RecordAnswer) -> None:
    """Close the connection to the provider at once, and only then record that there is no complete answer."""
    response.close()
    with suppress(asyncio.CancelledError):
        await asyncio.shield(record(None))


async def stream_chunks(response: aiohttp.ClientResponse, before: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks that were read of a stream already, then the rest."""
    for chunk in before:
        yield chunk
    async for chunk in response_chunks(response):
        yield chunk


async def response_chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield a response's body as it comes; if the connection breaks, everything received before comes before the error."""
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError):
        if left := _unread_bytes(response.content):
            yield left
        raise


def _unread_bytes(content: aiohttp.StreamReader) -> bytes:
    """Take what was received and not read yet: aiohttp raises a broken connection at once and keeps these bytes in its buffer."""
    buffer: MutableSequence[bytes] = getattr(content, "_buffer", [])
    left = b"".join(buffer)[getattr(content, "_buffer_offset", 0) :]
    buffer.clear()
    return left


class CloseResponse(Protocol):
    """Ends the use of a provider's response."""

    def __call__(self, *, is_whole: bool) -> None:
        """Return its connection to the pool if it was read to its end; otherwise close it."""
        ...


def _close(response: aiohttp.ClientResponse, *, is_whole: bool) -> None:
    response.release() if is_whole else response.close()


async def run_until_disconnect(
    passing: Coroutine[Any, Any, None], close: CloseResponse, sender: AnswerSender
) -> None:
    """Pass an answer on until it is done or the client has gone, and close the provider's response either way."""
    is_whole = False
    try:
        await sender.unless_disconnected(passing)
        is_whole = True
    finally:
        close(is_whole=is_whole)
