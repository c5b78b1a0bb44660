"""The answers that a test can script, and HTTP responses that end early or never come."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct
from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Say(Struct, frozen=True, tag_field="kind", tag="say"):
    """Answer with text and end the turn."""

    text: str


OK = Say("ok")


class CutOff(Struct, frozen=True, tag_field="kind", tag="cut_off"):
    """Answer with text that the output limit cut short."""

    text: str


class Call(Struct, frozen=True, tag_field="kind", tag="call"):
    """One tool call; without an id the provider issues the next one."""

    name: str
    arguments: Mapping[str, Any] = {}
    id: str = ""


class CallTools(Struct, frozen=True, tag_field="kind", tag="call_tools"):
    """Call tools, several of them in parallel, with or without text before the calls."""

    calls: tuple[Call, ...]
    text: str = ""


class Think(Struct, frozen=True, tag_field="kind", tag="think"):
    """Think, then answer; Chat Completions show only how many tokens the thinking took."""

    text: str
    then: Say | CutOff | CallTools = OK
    redacted: bool = False


class Refuse(Struct, frozen=True, tag_field="kind", tag="refuse"):
    """Decline as the provider does: with a successful response that says so."""

    text: str = "I can't help with that."


class Fail(Struct, frozen=True, tag_field="kind", tag="fail"):
    """Answer with an error although the request broke no rule."""

    status: int
    type: str
    message: str
    retry_after: int | None = None


class DropConnection(Struct, frozen=True, tag_field="kind", tag="drop_connection"):
    """Begin to answer with text and close the connection half way through."""

    text: str = "The connection ends before this sentence does."


class Hang(Struct, frozen=True, tag_field="kind", tag="hang"):
    """Never answer: hold the request until the client disconnects or the provider stops."""


Answer: TypeAlias = Say | CutOff | CallTools | Think | Refuse | Fail | DropConnection | Hang
Spoken: TypeAlias = Say | CutOff | CallTools | Think | Refuse | DropConnection
"""Answers that are messages of the model."""


class CutResponse(Response):
    """Sends the beginning of a response and never finishes it, so that the server closes the connection."""

    def __init__(self, chunks: Iterable[bytes], headers: Mapping[str, str]) -> None:
        self.chunks = chunks
        self.named = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send the chunks and return."""
        await send({"type": "http.response.start", "status": 200, "headers": self.named})
        for chunk in (b"", *self.chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


class HeldResponse(Response):
    """Sends nothing until the client disconnects or the server stops, and never finishes the response."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self.stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait until the client disconnects or the server stops."""
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
