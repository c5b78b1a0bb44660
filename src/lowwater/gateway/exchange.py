"""One request through the gateway: read, prepared, sent, its answer passed on while it is read, and recorded."""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import aiohttp
from msgspec import Struct

from lowwater.gateway.refusals import Refused
from lowwater.gateway.upstream import Headers, returned

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


_NO_STATUS = 600
_NOT_PLAIN = re.compile(rb"[^\x21-\x7e]")
"""Bytes that a request line may not hold."""


class Came(Struct, frozen=True, kw_only=True):
    """A request as it came over the wire, its body read."""

    method: str
    path: str
    target: str
    """Path and query, as they were written."""
    headers: dict[str, str]
    raw_headers: Headers
    body: bytes


async def read_request(scope: Scope, receive: Receive, *, most_bytes: int, seconds: float) -> Came:
    """Return the request with its body, or raise Refused if that is too large or does not come."""
    raw_headers: Headers = list(scope["headers"])
    headers = by_name(raw_headers)
    told = headers.get("content-length", "")
    if told.isdigit() and int(told) > most_bytes:
        raise too_large(most_bytes)
    try:
        body = await asyncio.wait_for(_body(receive, most_bytes), seconds)
    except TimeoutError:
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
    found: dict[str, str] = {}
    for raw_name, raw_value in raw_headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def too_large(most_bytes: int) -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused(413, f"the request is larger than the {most_bytes:,} bytes this gateway takes")


class Gone(Exception):
    """The client has gone: there is nobody to answer."""


async def _body(receive: Receive, most_bytes: int) -> bytes:
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
        pieces.append(piece)
        if not message.get("more_body"):
            return b"".join(pieces)


async def start(send: Send, response: aiohttp.ClientResponse) -> None:
    """Pass on a provider's status and headers, or raise Refused if that is no status."""
    if response.status >= _NO_STATUS:
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
