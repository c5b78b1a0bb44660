"""The HTTP application: read, check, answer by script, keep what was seen."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

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
from lowwater.testing.provider.rule import Incoming, Json, Violation, first_refusal
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
        self._stopping = asyncio.Event()
        self.asgi = Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
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

    async def _count_tokens(self, request: Request) -> Response:
        return await self._exchange(request, self._anthropic, counting=True)

    async def _exchange(self, request: Request, dialect: Dialect, *, counting: bool = False) -> Response:
        seen = await _read(request)
        incoming = self._incoming(seen, counting=counting)
        refusal = first_refusal(dialect.rules, incoming)
        if refusal is not None:
            self._records.add(replace(seen, status=refusal.violation.status, refusal=refusal))
            return self._error(dialect, refusal.violation)
        if counting:
            self._records.add(seen)
            return JSONResponse(self._anthropic.count(incoming), headers=self._headers(dialect))
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
                return self._speak(dialect, answer, incoming)

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
