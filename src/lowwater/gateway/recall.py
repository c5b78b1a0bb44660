"""Recall for clients that know nothing of it: the tools are added to their requests, and calls of them are answered here."""

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
from lowwater.core.formats.codec import decode_messages, decode_response, encode_messages
from lowwater.core.formats.convert import tools_as
from lowwater.core.formats.streams import CUT_OFF, EventReader
from lowwater.core.messages import Format, with_unique_call_ids
from lowwater.core.recall.recalled import anthropic_tools, openai_tools
from lowwater.core.strict_json import as_strict_json, read_plain, write_json, write_object
from lowwater.core.tools import is_recall, offers_recall
from lowwater.errors import BadInput
from lowwater.gateway.client_request import ClientRequest
from lowwater.gateway.observability import error_location
from lowwater.gateway.relay import (
    EVENTS,
    NO_STATUS,
    AnswerSender,
    StreamObserver,
    abort_response,
    read_refusal,
    run_until_disconnect,
    send_body,
    stream_chunks,
)
from lowwater.gateway.response_rewrite import ResponseRewrite, rewrite_for
from lowwater.gateway.upstream import Headers, Refused, returned
from lowwater.summarizers.requests import with_items

_log = logging.getLogger("lowwater.gateway")

MOST_ROUNDS = 6
"""How often a model may recall in a row before it has to answer with what it has."""
_AUTO_CHOICES = frozenset({b"", b"null", b'"auto"'})
_ONE_ANSWER = frozenset({b"1", b"null"})
_READING_ERRORS = (
    BadInput,
    msgspec.MsgspecError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)
"""What reading something that is no answer may raise: a provider may send anything."""
Ask = Callable[[bytes], Coroutine[Any, Any, aiohttp.ClientResponse]]
RecordExchange = Callable[[bytes | None, Sequence[Usage]], Awaitable[None]]


class RecallCall(Struct, frozen=True, kw_only=True):
    """A call of a recall tool."""

    id: str
    name: str
    arguments: str


Recall = Callable[[Sequence[RecallCall]], Awaitable[list[str]]]


def with_recall(client_request: ClientRequest) -> ClientRequest:
    """Return the request with the recall tools after the client's own.

    A request without tools, that forces a tool, or that wants several answers stays as it is.
    """
    tools, choice = client_request.tools, client_request.fields.get("tool_choice", b"")
    wants_several = client_request.fields.get("n", b"1") not in _ONE_ANSWER
    if len(tools) < len(b"[{}]") or offers_recall(tools) or wants_several or not _lets_model_choose(choice):
        return client_request
    added = tools.rstrip()[:-1] + b"," + _tools_by_format()[client_request.format][1:]
    fields = client_request.fields | {"tools": added}
    return replace(client_request, fields=fields, body=write_object(fields))


def _lets_model_choose(choice: bytes) -> bool:
    return choice in _AUTO_CHOICES or (b'"type"' in choice and b'"auto"' in choice)


def _tools_by_format() -> MappingProxyType[Format, bytes]:
    anthropic = write_json(anthropic_tools())
    chat = write_json(openai_tools())
    return MappingProxyType(
        {
            "anthropic": anthropic,
            "openai_chat": chat,
            "openai_responses": tools_as(chat, "openai_responses"),
        }
    )


def recall_calls(answer: bytes, format: Format) -> list[RecallCall]:
    """Return the calls of recall tools in a complete answer."""
    decoded: dict[str, Any] = read_plain(answer)
    match format:
        case "anthropic":
            return [
                RecallCall(id=block["id"], name=block["name"], arguments=write_json(block["input"]).decode())
                for block in decoded["content"]
                if block.get("type") == "tool_use" and is_recall(block["name"])
            ]
        case "openai_chat":
            calls = decoded["choices"][0]["message"].get("tool_calls") or ()
            functions = [(call["id"], call.get("function") or {}) for call in calls]
            return [
                RecallCall(id=id, name=function["name"], arguments=function.get("arguments") or "{}")
                for id, function in functions
                if is_recall(function.get("name", ""))
            ]
        case "openai_responses":
            return [
                RecallCall(id=item["call_id"], name=item["name"], arguments=item.get("arguments") or "{}")
                for item in decoded["output"]
                if item.get("type") == "function_call" and is_recall(item["name"])
            ]


