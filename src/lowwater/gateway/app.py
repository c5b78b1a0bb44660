"""The gateway as an ASGI application: checks each request, runs a conversation as a turn of its session, forwards the rest.

`Gateway._http` is where a request comes in; `Gateway._converse` is one turn from top to bottom.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

import aiohttp
from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.anthropic import betas_of_body
from lowwater.core.formats.refusals import is_image_refusal, is_overflow
from lowwater.core.tools import offers_recall
from lowwater.errors import LowwaterError, StoreFailed
from lowwater.gateway.admission import (
    Admission,
    IncomingBody,
    refuse_unless_admitted,
    refuse_unless_operator,
    share_owner,
)
from lowwater.gateway.client_request import (
    FORMATS,
    ClientRequest,
    UnreadRequest,
    is_utf8,
    read_client_request,
)
from lowwater.gateway.credentials import (
    IdlePrefetch,
    credential_in,
    is_api_key,
    is_to_be_untouched,
    may_pay_for_summaries,
)
from lowwater.gateway.dashboard.access import DashboardAccess
from lowwater.gateway.dashboard.app import Dashboard
from lowwater.gateway.idle import IdleKeeper, may_keep_warm
from lowwater.gateway.observability import METRICS_TYPE, GatewayMetrics, LogLine, error_location, write_line
from lowwater.gateway.open_sessions import OpenSessions
from lowwater.gateway.options import OWN_TENANT, GatewayOptions
from lowwater.gateway.origin_checks import (
    CheckedScope,
    refuse_web_pages,
    refuse_without_capability,
    strip_capability,
)
from lowwater.gateway.recall import Ask, RecallCall, RecallConversation, RecordExchange
from lowwater.gateway.relay import (
    AnswerSender,
    ClientDisconnected,
    HttpRequest,
    Receive,
    Scope,
    Send,
    StreamOpening,
    UndecodableBody,
    body_too_large,
    decompress,
    headers_by_name,
    read_opening,
    read_refusal,
    read_request,
    relay,
    relay_answer,
    relay_read,
)
from lowwater.gateway.tenants import tenant_of
from lowwater.gateway.turns import GatewayTurn, GatewayTurns, RecordingQueue, RequestContext, UnrecordedAnswer
from lowwater.gateway.upstream import Headers, Refused, Upstreams, forwarded, is_anthropic
from lowwater.protocols import Clock, Store
from lowwater.session.dependencies import SystemClock, checked_while_counting

T = TypeVar("T")

_log = logging.getLogger("lowwater.gateway")

_THREADS = 16
_THREADS_PER_CLIENT = 8
"""Threads that the turns of one client may take, so that others always find some."""
_LARGE = 256 * 1024
"""Bytes from which a body is parsed in a thread: doing it in the event loop would hold up everybody else."""
_STORE_SECONDS = 20.0
"""How long a request may wait for the store before it is forwarded unchanged."""
_RECORD_SECONDS = 10.0
"""How long the end of an answer may wait for the store."""
_STORE_FAILED = "store"
"""The first word of the outcome where the store could not be reached."""
_NOT_RECALLED = "The conversation's history cannot be read at the moment. Go on without it."


class _WorkAbandoned(Exception):
    """Nobody waits for the result of a thread's work any more."""


class _CancellableWork:
    """Lets a thread stop in the middle of its work once nobody waits for the result."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def run(self, call: Callable[..., T], *arguments: object) -> T:
        """Return the result of `call`, or raise in the middle of it once this is cancelled."""
        with checked_while_counting(self._check):
            return call(*arguments)

    def _check(self) -> None:
        if self.is_cancelled:
            raise _WorkAbandoned


class _ThreadSlot:
    """One of a client's threads, released at most once."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots: asyncio.Semaphore | None = slots
        self._loop = asyncio.get_running_loop()

    def release(self) -> None:
        """Let the next request have it."""
        if self._slots is not None:
            self._slots.release()
            self._slots = None

    def release_from_thread(self, _: object) -> None:
        """Release it from the thread that has ended its work; the event loop may have ended before it."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.release)


class _SentTurn(Struct, frozen=True, kw_only=True):
    """A turn that was sent, and the provider's response to it."""

    turn: GatewayTurn
    response: aiohttp.ClientResponse
    refusal: bytes | None
    """The whole body of a refusal; None if the response is an answer."""
    before: tuple[bytes, ...]
    """Chunks of the answer that were read already."""
    is_broken: bool
    """Whether the stream begins with a refusal."""


