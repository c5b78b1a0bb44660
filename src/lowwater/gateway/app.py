"""The gateway as an ASGI application: every request is admitted, understood as far as need be, and passed on."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import aiohttp
from msgspec import Struct

from lowwater.engine.recall.schemas import offers_recall
from lowwater.errors import LowwaterError, StoreFailed
from lowwater.gateway.admission import refuse_unless_admitted, refuse_unless_operator
from lowwater.gateway.answering import Answering
from lowwater.gateway.asked import FORMATS, Asked, read_asked
from lowwater.gateway.conversing import Ask, Conversing, Record
from lowwater.gateway.exchange import Came, Gone, Receive, Scope, Send, by_name, read_request
from lowwater.gateway.lending import Parking, credential_in
from lowwater.gateway.logs import Line, where, write_line
from lowwater.gateway.metrics import METRICS, Metrics
from lowwater.gateway.opening import Opening, opening_of
from lowwater.gateway.options import Options
from lowwater.gateway.refusals import Refused
from lowwater.gateway.relaying import peeked, relay, relay_answer, relay_read
from lowwater.gateway.sessions import Sessions
from lowwater.gateway.tenants import tenant_of
from lowwater.gateway.turns import Place, Turn, Turns
from lowwater.gateway.upstream import Upstreams, forwarded, is_anthropic
from lowwater.ports import Clock, Store
from lowwater.values.usage import Usage
from lowwater.wire.anthropic.betas import betas_of_body
from lowwater.wire.context_limit import is_image_refusal, is_overflow

T = TypeVar("T")

_log = logging.getLogger("lowwater.gateway")

_THREADS = 16
_STORE_SECONDS = 20.0
"""How long a request may wait for the store; the client's own list goes on then."""
_RECORD_SECONDS = 10.0
"""How long the end of an answer may wait for the store."""


class _Sent(Struct, frozen=True, kw_only=True):
    """A turn that was sent, and the provider's response to it."""

    turn: Turn
    response: aiohttp.ClientResponse
    said: bytes | None
    """The whole body of a refusal; None if it is an answer."""
    before: tuple[bytes, ...]
    """What was read of the answer already."""