def request_with_results(
    body: bytes, answer: bytes, calls: Sequence[RecallCall], results: Sequence[str], format: Format
) -> bytes:
    """Return the request that continues from an answer with the results of its recall calls."""
    decoded: dict[str, Any] = read_plain(answer)
    pairs = list(zip(calls, results, strict=True))
    items: list[object]
    match format:
        case "anthropic":
            blocks = [
                {"type": "tool_result", "tool_use_id": call.id, "content": result} for call, result in pairs
            ]
            items = [
                {"role": "assistant", "content": decoded["content"]},
                {"role": "user", "content": blocks},
            ]
        case "openai_chat":
            items = [
                decoded["choices"][0]["message"],
                *({"role": "tool", "tool_call_id": call.id, "content": result} for call, result in pairs),
            ]
        case "openai_responses":
            items = [
                *decoded["output"],
                *(
                    {"type": "function_call_output", "call_id": call.id, "output": result}
                    for call, result in pairs
                ),
            ]
    listed = "input" if format == "openai_responses" else "messages"
    raws = [write_json(item) for item in items]
    if len({call.id for call in calls}) < len(calls):
        raws = encode_messages(with_unique_call_ids(decode_messages(raws, format)), format)
    return with_items(body, listed, raws)


class _RefusedAfterRecall(Refused):
    """The provider refused the request that followed a recall; the client gets its refusal unchanged."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        status = response.status if response.status < NO_STATUS else 502
        super().__init__(status, f"the provider answered {response.status} behind a recall")
        self._body = body
        self._headers = returned(response)

    def body(self, *, anthropic: bool) -> bytes:  # noqa: ARG002 - it is in the client's format already
        """Return what the provider said."""
        return self._body

    def headers(self, body: bytes) -> Headers:  # noqa: ARG002 - they came with the body
        """Return the provider's headers."""
        return self._headers


