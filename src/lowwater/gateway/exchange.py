"""One request through the gateway: read, prepared, sent, its answer passed on while it is read, and recorded."""

import re
import zlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from importlib import import_module
from typing import Any

import aiohttp
from msgspec import Struct

from lowwater.gateway.admission import TOO_SLOW, Arriving
from lowwater.gateway.refusals import Refused
from lowwater.gateway.upstream import Headers, returned

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
