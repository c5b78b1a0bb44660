"""Responses that go wrong on purpose."""

import asyncio
from collections.abc import Iterable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class CutResponse(Response):
    """Sends the beginning of a response and leaves it unfinished, whereupon the server closes the connection."""

    def __init__(self, chunks: Iterable[bytes], headers: Mapping[str, str]) -> None:
        self.chunks = chunks
        self.named = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send what there is and return."""
        await send({"type": "http.response.start", "status": 200, "headers": self.named})
        for chunk in (b"", *self.chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


class HeldResponse(Response):
    """Sends nothing until the client goes away or the server stops, then leaves the response unfinished."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self.stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for either, and return."""
        gone = asyncio.create_task(_gone(receive))
        stopped = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({gone, stopped}, return_when=asyncio.FIRST_COMPLETED)
        disconnected = gone.done()
        for task in (gone, stopped):
            task.cancel()
        await asyncio.gather(gone, stopped, return_exceptions=True)
        if not disconnected:
            await CutResponse((), {"content-length": "1"})(scope, receive, send)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
