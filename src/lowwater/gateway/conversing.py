"""Passing an answer on to a client that knows nothing of recall: what its model recalls is fetched here, and asked on."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import aiohttp
import msgspec

from lowwater.errors import BadInput
from lowwater.gateway.answering import Answering
from lowwater.gateway.exchange import piece
from lowwater.gateway.hiding import Hiding, hiding_for
from lowwater.gateway.recalling import MOST_ROUNDS, RecallCall, calls_in, extended
from lowwater.gateway.relaying import EVENTS, chunks_of, unfinished, while_listening
from lowwater.gateway.upstream import returned
from lowwater.values.message import Format
from lowwater.values.usage import Usage
from lowwater.wire.events import EventReader
from lowwater.wire.response import decode_response
from lowwater.wire.streams import CUT_OFF, stream_for

Ask = Callable[[bytes], Coroutine[Any, Any, aiohttp.ClientResponse]]
Recall = Callable[[Sequence[RecallCall]], Awaitable[list[str]]]
Record = Callable[[bytes | None, Sequence[Usage]], Awaitable[None]]

_ODD = (BadInput, msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What comes of reading something that is no answer: a provider may say anything."""


class Conversing:
    """One exchange of a client with a model that may recall in between."""

    def __init__(
        self, answering: Answering, *, format: Format, body: bytes, ask: Ask, recall: Recall, record: Record
    ) -> None:
        self._answering = answering
        self._format = format
        self._body = body
        self._ask = ask
        self._recall = recall
        self._record = record
        self._hiding: Hiding = hiding_for(format)
        self._others: list[Usage] = []
        self._before: tuple[bytes, ...] = ()
        self._held: list[bytes] = []
        """The end of a stream, which waits until the answer is recorded."""
        self._response: aiohttp.ClientResponse | None = None

    async def relay(self, response: aiohttp.ClientResponse, *, before: Sequence[bytes] = ()) -> None:
        """Pass on the answer that begins with this response, of which `before` was read already."""
        self._response, self._before = response, tuple(before)
        passing = self._streamed() if response.content_type == EVENTS else self._whole()
        await while_listening(passing, self._close, self._answering)

    def _close(self, *, is_whole: bool) -> None:
        if self._response is not None:
            self._response.release() if is_whole else self._response.close()

    async def _streamed(self) -> None:
        response = self._response
        assert response is not None
        await self._start(response, length=None)
        try:
            answer = await self._last_stream(response)
        except BaseException:
            assert self._response is not None
            await unfinished(self._response, self._unanswered)
            raise
        await self._record(answer, self._others)
        for held in self._held:
            await piece(self._answering.send, held, more=True)
        await piece(self._answering.send, b"", more=False)

    async def _unanswered(self, _: bytes | None) -> None:
        await self._record(None, self._others)

    async def _last_stream(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Pass on what the client sees of all answers but the end of the last; return them as one, None if that is not whole."""
        for left in reversed(range(MOST_ROUNDS)):
            answer = await self._one_stream(response)
            if answer is None or not self._is_read(answer):
                return None
            following = await self._followed(answer, left)
            if following is None:
                break
            response = following
        self._held = self._hiding.end()
        return self._hiding.answer()

    async def _one_stream(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Pass on what the client sees of one answer, and return it whole; None if it is cut off."""
        stream, events = stream_for(self._format), EventReader()
        before, self._before = self._before, ()
        async for chunk in chunks_of(response, before):
            stream.feed(chunk)
            for event in events.feed(chunk):
                for seen in self._seen(event):
                    await piece(self._answering.send, seen, more=True)
        stream.end()
        if stream.broken and stream.broken != CUT_OFF:
            self._held = self._hiding.end()
        return stream.answer()

    def _seen(self, event: bytes) -> list[bytes]:
        """Return what the client sees of an event; one that nobody here understands it may understand itself."""
        try:
            return self._hiding.take(event)
        except _ODD:
            return [b"data: " + event.replace(b"\n", b"\ndata: ") + b"\n\n"]

    def _is_read(self, answer: bytes) -> bool:
        """Return whether a whole answer could be read; from then on it is one of those that make up what the client sees."""
        try:
            decode_response(answer)
            calls_in(answer, self._format)
            self._hiding.whole(answer)
        except _ODD:
            return False
        return True

    async def _whole(self) -> None:
        response = self._response
        assert response is not None
        first = response
        for left in reversed(range(MOST_ROUNDS)):
            try:
                answer = await response.read()
            except BaseException:
                await unfinished(response, self._unanswered)
                raise
            if not self._is_read(answer):
                await self._record(None, self._others)
                first = response
                break
            following = await self._followed(answer, left)
            if following is None:
                answer = self._hiding.answer()
                await self._record(answer, self._others)
                break
            response = following
        await self._start(first, length=len(answer))
        await piece(self._answering.send, answer, more=False)

    async def _followed(self, answer: bytes, left: int) -> aiohttp.ClientResponse | None:
        """Return the response that goes on from what an answer recalled; None if it did not, or may not any more."""
        if not self._hiding.is_waiting() or not left:
            return None
        calls = calls_in(answer, self._format)
        self._body = extended(self._body, answer, calls, await self._recall(calls), self._format)
        response = await self._ask(self._body)
        if response.status >= 400:
            response.release()
            return None
        assert self._response is not None
        self._response.release()
        self._response = response
        usage = decode_response(answer).usage
        self._others += [usage] if usage else []
        self._hiding.again()
        return response

    async def _start(self, response: aiohttp.ClientResponse, *, length: int | None) -> None:
        headers = [(name, value) for name, value in returned(response) if name != b"content-length"]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        await self._answering.send(
            {"type": "http.response.start", "status": response.status, "headers": headers}
        )