class RecallConversation:
    """One answer of a model that may recall in between: asks again with the results, and shows the client one answer."""

    def __init__(
        self,
        sender: AnswerSender,
        *,
        format: Format,
        body: bytes,
        ask: Ask,
        recall: Recall,
        record: RecordExchange,
    ) -> None:
        self._sender = sender
        self._format = format
        self._body = body
        self._ask = ask
        self._recall = recall
        self._record = record
        self._rewrite: ResponseRewrite = rewrite_for(format)
        self._usages: list[Usage | None] = []
        """Of each complete answer."""
        self._before: tuple[bytes, ...] = ()
        self._held: list[bytes] = []
        """The end of a stream, which waits until the answer is recorded."""
        self._answer = b""
        """All complete answers, merged into the one that the client sees."""
        self._as_it_came = b""
        """The only answer, if it is no valid JSON and nothing in it has to be hidden; what is recorded is."""
        self._response: aiohttp.ClientResponse
        """The newest response; set by `relay`."""

    async def relay(self, response: aiohttp.ClientResponse, *, before: Sequence[bytes] = ()) -> None:
        """Pass on the answer that begins with this response, of which `before` was read already."""
        self._response, self._before = response, tuple(before)
        passing = self._relay_stream() if response.content_type == EVENTS else self._relay_whole()
        await run_until_disconnect(passing, self._close, self._sender)

    def _close(self, *, is_whole: bool) -> None:
        self._response.release() if is_whole else self._response.close()

    async def _relay_stream(self) -> None:
        await self._send_head(self._response, length=None)
        try:
            answer = await self._relay_streams(self._response)
        except Refused as refused:
            await self._record_exchange(None)
            await self._send_end(self._rewrite.fail(_error_fields(refused, self._format)))
            raise
        except BaseException:
            await abort_response(self._response, self._record_nothing)
            raise
        await self._record_exchange(answer)
        await self._send_end(self._held)

    async def _send_end(self, events: Sequence[bytes]) -> None:
        for event in events:
            await send_body(self._sender.send, event, more=True)
        await send_body(self._sender.send, b"", more=False)

    async def _record_exchange(self, answer: bytes | None) -> None:
        """Record what the client got; if the last answer is incomplete (None), the complete ones before it, which were paid for."""
        others = [usage for usage in self._usages[:-1] if usage is not None]
        if answer is None and self._usages:
            await self._record(self._answer, others)
        await self._record(answer, others)

    async def _record_nothing(self, _: bytes | None) -> None:
        await self._record(None, ())

    async def _relay_streams(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Pass on what the client sees of all answers but the end of the last; return them merged, None if the last is incomplete."""
        for left in reversed(range(MOST_ROUNDS)):
            answer = await self._relay_one_stream(response)
            if answer is None:
                return None
            if not self._add_answer(answer):
                # The client has seen nearly all of it, and may understand it.
                self._held = self._stream_end()
                return None
            next_response = await self._follow_recall(answer, left)
            if next_response is None:
                break
            response = next_response
        self._held = self._stream_end()
        return self._answer

    async def _relay_one_stream(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Pass on what the client sees of one answer, and return the complete answer; None if it is cut off."""
        stream, events = StreamObserver(self._format), EventReader()
        before, self._before = self._before, ()
        with self._provider_errors():
            async for chunk in stream_chunks(response, before):
                stream.feed(chunk)
                for event in events.feed(chunk):
                    for visible in self._visible_events(event):
                        await send_body(self._sender.send, visible, more=True)
        stream.end()
        if stream.broken and stream.broken != CUT_OFF:
            self._held = self._stream_end()
        return stream.answer()

    def _stream_end(self) -> list[bytes]:
        """Return the end of the stream, which was held back; empty if it cannot be written."""
        try:
            return self._rewrite.end()
        except Exception as error:  # noqa: BLE001 - a provider may say anything
            _log.error("the end of a stream cannot be written: %s", error_location(error))
            return []

    def _visible_events(self, event: bytes) -> list[bytes]:
        """Return what the client sees of an event; one that cannot be read here is passed on as it is."""
        try:
            return self._rewrite.feed_event(event)
        except Exception:  # noqa: BLE001 - a provider may say anything
            return [b"data: " + event.replace(b"\n", b"\ndata: ") + b"\n\n"]

    def _add_answer(self, answer: bytes) -> bool:
        """Add a complete answer to those that make up what the client sees; return whether it could be read."""
        try:
            usage = decode_response(answer).usage
            recall_calls(answer, self._format)
            self._rewrite.add_answer(answer)
            self._answer = self._rewrite.answer()
        except Exception:  # noqa: BLE001 - a provider may say anything
            return False
        self._usages.append(usage)
        return True

    async def _relay_whole(self) -> None:
        first = self._response
        try:
            not_an_answer = await self._read_answers(first)
        except Refused:
            await self._record_exchange(None)
            raise
        except BaseException:
            await abort_response(self._response, self._record_nothing)
            raise
        answer = self._answer if not_an_answer is None else not_an_answer
        await self._record_exchange(answer if not_an_answer is None else None)
        shown = self._as_it_came or answer
        await self._send_head(first if not_an_answer is None else self._response, length=len(shown))
        await send_body(self._sender.send, shown, more=False)

    async def _read_answers(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Read all answers; return what came instead of the last one if that cannot be read, None otherwise."""
        first = response
        for left in reversed(range(MOST_ROUNDS)):
            with self._provider_errors():
                raw = await response.read()
            answer = as_strict_json(raw)
            if not self._add_answer(answer):
                return raw
            next_response = await self._follow_recall(answer, left)
            if next_response is None:
                if answer != raw and response is first and not recall_calls(answer, self._format):
                    self._as_it_came = raw
                break
            response = next_response
        return None

    async def _follow_recall(self, answer: bytes, left: int) -> aiohttp.ClientResponse | None:
        """Answer the recall calls of an answer and return the next response, or raise Refused; None without such calls or rounds left."""
        if not self._rewrite.only_recalled() or not left:
            return None
        calls = recall_calls(answer, self._format)
        results = await self._recall(calls)
        try:
            self._body = request_with_results(self._body, answer, calls, results, self._format)
        except Exception as error:  # noqa: BLE001 - the client gets the answer as it is
            _log.error("a recall that cannot be followed: %s", error_location(error))
            return None
        with self._provider_errors():
            response = await self._ask(self._body)
            if response.status >= 300:
                raise _RefusedAfterRecall(response, await read_refusal(response))
        self._response.release()
        self._response = response
        self._rewrite.next_answer()
        return response

    @contextmanager
    def _provider_errors(self) -> Iterator[None]:
        """Turn a lost connection after a recall into Refused: the client may have seen a beginning, and has to be told."""
        try:
            yield
        except (aiohttp.ClientError, OSError) as error:
            if not self._usages:
                raise
            raise Refused(502, f"the provider could not be reached: {type(error).__name__}") from error

    async def _send_head(self, response: aiohttp.ClientResponse, *, length: int | None) -> None:
        headers = [(name, value) for name, value in returned(response) if name != b"content-length"]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        await self._sender.send(
            {"type": "http.response.start", "status": response.status, "headers": headers}
        )


def _error_fields(refused: Refused, format: Format) -> dict[str, Any]:
    """Return the error object of a refusal in a format; the provider's own may not be in any."""
    is_anthropic = format == "anthropic"
    with suppress(*_READING_ERRORS):
        theirs: dict[str, Any] = msgspec.json.decode(refused.body(anthropic=is_anthropic))["error"]
        if theirs.get("message"):
            return theirs
    ours = Refused(refused.status, refused.message).body(anthropic=is_anthropic)
    error: dict[str, Any] = msgspec.json.decode(ours)["error"]
    return error
