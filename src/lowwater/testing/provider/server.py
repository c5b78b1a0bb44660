"""The rules-checking provider: a real server that refuses what the real APIs refuse, and records every request."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from threading import Event, Lock, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec
import uvicorn
from msgspec import Struct
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from lowwater.testing.provider.answers import (
    OK,
    Answer,
    CutResponse,
    DropConnection,
    Fail,
    Hang,
    HeldResponse,
    Spoken,
)
from lowwater.testing.provider.anthropic import MessagesDialect
from lowwater.testing.provider.caches import Machines
from lowwater.testing.provider.openai import ChatDialect
from lowwater.testing.provider.prompt import (
    Count,
    Dialect,
    Ids,
    Json,
    ReceivedRequest,
    Refusal,
    Violation,
    first_refusal,
    quarter,
)
from lowwater.testing.provider.responses_api import ResponsesDialect

EVENT_STREAM = "text/event-stream; charset=utf-8"


class Seen(Struct, frozen=True, kw_only=True):
    """One request as it arrived, and the answer it got or the rule it broke."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name, with keys and tokens masked."""
    raw: bytes
    body: dict[str, Any]
    """The decoded body; empty if `problem` says why there is none."""
    problem: str = ""
    status: int = 200
    answer: Answer | None = None
    """The scripted answer; None if the request was refused or did not ask for one."""
    refusal: Refusal | None = None


Scripted: TypeAlias = Iterable[Answer] | Callable[[Seen], Answer]


