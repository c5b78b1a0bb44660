"""Recall for clients that know nothing of it: tools added to their requests, and their calls answered here."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.convert import tools_as
from lowwater.core.formats.streams import CUT_OFF, EventReader
from lowwater.core.messages import Format
from lowwater.core.recall.recalled import anthropic_tools, is_recall, offers_recall, openai_tools
from lowwater.core.strict_json import read_plain, write_json, write_object
from lowwater.errors import BadInput
from lowwater.gateway.client_request import ClientRequest
from lowwater.gateway.observability import where
from lowwater.gateway.relay import (
    EVENTS,
    NO_STATUS,
    AnswerSender,
    Watched,
    chunks_of,
    peeked,
    piece,
    unfinished,
    while_listening,
)
from lowwater.gateway.response_rewrite import ResponseRewrite, hiding_for
from lowwater.gateway.upstream import Headers, Refused, returned
from lowwater.summarizers.requests import with_items

MOST_ROUNDS = 6
"""How often a model may recall in a row before it has to answer with what it has."""

_AUTO = frozenset({b"", b"null", b'"auto"'})
_ONE_ANSWER = frozenset({b"1", b"null"})


class RecallCall(Struct, frozen=True, kw_only=True):
    """A call of a recall tool."""

    id: str
    name: str
    arguments: str


def _tools() -> MappingProxyType[Format, bytes]:
    anthropic = write_json(anthropic_tools())
    chat = write_json(openai_tools())
    return MappingProxyType(
        {
            "anthropic": anthropic,
            "openai_chat": chat,
            "openai_responses": tools_as(chat, "openai_responses"),
        }
    )


def with_recall(asked: ClientRequest) -> ClientRequest:
    """Return the request with the recall tools behind the client's own; one without tools, or that forces one or wants several answers, stays as it is."""
    tools, choice = asked.tools, asked.fields.get("tool_choice", b"")
    several = asked.fields.get("n", b"1") not in _ONE_ANSWER
    if len(tools) < len(b"[{}]") or offers_recall(tools) or several or not _is_free(choice):
        return asked
    added = tools.rstrip()[:-1] + b"," + _tools()[asked.format][1:]
    fields = asked.fields | {"tools": added}
    return replace(asked, fields=fields, body=write_object(fields))


def calls_in(answer: bytes, format: Format) -> list[RecallCall]:
    """Return the calls of recall tools in a whole answer."""
    told: dict[str, Any] = read_plain(answer)
    match format:
        case "anthropic":
            return [
                RecallCall(id=block["id"], name=block["name"], arguments=write_json(block["input"]).decode())
                for block in told["content"]
                if block.get("type") == "tool_use" and is_recall(block["name"])
            ]
        case "openai_chat":
            calls = told["choices"][0]["message"].get("tool_calls") or ()
            functions = [(call["id"], call.get("function") or {}) for call in calls]
            return [
                RecallCall(id=id, name=function["name"], arguments=function.get("arguments") or "{}")
                for id, function in functions
                if is_recall(function.get("name", ""))
            ]
        case "openai_responses":
            return [
                RecallCall(id=item["call_id"], name=item["name"], arguments=item.get("arguments") or "{}")
                for item in told["output"]
                if item.get("type") == "function_call" and is_recall(item["name"])
            ]


def extended(
    body: bytes, answer: bytes, calls: Sequence[RecallCall], results: Sequence[str], format: Format
) -> bytes:
    """Return the request that goes on from an answer by what its recall calls brought back."""
    told: dict[str, Any] = read_plain(answer)
    pairs = list(zip(calls, results, strict=True))
    items: list[object]
    match format:
        case "anthropic":
            blocks = [
                {"type": "tool_result", "tool_use_id": call.id, "content": said} for call, said in pairs
            ]
            items = [{"role": "assistant", "content": told["content"]}, {"role": "user", "content": blocks}]
        case "openai_chat":
            items = [
                told["choices"][0]["message"],
                *({"role": "tool", "tool_call_id": call.id, "content": said} for call, said in pairs),
            ]
        case "openai_responses":
            items = [
                *told["output"],
                *(
                    {"type": "function_call_output", "call_id": call.id, "output": said}
                    for call, said in pairs
                ),
            ]
    listed = "input" if format == "openai_responses" else "messages"
    return with_items(body, listed, [write_json(item) for item in items])


def _is_free(choice: bytes) -> bool:
    return choice in _AUTO or (b'"type"' in choice and b'"auto"' in choice)


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


class RecallConversation:
    """One exchange of a client with a model that may recall in between."""

    def __init__(
        self,
        answering: AnswerSender,
        *,
        format: Format,
        body: bytes,
        ask: Ask,
        recall: Recall,
        record: Record,
    ) -> None:
        self._answering = answering
        self._format = format
        self._body = body
        self._ask = ask
        self._recall = recall
        self._record = record
        self._hiding: ResponseRewrite = hiding_for(format)
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