class Gateway:
    """Serves any number of clients from one store; nothing but what can be read again is kept in memory."""

    def __init__(self, options: Options, store: Store, *, clock: Clock | None = None) -> None:
        self._options = options
        self._store = store
        self._metrics = Metrics()
        self._upstreams = Upstreams(options)
        self._sessions = Sessions(store, options, sinks=(self._metrics.sink,), clock=clock)
        self._turns = Turns(self._sessions, options)
        self._parking = Parking(options)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lowwater-gateway")
        self._secret = store.secret()
        self._under_way = 0
        self._metrics.under_way.set_function(lambda: self._under_way)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the server's start and end."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def open(self) -> None:
        """Make ready to send."""
        await self._upstreams.open()

    async def close(self) -> None:
        """Let go of connections and threads; the store is the caller's."""
        await self._parking.close()
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

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = Line(method=scope["method"], path=scope["path"], began=time.perf_counter())
        answering = Answering(receive, send, line)
        self._under_way += 1
        try:
            await self._admitted(scope, answering, line)
        except Gone:
            line.outcome = "client gone"
        except Refused as refused:
            await answering.refuse(refused)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            line.outcome = f"upstream: {type(error).__name__}"
            await answering.refuse(Refused(502, f"the provider could not be reached: {type(error).__name__}"))
        except Exception as error:  # noqa: BLE001 - the outermost handler: the client gets a sentence, never a traceback
            _log.error("a defect in the gateway: %s", where(error))
            await answering.refuse(Refused(500, f"a defect in the gateway: {type(error).__name__}"))
        finally:
            await answering.close()
            self._under_way -= 1
            self._metrics.request(line)
            write_line(line)

    async def _admitted(self, scope: Scope, answering: Answering, line: Line) -> None:
        headers = by_name(list(scope["headers"]))
        answering.anthropic = is_anthropic(scope["path"], headers)
        if scope["path"] == "/healthz" and scope["method"] in {"GET", "HEAD"}:
            await answering.plain(*await self._health())
            return
        if scope["path"] == "/metrics" and scope["method"] == "GET":
            refuse_unless_operator(headers, self._options)
            await answering.plain(200, self._metrics.text().encode(), METRICS)
            return
        if scope["path"] == "/" and scope["method"] in {"GET", "HEAD"}:
            await answering.plain(200, b'{"gateway":"lowwater"}')
            return
        refuse_unless_admitted(headers, self._options, under_way=self._under_way)
        came = await read_request(
            scope, answering.receive, most_bytes=self._options.most_bytes, seconds=self._options.body_seconds
        )
        line.request_bytes = len(came.body)
        if came.method == "POST" and came.path in FORMATS:
            asked = read_asked(came.path, came.body, came.headers)
            if asked is not None:
                await self._conversation(came, asked, answering, line)
                return
        await self._untouched(came, answering)

    async def _untouched(self, came: Came, answering: Answering) -> None:
        base_url = self._upstreams.base_url(came.path, came.headers)
        response = await answering.unless_gone(
            self._upstreams.send(came.method, base_url, came.target, forwarded(came.raw_headers), came.body)
        )
        await relay(response, answering)

    async def _conversation(self, came: Came, asked: Asked, answering: Answering, line: Line) -> None:
        place = Place(
            tenant=tenant_of(came.headers, secret=self._secret, fixed=self._options.tenant),
            base_url=self._upstreams.base_url(came.path, came.headers),
        )
        base_url = place.base_url
        line.model, line.tenant, line.streams = asked.model, place.tenant[:8], asked.streams
        if asked.counts_only:
            await self._counting(came, asked, place, answering)
            return
        turn = await self._begun(asked, place, line)
        line.prepared = time.perf_counter() - line.began
        if turn is None:
            await self._untouched(came, answering)
            return
        line.session, line.changed = turn.session.name, turn.is_changed
        line.decision = turn.request.decision.because.code if turn.request.decision else ""
        ask = partial(self._ask, came, base_url)
        try:
            sent = await self._sent(turn, ask, answering, line)
        except (Gone, aiohttp.ClientError, OSError):
            await self._refused(turn, line)
            raise
        if sent.said is not None:
            await self._refused(sent.turn, line)
            await relay_read(sent.response, sent.said, answering)
            return
        turn = sent.turn
        parking = self._parking.begin(
            turn.session, credential_in(came.headers, format=asked.format, base_url=base_url)
        )
        try:
            record = partial(self._record, turn, line, parking)
            if offers_recall(turn.asked.tools) and self._options.recall:
                await self._conversing(turn, answering, ask, record).relay(sent.response, before=sent.before)
            else:
                await relay_answer(
                    sent.response, answering, format=asked.format, record=record, before=sent.before
                )
        finally:
            self._parking.end(parking)

    async def _ask(self, came: Came, base_url: str, body: bytes) -> aiohttp.ClientResponse:
        """Send a client's request with this body, and with the betas that it needs where it is not the client's own."""
        betas = () if body is came.body else betas_of_body(body)
        headers = forwarded(came.raw_headers, readable=True, betas=betas)
        return await self._upstreams.send(came.method, base_url, came.target, headers, body)

    async def _sent(self, turn: Turn, ask: Ask, answering: Answering, line: Line) -> "_Sent":
        """Send a turn; if the provider says that it is too long, compact and send once more."""
        for is_last in (False, True):
            response = await answering.unless_gone(ask(turn.body))
            opening = Opening()
            said = await answering.unless_gone(peeked(response)) if response.status >= 400 else None
            if said is None:
                opening = await answering.unless_gone(opening_of(response, turn.asked.format))
            told = said if said is not None else opening.broken.encode()
            again = None if is_last else await self._overflowed(max(400, response.status), told, turn, line)
            if again is None:
                break
            response.close()
            turn = again
        return _Sent(turn=turn, response=response, said=said, before=opening.chunks)

    def _conversing(self, turn: Turn, answering: Answering, ask: Ask, record: Record) -> Conversing:
        recall = partial(self._in_thread, self._turns.recalled, turn)
        return Conversing(
            answering, format=turn.asked.format, body=turn.body, ask=ask, recall=recall, record=record
        )

    async def _begun(self, asked: Asked, place: Place, line: Line) -> Turn | None:
        """Return the turn; None if the request has to go on as it came.

        What was compacted before cannot go on as it came: it might not fit, and would cost its cache.
        """
        try:
            return await asyncio.wait_for(self._in_thread(self._turns.begin, asked, place), _STORE_SECONDS)
        except (StoreFailed, TimeoutError) as error:
            line.outcome = f"store: {type(error).__name__}"
        except LowwaterError as error:
            line.outcome = f"passed on: {type(error).__name__}"
            return None
        except Exception as error:  # noqa: BLE001 - a defect here must not cost a client its answer
            line.outcome = f"defect: {type(error).__name__}"
            _log.error("a defect in the gateway: %s", where(error))
        if self._turns.is_compacted(asked, place):
            raise Refused(503, "this gateway cannot go on with it at the moment", retry_after=2)
        return None

    async def _counting(self, came: Came, asked: Asked, place: Place, answering: Answering) -> None:
        try:
            body = await self._in_thread(self._turns.counted, asked, place)
        except LowwaterError:
            body = asked.body
        response = await answering.unless_gone(
            self._upstreams.send(came.method, place.base_url, came.target, forwarded(came.raw_headers), body)
        )
        await relay(response, answering)

    async def _overflowed(self, status: int, said: bytes, turn: Turn, line: Line) -> Turn | None:
        """Return a smaller turn if the provider says that the prompt is too long or has too many images; None for any other refusal."""
        if not (is_overflow(status, said) or is_image_refusal(status, said)):
            return None
        line.overflowed = True
        try:
            return await self._in_thread(self._turns.again, turn, said.decode(errors="replace"))
        except LowwaterError:
            return None

    async def _refused(self, turn: Turn, line: Line) -> None:
        """Note that there was no answer, so that a client that asks once more is no other conversation."""
        try:
            await asyncio.wait_for(self._in_thread(self._turns.refused, turn), _RECORD_SECONDS)
        except (LowwaterError, TimeoutError) as error:
            line.outcome = f"not recorded: {type(error).__name__}"

    async def _record(
        self,
        turn: Turn,
        line: Line,
        parking: "asyncio.Task[None] | None",
        answer: bytes | None,
        others: Sequence[Usage] = (),
    ) -> None:
        """Record an answer; whatever goes wrong, the client gets it. Its end waits for a summary that is being written.

        Where there is none (None), the client may have gone, and nothing is waited for.
        """
        try:
            await asyncio.wait_for(self._in_thread(self._turns.end, turn, answer, others), _RECORD_SECONDS)
        except (LowwaterError, TimeoutError) as error:
            line.outcome = f"not recorded: {type(error).__name__}"
        if answer is not None:
            await self._parking.waited(parking)

    async def _health(self) -> tuple[int, bytes]:
        try:
            await asyncio.wait_for(self._in_thread(self._store.secret), 5)
        except (LowwaterError, TimeoutError):
            return 503, b'{"status":"unhealthy","store":"unusable"}'
        return 200, b'{"status":"ok","store":"ok"}'

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)