class Provider:
    """Serves `/v1/messages`, `/v1/chat/completions`, `/v1/responses` and their subpaths inside a `with` block.

    `script` is a sequence of answers, after which every answer is `default`, or a function from the request to its answer.
    `key` signs thinking: providers with the same key accept each other's. Prompts are cached as the provider of the model
    does it, or as `caching` says (a name in `lowwater.testing.provider.caches`); `now` is the clock of the cache, in seconds.
    """

    def __init__(
        self,
        script: Scripted = (),
        *,
        default: Answer = OK,
        count: Count = quarter,
        context_lengths: Mapping[str, int] | None = None,
        default_context: int = 200_000,
        key: bytes = b"lowwater",
        caching: str | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        settings = ProviderSettings(
            count=count, context_lengths=context_lengths or {}, default_context=default_context, key=key
        )
        self._records = Records()
        self._machines = Machines(now=now, caching=caching)
        self._app = Application(
            settings=settings,
            script=AnswerScript(script, default),
            records=self._records,
            machines=self._machines,
        )
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self._server = Server(self._app.asgi, self._app.renew())
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.stop()

    @property
    def anthropic_base_url(self) -> str:
        """What the `anthropic` SDK takes as `base_url`."""
        if self._server is None:
            raise RuntimeError("the provider is not running: use it in a `with` block")
        return self._server.url

    @property
    def openai_base_url(self) -> str:
        """What the `openai` SDK takes as `base_url`."""
        return f"{self.anthropic_base_url}/v1"

    @property
    def requests(self) -> tuple[Seen, ...]:
        """Every request so far, in the order they were answered; refused ones and unknown paths are included."""
        return self._records.all()

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The refusals so far, in order."""
        return tuple(seen.refusal for seen in self.requests if seen.refusal is not None)

    def evict(self) -> None:
        """Forget every cached prefix."""
        self._machines.evict()

    def stray(self, calls: int = 1) -> None:
        """Let each of the next `calls` find an empty cache of its own; later calls find the old one as it was."""
        self._machines.stray(calls)


class AnswerScript:
    """Gives scripted answers in order, then always the default; or what a function returns for the request."""

    def __init__(self, scripted: Scripted, default: Answer) -> None:
        self._choose = scripted if callable(scripted) else None
        self._left = iter(()) if callable(scripted) else iter(scripted)
        self._default = default

    def next(self, seen: Seen) -> Answer:
        """Return the answer to a request that broke no rule."""
        return self._choose(seen) if self._choose else next(self._left, self._default)


class Records:
    """Records requests in the order in which they were answered; safe to read from other threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: list[Seen] = []

    def add(self, seen: Seen) -> None:
        """Record one request."""
        with self._lock:
            self._seen.append(seen)

    def all(self) -> tuple[Seen, ...]:
        """Return the requests so far."""
        with self._lock:
            return tuple(self._seen)


_SECRET = ("x-api-key", "authorization", "cookie")


def masked(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by lower-case name with their secrets masked; the scheme of a token (`Bearer`) stays."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: _mask(value) if name in _SECRET else value for name, value in lowered.items()}


def _mask(value: str) -> str:
    scheme, space, _ = value.partition(" ")
    return f"{scheme} ***" if space else "***"


# The application: routes, refusals and answers


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """What the provider knows about its models, and its key."""

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
    """The routes of one provider, with its script, records and caches."""

    def __init__(
        self, *, settings: ProviderSettings, script: AnswerScript, records: Records, machines: Machines
    ) -> None:
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
        """Return a new event that tells running requests that the server stops; each start needs its own."""
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
        count: Callable[[ReceivedRequest], Json] | None = None,
        reply: Callable[[Spoken, ReceivedRequest], Json] | None = None,
    ) -> Response:
        """Answer a request; `count` answers instead of the script, `reply` turns the scripted answer into another body."""
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

    def _refuse(self, dialect: Dialect, refusal: Refusal, seen: Seen, incoming: ReceivedRequest) -> Response:
        """Return an error, or a stream that ends with one where the API finds out only after the stream has begun."""
        events = self._responses.refusing(refusal, incoming) if dialect is self._responses else None
        status = refusal.violation.status if events is None else 200
        self._records.add(replace(seen, status=status, refusal=refusal))
        if events is None:
            return self._error(dialect, refusal.violation)
        return StreamingResponse(_each(events), headers=self._headers(dialect), media_type=EVENT_STREAM)

    def _speak(self, dialect: Dialect, answer: Spoken, incoming: ReceivedRequest) -> Response:
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

    def _incoming(self, seen: Seen, *, counting: bool) -> ReceivedRequest:
        return ReceivedRequest(
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
        """Return the provider whose format an unknown request gets, guessed from its headers and path."""
        headers, path = request.headers, request.url.path
        theirs = "anthropic-version" in headers or "x-api-key" in headers or path.startswith("/v1/messages")
        return self._anthropic if theirs else self._openai


async def _read(request: Request) -> Seen:
    """Return a request as it arrived, with its body decoded if possible."""
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
    """Return a response that ends in the middle of its events or of its body."""
    if streamed:
        return CutResponse(whole[: len(whole) // 2], {**headers, "content-type": EVENT_STREAM})
    body = whole[0]
    named = {**headers, "content-type": "application/json", "content-length": str(len(body))}
    return CutResponse([body[: len(body) // 2]], named)


async def _each(events: Iterable[bytes]) -> AsyncIterator[bytes]:
    for event in events:
        yield event


# The server

GRACE = 5
"""Seconds that a stopping server gives to answers under way."""


class Server:
    """Serves an application between `start` and `stop`; `start` returns when it serves, `stop` when it has ended."""

    def __init__(self, app: ASGIApp, stopping: asyncio.Event) -> None:
        # asyncio sets TCP_NODELAY only on sockets that name their protocol.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*self._socket.getsockname())
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", http="h11", ws="none", loop="asyncio"
        )
        self._uvicorn = _Uvicorn(config, stopping)
        self._thread = Thread(target=self._run, name="lowwater-provider", daemon=True)

    def start(self) -> None:
        """Start serving."""
        self._thread.start()
        self._uvicorn.ready.wait()
        if not self._uvicorn.started:
            raise RuntimeError("the provider could not start serving: see the error its thread printed")

    def stop(self) -> None:
        """Finish what is under way, close every connection and end the thread."""
        self._uvicorn.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._uvicorn.serve(sockets=[self._socket]))
        finally:
            self._uvicorn.ready.set()


class _Uvicorn(uvicorn.Server):
    """Tells when it is ready, and waits for an event to stop, where uvicorn polls every tenth of a second."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self.ready = Event()
        self._stopping = stopping
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - closed by asyncio
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks), timeout=GRACE)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        while self.server_state.connections:
            await asyncio.sleep(0)

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
