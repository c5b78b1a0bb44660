"""Passing an answer on to a client that knows nothing of recall: what its model recalls is fetched here, and asked on."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import aiohttp
import msgspec

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.streams import CUT_OFF, EventReader
from lowwater.core.messages import Format
from lowwater.errors import BadInput
from lowwater.gateway.answering import Answering
from lowwater.gateway.exchange import NO_STATUS, piece
from lowwater.gateway.hiding import Hiding, hiding_for
from lowwater.gateway.logs import where
from lowwater.gateway.recalling import MOST_ROUNDS, RecallCall, calls_in, extended
from lowwater.gateway.refusals import Refused
from lowwater.gateway.relaying import EVENTS, Watched, chunks_of, peeked, unfinished, while_listening
from lowwater.gateway.upstream import Headers, returned

_log = logging.getLogger("lowwater.gateway")

Ask = Callable[[bytes], Coroutine[Any, Any, aiohttp.ClientResponse]]
Recall = Callable[[Sequence[RecallCall]], Awaitable[list[str]]]
Record = Callable[[bytes | None, Sequence[Usage]], Awaitable[None]]

_ODD = (BadInput, msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What comes of reading something that is no answer: a provider may say anything."""


class _NotFollowed(Refused):
    """The provider refused to go on from what was recalled; its client gets that as it came."""

    def __init__(self, response: aiohttp.ClientResponse, said: bytes) -> None:
        status = response.status if response.status < NO_STATUS else 502
        super().__init__(status, f"the provider answered {response.status} behind a recall")
        self._said = said
        self._headers = returned(response)

    def body(self, *, anthropic: bool) -> bytes:  # noqa: ARG002 - it is in the client's format already
        """Return what the provider said."""
        return self._said

    def headers(self, body: bytes) -> Headers:  # noqa: ARG002 - they came with the body
        """Return the provider's headers."""
        return self._headers


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
        self._usages: list[Usage | None] = []
        """Of each answer that was read whole."""
        self._before: tuple[bytes, ...] = ()
        self._held: list[bytes] = []
        """The end of a stream, which waits until the answer is recorded."""
        self._answer = b""
        """All answers that were read whole, as the one that the client sees."""
        self._response: aiohttp.ClientResponse
        """The newest; there is one from `relay` on."""

    async def relay(self, response: aiohttp.ClientResponse, *, before: Sequence[bytes] = ()) -> None:
        """Pass on the answer that begins with this response, of which `before` was read already."""
        self._response, self._before = response, tuple(before)
        passing = self._streamed() if response.content_type == EVENTS else self._whole()
        await while_listening(passing, self._close, self._answering)

    def _close(self, *, is_whole: bool) -> None:
        self._response.release() if is_whole else self._response.close()

    async def _streamed(self) -> None:
        await self._start(self._response, length=None)
        try:
            answer = await self._last_stream(self._response)
        except Refused as refused:
            await self._note(None)
            await self._end(self._hiding.broken_off(_error_in(refused, self._format)))
            raise
        except BaseException:
            await unfinished(self._response, self._unanswered)
            raise
        await self._note(answer)
        await self._end(self._held)

    async def _end(self, events: Sequence[bytes]) -> None:
        for event in events:
            await piece(self._answering.send, event, more=True)
        await piece(self._answering.send, b"", more=False)

    async def _note(self, answer: bytes | None) -> None:
        """Record what the client got; where that is no whole answer (None), what was paid for on the way to it before."""
        others = [usage for usage in self._usages[:-1] if usage is not None]
        if answer is None and self._usages:
            await self._record(self._answer, others)
        await self._record(answer, others)

    async def _unanswered(self, _: bytes | None) -> None:
        await self._record(None, ())

    async def _last_stream(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Pass on what the client sees of all answers but the end of the last; return them as one, None if that is not whole."""
        for left in reversed(range(MOST_ROUNDS)):
            answer = await self._one_stream(response)
            if answer is None:
                return None
            if not self._is_read(answer):
                # Its client has seen nearly all of it, and may understand it.
                self._held = self._held_back()
                return None
            following = await self._followed(answer, left)
            if following is None:
                break
            response = following
        self._held = self._held_back()
        return self._answer

    async def _one_stream(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Pass on what the client sees of one answer, and return it whole; None if it is cut off."""
        stream, events = Watched(self._format), EventReader()
        before, self._before = self._before, ()
        with self._reaching():
            async for chunk in chunks_of(response, before):
                stream.feed(chunk)
                for event in events.feed(chunk):
                    for seen in self._seen(event):
                        await piece(self._answering.send, seen, more=True)
        stream.end()
        if stream.broken and stream.broken != CUT_OFF:
            self._held = self._held_back()
        return stream.answer()

    def _held_back(self) -> list[bytes]:
        """Return the end of a stream that waited; what cannot be written as events again is no end."""
        try:
            return self._hiding.end()
        except Exception as error:  # noqa: BLE001 - a provider may say anything
            _log.error("the end of a stream cannot be written: %s", where(error))
            return []

    def _seen(self, event: bytes) -> list[bytes]:
        """Return what the client sees of an event; one that nobody here understands it may understand itself."""
        try:
            return self._hiding.take(event)
        except Exception:  # noqa: BLE001 - a provider may say anything
            return [b"data: " + event.replace(b"\n", b"\ndata: ") + b"\n\n"]

    def _is_read(self, answer: bytes) -> bool:
        """Return whether a whole answer could be read; from then on it is one of those that make up what the client sees."""
        try:
            usage = decode_response(answer).usage
            calls_in(answer, self._format)
            self._hiding.whole(answer)
            self._answer = self._hiding.answer()
        except Exception:  # noqa: BLE001 - a provider may say anything
            return False
        self._usages.append(usage)
        return True

    async def _whole(self) -> None:
        first = self._response
        try:
            odd = await self._read(first)
        except Refused:
            await self._note(None)
            raise
        except BaseException:
            await unfinished(self._response, self._unanswered)
            raise
        answer = self._answer if odd is None else odd
        await self._note(answer if odd is None else None)
        await self._start(first if odd is None else self._response, length=len(answer))
        await piece(self._answering.send, answer, more=False)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Read all answers; return what came instead of the last if that is no answer, None if it is."""
        for left in reversed(range(MOST_ROUNDS)):
            with self._reaching():
                answer = await response.read()
            if not self._is_read(answer):
                return answer
            following = await self._followed(answer, left)
            if following is None:
                break
            response = following
        return None

    async def _followed(self, answer: bytes, left: int) -> aiohttp.ClientResponse | None:
        """Return the response that goes on from what an answer recalled, or raise Refused; None if it did not, or may not any more."""
        if not self._hiding.is_waiting() or not left:
            return None
        calls = calls_in(answer, self._format)
        brought = await self._recall(calls)
        try:
            self._body = extended(self._body, answer, calls, brought, self._format)
        except Exception as error:  # noqa: BLE001 - what nobody can go on from is what the client gets
            _log.error("a recall that cannot be followed: %s", where(error))
            return None
        with self._reaching():
            response = await self._ask(self._body)
            if response.status >= 300:
                raise _NotFollowed(response, await peeked(response))
        self._response.release()
        self._response = response
        self._hiding.again()
        return response

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Raise Refused if the provider goes away behind a recall: a client may have seen a beginning, and is told."""
        try:
            yield
        except (aiohttp.ClientError, OSError) as error:
            if not self._usages:
                raise
            raise Refused(502, f"the provider could not be reached: {type(error).__name__}") from error

    async def _start(self, response: aiohttp.ClientResponse, *, length: int | None) -> None:
        headers = [(name, value) for name, value in returned(response) if name != b"content-length"]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        await self._answering.send(
            {"type": "http.response.start", "status": response.status, "headers": headers}
        )


def _error_in(refused: Refused, format: Format) -> dict[str, Any]:
    """Return what an error says, in the words of a format; a provider may refuse in none."""
    is_anthropic = format == "anthropic"
    with suppress(*_ODD):
        told: dict[str, Any] = msgspec.json.decode(refused.body(anthropic=is_anthropic))["error"]
        if told.get("message"):
            return told
    ours = Refused(refused.status, refused.said).body(anthropic=is_anthropic)
    error: dict[str, Any] = msgspec.json.decode(ours)["error"]
    return error
