"""The way back to one client: what was begun is noted, so that a failure is told only where it still can be."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from lowwater.gateway.exchange import Gone, Message, Receive, Send, until_gone
from lowwater.gateway.logs import Line
from lowwater.gateway.refusals import Refused

T = TypeVar("T")

_OURS = b"x-lowwater-"
"""How our headers begin; those of a gateway behind this one are not this one's."""


class Answering:
    """Sends one answer."""

    def __init__(
        self, receive: Receive, send: Send, line: Line, *, stalled_seconds: float | None = None
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