class Gateway:
    """The ASGI application: serves any number of clients from one store, which has all of its lasting state."""

    def __init__(
        self,
        options: GatewayOptions,
        store: Store,
        *,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._store = store
        self._metrics = GatewayMetrics()
        self._upstreams = Upstreams(options)
        self._sessions = OpenSessions(store, options, sinks=(self._metrics.sink,), clock=clock)
        self._turns = GatewayTurns(self._sessions, options)
        self._prefetch = IdlePrefetch(options)
        self.idle = IdleKeeper(
            options,
            self._upstreams,
            self._metrics,
            self._in_thread,
            clock=clock or SystemClock(),
            monotonic=monotonic,
        )
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lowwater-gateway")
        self._secret = store.secret()
        self._under_way = 0
        self._metrics.under_way.set_function(lambda: self._under_way)
        self._admission = Admission(options)
        self._metrics.held_bytes.set_function(lambda: self._admission.held_bytes)
        self._thread_slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """By client; gone with the client's last request."""
        self._recordings = RecordingQueue(self._turns, self._metrics, self._in_thread)
        # What `lowwater run` keeps is its user's own; elsewhere contents belong to the tenants.
        # `lowwater run` is its user's own; a gateway for others may have a tenant of the same name.
        is_owner = options.tenant == OWN_TENANT and bool(options.capability)
        access = DashboardAccess(is_owner=is_owner, token=options.dashboard_token)
        self.dashboard = Dashboard(store, options, access)

    @property
    def header_seconds(self) -> float:
        """How long a client may take to send the head of a request."""
        return self._options.header_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the server's start and end."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http" and Dashboard.has(scope["path"]):
            await self.dashboard(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    def end_streams(self) -> None:
        """Let the dashboard's streams end, for which the server would wait."""
        self.dashboard.end_streams()

    async def open(self) -> None:
        """Open the pool of connections to the providers."""
        await self._upstreams.open()

    async def close(self) -> None:
        """Close connections and threads; the store belongs to the caller."""
        await self.dashboard.close()
        await self._recordings.close()
        await self._prefetch.close()
        await self.idle.close()
        await self._upstreams.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.open()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    # From a request to the right handler

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever goes wrong, and log it."""
        checked = strip_capability(scope, self._options.capability)
        scope = checked.scope
        line = LogLine(method=scope["method"], path=scope["path"], began=time.perf_counter())
        sender = AnswerSender(receive, send, line, stalled_seconds=self._options.stalled_seconds)
        self._under_way += 1
        try:
            await self._route(checked, sender, line)
        except ClientDisconnected:
            line.outcome = "client gone"
        except Refused as refused:
            await sender.refuse(refused)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            line.outcome = f"upstream: {type(error).__name__}"
            await sender.refuse(Refused(502, f"the provider could not be reached: {type(error).__name__}"))
        except Exception as error:  # noqa: BLE001 - the outermost handler: the client gets a sentence, never a traceback
            _log.error("a defect in the gateway: %s", error_location(error))
            await sender.refuse(Refused(500, f"a defect in the gateway: {type(error).__name__}"))
        finally:
            await sender.close()
            self._under_way -= 1
            self._metrics.request(line)
            write_line(line)

    async def _route(self, checked: CheckedScope, sender: AnswerSender, line: LogLine) -> None:
        """Check who asks, read the body, and handle a conversation or forward anything else."""
        scope = checked.scope
        headers = headers_by_name(list(scope["headers"]))
        sender.anthropic = is_anthropic(scope["path"], headers)
        refuse_web_pages(scope, headers, self._options)
        if scope["path"] == "/healthz" and scope["method"] in {"GET", "HEAD"}:
            await sender.plain(*await self._health())
            return
        if scope["path"] == "/metrics" and scope["method"] == "GET":
            refuse_unless_operator(headers, self._options)
            await sender.plain(200, self._metrics.text().encode(), METRICS_TYPE)
            return
        if scope["path"] == "/" and scope["method"] in {"GET", "HEAD"}:
            await sender.plain(200, b'{"gateway":"lowwater"}')
            return
        refuse_without_capability(checked)
        refuse_unless_admitted(headers, self._options)
        address = (scope.get("client") or ("",))[0]
        client = share_owner(headers, secret=self._secret, address=address)
        with self._admission.receiving(client, address) as incoming_body:
            http = await read_request(
                scope,
                sender.receive,
                incoming_body,
                most_bytes=self._options.most_bytes,
                seconds=self._options.body_seconds,
            )
            line.request_bytes = len(http.body)
            with self._admission.working(incoming_body):
                request = await self._parse(http, incoming_body, sender)
                if isinstance(request, ClientRequest):
                    await self._converse(http, request, client, sender, line)
                    return
                incoming_body.release_above(len(http.body))
                if request is not None:
                    line.did, line.why = "passed-on", request.why
                await self._forward(http, sender)

    async def _health(self) -> tuple[int, bytes]:
        try:
            await asyncio.wait_for(self._in_thread(self._store.secret), 5)
        except (LowwaterError, TimeoutError):
            return 503, b'{"status":"unhealthy","store":"unusable"}'
        return 200, b'{"status":"ok","store":"ok"}'

    async def _parse(
        self, http: HttpRequest, incoming_body: IncomingBody, sender: AnswerSender
    ) -> ClientRequest | UnreadRequest | None:
        """Return the conversation in a request, or why it cannot be read; None if its path carries none."""
        if http.method != "POST" or http.path not in FORMATS:
            return None
        if len(http.body) < _LARGE and not http.coding:
            return self._parse_body(http, [http.body])
        return await sender.unless_disconnected(self._parse_in_thread(http, incoming_body))

    async def _parse_in_thread(
        self, http: HttpRequest, incoming_body: IncomingBody
    ) -> ClientRequest | UnreadRequest:
        try:
            pieces = await self._decompress(http, incoming_body) if http.coding else [http.body]
        except UndecodableBody:
            return UnreadRequest(why="compressed in a way that cannot be read here")
        return await self._in_reading_thread(incoming_body.client, self._parse_body, http, pieces)

    async def _decompress(self, http: HttpRequest, incoming_body: IncomingBody) -> list[bytes]:
        """Return the decompressed body; memory is reserved piece by piece, as a few bytes may expand to very many."""
        coming = decompress(http.body, http.coding)
        pieces: list[bytes] = []
        size = 0
        while piece := await self._in_reading_thread(incoming_body.client, next, coming, b""):
            size += len(piece)
            if size > self._options.most_bytes:
                raise body_too_large(self._options.most_bytes)
            incoming_body.reserve_total(size)
            pieces.append(piece)
        return pieces

    async def _in_reading_thread(self, client: str, call: Callable[..., T], *arguments: object) -> T:
        try:
            return await self._in_client_thread(client, call, *arguments)
        except TimeoutError:
            raise Refused(503, "this gateway is too busy to read the request", retry_after=2) from None

    def _parse_body(self, http: HttpRequest, pieces: list[bytes]) -> ClientRequest | UnreadRequest:
        plain = b"".join(pieces)
        pieces.clear()
        return read_client_request(http.path, plain, http.headers, most_messages=self._options.most_messages)

    async def _forward(self, http: HttpRequest, sender: AnswerSender) -> None:
        """Forward a request and its response unchanged."""
        base_url = self._upstreams.base_url(http.path, http.headers)
        response = await sender.unless_disconnected(
            self._upstreams.send(http.method, base_url, http.target, forwarded(http.raw_headers), http.body)
        )
        await relay(response, sender)

    # A conversation: one turn of a session

    async def _converse(
        self, http: HttpRequest, request: ClientRequest, client: str, sender: AnswerSender, line: LogLine
    ) -> None:
        """Prepare a turn, send it, pass its answer on and record it."""
        context = RequestContext(
            tenant=tenant_of(
                http.headers,
                secret=self._secret,
                fixed=self._options.tenant,
                trusts_tokens=self._options.trusts_tokens,
            ),
            base_url=self._upstreams.base_url(http.path, http.headers),
            client_pays=may_pay_for_summaries(http.headers, self._options),
            marking=self._options.marks if is_api_key(http.headers) else "client",
            is_untouched=is_to_be_untouched(http.headers),
            keeps_warm=may_keep_warm(http.headers, self._options),
        )
        base_url = context.base_url
        line.model, line.tenant, line.streams = request.model, context.tenant[:8], request.streams
        if request.counts_only:
            line.did = "counted"
            if self._options.shadow or context.is_untouched:
                await self._forward(http, sender)
                return
            await self._count(http, request, context, sender, line, client=client)
            return
        is_shadow = self._options.shadow
        turn = await self._begin_turn(request, context, client, sender, line)
        line.prepared = time.perf_counter() - line.began
        if turn is None:
            line.did, line.why = "passed-on", line.outcome
            await self._forward_without_turn(http, request, context, sender, line)
            return
        if context.keeps_warm:
            self.idle.end(turn)
        _describe_turn(line, turn, request, is_shadow=is_shadow)
        ask = partial(self._ask, http, request, base_url)
        sent = await self._send_turn(turn, ask, sender, line)
        # A refused prompt may have been compacted and sent once more.
        _describe_turn(line, sent.turn, request, is_shadow=is_shadow)
        if sent.refusal is not None:
            await relay_read(sent.response, sent.refusal, sender)
            return
        turn = sent.turn
        if not sent.is_broken:
            await self._accept(turn, line)
        credential = credential_in(http.headers, format=request.format, base_url=base_url)
        prefetch = self._prefetch.begin(turn.session, credential if context.client_pays else None)
        try:
            record = partial(self._record, turn, line, prefetch)
            is_own = is_shadow or turn.is_untouched
            if self._options.recall and not is_own and offers_recall(turn.client_request.tools):
                conversation = self._recall_conversation(turn, sender, ask, record)
                await conversation.relay(sent.response, before=sent.before)
            else:
                await relay_answer(
                    sent.response, sender, format=request.format, record=record, before=sent.before
                )
            if context.keeps_warm and not turn.key_before_question:
                headers = self._headers(http, request, turn.body, is_plain=True)
                self.idle.begin(turn, http.target, headers, credential)
        finally:
            self._prefetch.end(prefetch)

    async def _begin_turn(
        self,
        request: ClientRequest,
        context: RequestContext,
        client: str,
        sender: AnswerSender,
        line: LogLine,
    ) -> GatewayTurn | None:
        """Return the turn; None if the request has to be forwarded unchanged.

        A list that was compacted before is refused instead: unchanged it might not fit, and it would miss the provider's cache.
        """
        try:
            return await sender.unless_disconnected(self._prepare_turn(request, context, client))
        except (StoreFailed, TimeoutError) as error:
            line.outcome = f"{_STORE_FAILED}: {type(error).__name__}"
        except ClientDisconnected:
            raise
        except LowwaterError as error:
            line.outcome = f"passed on: {type(error).__name__}"
            return None
        except Exception as error:  # noqa: BLE001 - a defect here must not cost a client its answer
            _note_defect(error, line)
        if await self._continues_changed(request, context, line):
            raise Refused(503, "this gateway cannot go on with it at the moment", retry_after=2)
        return None

    async def _prepare_turn(
        self, request: ClientRequest, context: RequestContext, client: str
    ) -> GatewayTurn:
        return await self._in_client_thread(
            client, self._turns.begin, request, context, first=self._recordings.drain_if_due
        )

    async def _continues_changed(
        self, request: ClientRequest, context: RequestContext, line: LogLine
    ) -> bool:
        try:
            return await self._in_thread(self._turns.continues_changed, request, context)
        except Exception as error:  # noqa: BLE001 - what cannot be read was never compacted
            _note_defect(error, line)
            return False

    async def _forward_without_turn(
        self,
        http: HttpRequest,
        request: ClientRequest,
        context: RequestContext,
        sender: AnswerSender,
        line: LogLine,
    ) -> None:
        """Forward a request unchanged; if that is because the store failed, its answer is recorded later."""
        if not line.outcome.startswith(_STORE_FAILED):
            await self._forward(http, sender)
            return
        response = await sender.unless_disconnected(self._ask(http, request, context.base_url, request.body))
        if response.status >= 300:
            await relay(response, sender)
            return

        async def enqueue(answer: bytes | None) -> None:
            if answer is not None and is_utf8(answer):
                unrecorded = UnrecordedAnswer(answer=answer, client_request=request, context=context)
                self._recordings.enqueue(unrecorded)

        await relay_answer(response, sender, format=request.format, record=enqueue)

    async def _send_turn(self, turn: GatewayTurn, ask: Ask, sender: AnswerSender, line: LogLine) -> _SentTurn:
        """Send a turn; if the provider refuses it as too long, compact it and send it once more."""
        for is_last in (False, True):
            response = await sender.unless_disconnected(ask(turn.body))
            opening = StreamOpening()
            refusal = (
                await sender.unless_disconnected(read_refusal(response)) if response.status >= 300 else None
            )
            if refusal is None:
                opening = await sender.unless_disconnected(read_opening(response, turn.client_request.format))
            error = refusal if refusal is not None else opening.broken.encode()
            # A stream that begins with an error has the status 200.
            status = max(400, response.status)
            is_final = is_last or self._options.shadow or turn.is_untouched
            smaller = None if is_final else await self._retry_smaller(status, error, turn, line)
            if smaller is None:
                break
            response.close()
            turn = smaller
        return _SentTurn(
            turn=turn,
            response=response,
            refusal=refusal,
            before=opening.chunks,
            is_broken=bool(opening.broken),
        )

    async def _ask(
        self, http: HttpRequest, request: ClientRequest, base_url: str, body: bytes
    ) -> aiohttp.ClientResponse:
        """Send a client's request with this body; one that differs from the client's gets the beta headers it needs.

        The client's own body leaves in the very bytes it came in, still compressed if it was.
        """
        is_own = body is request.body
        headers = self._headers(http, request, body, is_plain=bool(http.coding) and not is_own)
        sent = http.body if is_own else body
        return await self._upstreams.send(http.method, base_url, http.target, headers, sent)

    def _headers(self, http: HttpRequest, request: ClientRequest, body: bytes, *, is_plain: bool) -> Headers:
        """Return the client's headers to send a body with; `is_plain` if it is no longer compressed."""
        betas = () if body is request.body else betas_of_body(body)
        return forwarded(http.raw_headers, readable=True, betas=betas, is_plain=is_plain)

    async def _retry_smaller(
        self, status: int, error: bytes, turn: GatewayTurn, line: LogLine
    ) -> GatewayTurn | None:
        """Return a smaller turn if the provider refused the prompt as too long or its images as too many; None otherwise."""
        if not (is_overflow(status, error) or is_image_refusal(status, error)):
            return None
        line.overflowed = True
        try:
            return await self._in_thread(self._turns.retry_smaller, turn, error.decode(errors="replace"))
        except LowwaterError:
            return None
        except Exception as defect:  # noqa: BLE001 - the client gets the provider's refusal
            _note_defect(defect, line)
            return None

    async def _accept(self, turn: GatewayTurn, line: LogLine) -> None:
        """Store what the client sent; before the provider begins to answer, nothing of a request is stored."""
        try:
            await asyncio.wait_for(self._in_thread(self._turns.accept, turn), _RECORD_SECONDS)
        except (LowwaterError, TimeoutError) as error:
            line.outcome = f"not recorded: {type(error).__name__}"
        except Exception as error:  # noqa: BLE001 - the provider's answer is passed on all the same
            _note_defect(error, line)

    def _recall_conversation(
        self, turn: GatewayTurn, sender: AnswerSender, ask: Ask, record: RecordExchange
    ) -> RecallConversation:
        recall = partial(self._recall, turn)
        return RecallConversation(
            sender, format=turn.client_request.format, body=turn.body, ask=ask, recall=recall, record=record
        )

    async def _recall(self, turn: GatewayTurn, calls: Sequence[RecallCall]) -> list[str]:
        """Return the results of a model's recall calls; if the store cannot be read, the model is told so."""
        try:
            return await asyncio.wait_for(self._in_thread(self._turns.recall, turn, calls), _STORE_SECONDS)
        except Exception as error:  # noqa: BLE001 - an answer that was paid for must not be lost to a failed recall
            _log.error("a recall that failed: %s", error_location(error))
            return [_NOT_RECALLED] * len(calls)

    async def _record(
        self,
        turn: GatewayTurn,
        line: LogLine,
        prefetch: "asyncio.Task[None] | None",
        answer: bytes | None,
        others: Sequence[Usage] = (),
    ) -> None:
        """Record an answer and wait for a summary that is being written; whatever fails, the client gets the answer.

        `answer` is None if it is incomplete. The client may have gone then, and no summary is waited for. What the store does
        not take now is queued.
        """
        if answer is not None and not is_utf8(answer):
            line.outcome, answer = "not recorded: not UTF-8", None
        recording = asyncio.ensure_future(self._in_thread(self._turns.end, turn, answer, others))
        unrecorded = None
        if answer is not None:
            unrecorded = UnrecordedAnswer(
                answer=answer, turn=turn, others=tuple(others), client_request=turn.client_request
            )
        await asyncio.wait({recording}, timeout=_RECORD_SECONDS)
        if not recording.done():
            line.outcome = "not recorded: TimeoutError"
            if unrecorded is not None:
                self._recordings.enqueue_on_failure(unrecorded, recording)
        elif error := recording.exception():
            self._recording_failed(error, unrecorded, line)
        if answer is not None:
            await self._prefetch.wait(prefetch)

    def _recording_failed(
        self, error: BaseException, unrecorded: UnrecordedAnswer | None, line: LogLine
    ) -> None:
        if isinstance(error, StoreFailed) and unrecorded is not None:
            self._recordings.enqueue(unrecorded)
        if isinstance(error, LowwaterError):
            line.outcome = f"not recorded: {type(error).__name__}"
        elif isinstance(error, Exception):
            _note_defect(error, line)

    async def _count(
        self,
        http: HttpRequest,
        request: ClientRequest,
        context: RequestContext,
        sender: AnswerSender,
        line: LogLine,
        *,
        client: str,
    ) -> None:
        """Have the provider count the prompt that would really be sent."""
        try:
            body = await sender.unless_disconnected(
                self._in_client_thread(client, self._turns.body_for_counting, request, context)
            )
        except ClientDisconnected:
            raise
        except (LowwaterError, TimeoutError) as error:
            line.outcome = f"passed on: {type(error).__name__}"
            body = request.body
        except Exception as error:  # noqa: BLE001 - the provider may be able to count what we cannot read
            _note_defect(error, line)
            body = request.body
        is_own = body is request.body
        headers = forwarded(http.raw_headers, is_plain=bool(http.coding) and not is_own)
        response = await sender.unless_disconnected(
            self._upstreams.send(
                http.method, context.base_url, http.target, headers, http.body if is_own else body
            )
        )
        await relay(response, sender)

    # Threads

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def _in_client_thread(
        self,
        client: str,
        call: Callable[..., T],
        *arguments: object,
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """Run a call in one of a client's threads, after `first`; the work stops soon after nobody waits for it any more.

        The thread counts as the client's until the work ends, even if nobody waits for the result.
        """
        slots = self._thread_slots.get(client)
        if slots is None:
            slots = self._thread_slots[client] = asyncio.Semaphore(_THREADS_PER_CLIENT)
        slot, cancellable = _ThreadSlot(slots), _CancellableWork()
        await slots.acquire()
        work: Future[T] | None = None
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                if first is not None:
                    await first()
                work = self._threads.submit(cancellable.run, call, *arguments)
                work.add_done_callback(slot.release_from_thread)
                return await asyncio.wrap_future(work)
        except BaseException as error:
            # A store that hangs may hold its thread for long: the client's next request shall find that out for itself.
            if work is None or isinstance(error, TimeoutError):
                slot.release()
            raise
        finally:
            cancellable.is_cancelled = True


def _describe_turn(line: LogLine, turn: GatewayTurn, request: ClientRequest, *, is_shadow: bool) -> None:
    """Note in the log line what is sent for a client's request; in shadow mode, what would have been decided and its size."""
    line.session, line.changed, line.tokens = turn.session.name, turn.is_changed, turn.request.tokens
    is_own = turn.body is request.body
    line.did = (
        "untouched"
        if turn.is_untouched
        else "shadow"
        if is_shadow
        else "changed"
        if turn.is_changed
        else "unchanged"
        if is_own
        else "recall-added"
    )
    line.decision = turn.request.decision.because.code if turn.request.decision else ""


def _note_defect(error: Exception, line: LogLine) -> None:
    """Log a defect of our own that the client need not suffer from."""
    line.outcome = f"defect: {type(error).__name__}"
    _log.error("a defect in the gateway: %s", error_location(error))
