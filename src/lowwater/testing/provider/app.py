"""The HTTP application: read, check, answer by script, keep what was seen."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lowwater.testing.provider.answers import DropConnection, Fail, Hang, Spoken
from lowwater.testing.provider.anthropic.dialect import MessagesDialect
from lowwater.testing.provider.caches import Machines
from lowwater.testing.provider.dialect import Dialect, Ids
from lowwater.testing.provider.openai.dialect import ChatDialect
from lowwater.testing.provider.prompt import Count
from lowwater.testing.provider.records import Records, Seen, masked
from lowwater.testing.provider.responses import CutResponse, HeldResponse
from lowwater.testing.provider.responses_api.dialect import ResponsesDialect
from lowwater.testing.provider.rule import Incoming, Json, Refusal, Violation, first_refusal
from lowwater.testing.provider.script import Script

EVENT_STREAM = "text/event-stream; charset=utf-8"


class Settings(Struct, frozen=True, kw_only=True):
    """What a provider knows about its models."""

    count: Count
    context_lengths: Mapping[str, int]
    default_context: int
    key: bytes

    def context_length(self, model: object) -> int:
        """Return a model's context length; a router's prefix does not matter."""
        name = str(model)
        lengths = self.context_lengths
        return lengths.get(name, lengths.get(name.rpartition("/")[2], self.default_context))


class Application:
    """One provider's routes over one script and one book of records."""

    def __init__(self, *, settings: Settings, script: Script, records: Records, machines: Machines) -> None:
        self._settings = settings
        self._script = script
        self._records = records
        self._ids = Ids()
        self._anthropic = MessagesDialect(ids=self._ids, key=settings.key, machines=machines)
        self._openai = ChatDialect(ids=self._ids, machines=machines)
        self._responses = ResponsesDialect(ids=self._ids, key=settings.key, machines=machines)
        self._stopping = asyncio.Event()
        self.asgi = Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/responses", self._respond, methods=["POST"]),
                Route("/v1/responses/compact", self._compact, methods=["POST"]),
                Route("/v1/responses/input_tokens", self._input_tokens, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ],
            exception_handlers={404: self._unknown, 405: self._unknown},
        )

    def renew(self) -> asyncio.Event:
        """Return a new event that will say that the server stops; each start needs its own."""
        self._stopping = asyncio.Event()
        return self._stopping

    async def _messages(self, request: Request) -> Response:
        return await self._exchange(request, self._anthropic)

    async def _chat(self, request: Request) -> Response:
        return await self._exchange(request, self._openai)

    async def _respond(self, request: Request) -> Response:
        return await self._exchange(request, self._responses)

    async def _compact(self, request: Request) -> Response:
        return await self._exchange(request, self._responses, reply=self._responses.compacted)

    async def _count_tokens(self, request: Request) -> Response:
        return await self._exchange(request, self._anthropic, count=self._anthropic.count)

    async def _input_tokens(self, request: Request) -> Response:
        return await self._exchange(request, self._responses, count=self._responses.count)

    async def _exchange(
        self,
        request: Request,
        dialect: Dialect,
        *,
        count: Callable[[Incoming], Json] | None = None,
        reply: Callable[[Spoken, Incoming], Json] | None = None,
    ) -> Response:
        """Answer a request; `count` answers instead of the script, `reply` makes another body of its answer."""
        seen = await _read(request)
        incoming = self._incoming(seen, counting=count is not None)
        refusal = first_refusal(dialect.rules, incoming)
        if refusal is not None:
            return self._refuse(dialect, refusal, seen, incoming)
        if count is not None:
            self._records.add(seen)
            return JSONResponse(count(incoming), headers=self._headers(dialect))
        answer = self._script.next(seen)
        status = answer.status if isinstance(answer, Fail) else 200
        self._records.add(replace(seen, status=status, answer=answer))
        match answer:
            case Fail():
                said = Violation(status=answer.status, type=answer.type, message=answer.message)
                return self._error(dialect, said, retry_after=answer.retry_after)
            case Hang():
                return HeldResponse(self._stopping)
            case _:
                if reply is not None:
                    return JSONResponse(reply(answer, incoming), headers=self._headers(dialect))
                return self._speak(dialect, answer, incoming)

    def _refuse(self, dialect: Dialect, refusal: Refusal, seen: Seen, incoming: Incoming) -> Response:
        """Return an error, or for what is found out late a stream that ends with one."""
        events = self._responses.refusing(refusal, incoming) if dialect is self._responses else None
        status = refusal.violation.status if events is None else 200
        self._records.add(replace(seen, status=status, refusal=refusal))
        if events is None:
            return self._error(dialect, refusal.violation)
        return StreamingResponse(_each(events), headers=self._headers(dialect), media_type=EVENT_STREAM)

    def _speak(self, dialect: Dialect, answer: Spoken, incoming: Incoming) -> Response:
        reply = dialect.reply(answer, incoming)
        headers = self._headers(dialect)
        streamed = bool(incoming.body.get("stream"))
        if isinstance(answer, DropConnection):
            whole = list(dialect.events(reply, incoming)) if streamed else [msgspec.json.encode(reply)]
            return _half(whole, headers, streamed=streamed)
        if streamed:
            events = dialect.events(reply, incoming)
            return StreamingResponse(_each(events), headers=headers, media_type=EVENT_STREAM)
        return JSONResponse(reply, headers=headers)

    async def _models(self, request: Request) -> Response:
        self._records.add(await _read(request))
        dialect = self._dialect_of(request)
        return JSONResponse(dialect.models(self._settings.context_lengths), headers=self._headers(dialect))

    async def _unknown(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        self._records.add(replace(await _read(request), status=status))
        said = Violation(status=404, type="not_found_error", message="Not Found")
        if status == 405:
            said = Violation(status=405, message="Method Not Allowed")
        return self._error(self._dialect_of(request), said)

    def _incoming(self, seen: Seen, *, counting: bool) -> Incoming:
        return Incoming(
            headers=seen.headers,
            size=len(seen.raw),
            body=seen.body,
            problem=seen.problem,
            context_length=self._settings.context_length(seen.body.get("model")),
            count=self._settings.count,
            counting=counting,
        )

    def _error(self, dialect: Dialect, violation: Violation, retry_after: int | None = None) -> Response:
        headers = self._headers(dialect)
        if retry_after is not None:
            headers["retry-after"] = str(retry_after)
        body = dialect.error(violation, headers[dialect.request_id_header])
        return JSONResponse(body, status_code=violation.status, headers=headers)

    def _headers(self, dialect: Dialect) -> dict[str, str]:
        return {dialect.request_id_header: self._ids.new("req")}

    def _dialect_of(self, request: Request) -> Dialect:
        """Return whose error an unknown request gets, guessed from what only one provider's clients send."""
        headers, path = request.headers, request.url.path
        theirs = "anthropic-version" in headers or "x-api-key" in headers or path.startswith("/v1/messages")
        return self._anthropic if theirs else self._openai


async def _read(request: Request) -> Seen:
    """Return a request as it came, its body decoded if that can be done."""
    raw = await request.body()
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    seen = Seen(method=request.method, path=path, headers=masked(request.headers), raw=raw, body={})
    try:
        return replace(seen, body=msgspec.json.decode(raw, type=Json))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return replace(seen, problem=str(error))
    except RecursionError:
        return replace(seen, problem="nested too deeply")


def _half(whole: list[bytes], headers: dict[str, str], *, streamed: bool) -> Response:
    """Return a response that ends in the middle: of its events, or of its only body."""
    if streamed:
        return CutResponse(whole[: len(whole) // 2], {**headers, "content-type": EVENT_STREAM})
    body = whole[0]
    named = {**headers, "content-type": "application/json", "content-length": str(len(body))}
    return CutResponse([body[: len(body) // 2]], named)


async def _each(events: Iterable[bytes]) -> AsyncIterator[bytes]:
    for event in events:
        yield event
