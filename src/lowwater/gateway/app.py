"""The gateway as an ASGI application: every request is admitted, understood as far as need be, and passed on."""

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
from lowwater.core.recall.recalled import offers_recall
from lowwater.errors import LowwaterError, StoreFailed
from lowwater.gateway.admission import (
    Admission,
    Arriving,
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
from lowwater.gateway.credentials import IdlePrefetch, credential_in
from lowwater.gateway.observability import METRICS, LogLine, Metrics, where, write_line
from lowwater.gateway.open_sessions import OpenSessions
from lowwater.gateway.options import Options
from lowwater.gateway.origin_checks import Entered, enter, refuse_unless_opened, refuse_web_pages
from lowwater.gateway.recall import Ask, RecallCall, RecallConversation, Record
from lowwater.gateway.relay import (
    AnswerSender,
    Came,
    Gone,
    Opening,
    Receive,
    Scope,
    Send,
    Unpackable,
    by_name,
    opening_of,
    peeked,
    read_request,
    relay,
    relay_answer,
    relay_read,
    too_large,
    unpacked,
)
from lowwater.gateway.tenants import tenant_of
from lowwater.gateway.turns import Bill, Bills, GatewayTurns, Place, Turn
from lowwater.gateway.upstream import Refused, Upstreams, forwarded, is_anthropic
from lowwater.protocols import Clock, Store
from lowwater.session.factories import checked_while_counting

T = TypeVar("T")

_log = logging.getLogger("lowwater.gateway")

_THREADS = 16
_THREADS_EACH = 8
"""Threads that the turns of one client may take: there are always some for others."""
_LARGE = 256 * 1024
"""Bytes from which on a body is taken apart beside the event loop, which it would hold up."""
_STORE_SECONDS = 20.0
"""How long a request may wait for the store; the client's own list goes on then."""
_RECORD_SECONDS = 10.0
"""How long the end of an answer may wait for the store."""


_STORE_FAILED = "store"
"""How an outcome begins where the store could not be asked."""
_NOT_RECALLED = "The conversation's history cannot be read at the moment. Go on without it."


class _Abandoned(Exception):
    """Nobody waits any more for what a thread is working on."""


class _Wanted:
    """Whether somebody still waits for what a thread is working on."""

    def __init__(self) -> None:
        self.is_over = False

    def run(self, call: Callable[..., T], *arguments: object) -> T:
        """Do some work, and stop in the middle of it once nobody waits any more."""
        with checked_while_counting(self._check):
            return call(*arguments)

    def _check(self) -> None:
        if self.is_over:
            raise _Abandoned


class _Thread:
    """One of a client's threads, given back once."""

    def __init__(self, lane: asyncio.Semaphore) -> None:
        self._lane: asyncio.Semaphore | None = lane
        self._loop = asyncio.get_running_loop()

    def free(self) -> None:
        """Give it to the next."""
        if self._lane is not None:
            self._lane.release()
            self._lane = None

    def free_from_thread(self, _: object) -> None:
        """Give it to the next, from a thread that has ended its work; where the server has ended as well, there is none."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.free)


class _Sent(Struct, frozen=True, kw_only=True):
    """A turn that was sent, and the provider's response to it."""

    turn: Turn
    response: aiohttp.ClientResponse
    said: bytes | None
    """The whole body of a refusal; None if it is an answer."""
    before: tuple[bytes, ...]
    """What was read of the answer already."""
    is_broken: bool
    """Whether the stream begins with a refusal."""


class Gateway:
    """Serves any number of clients from one store; nothing but what can be read again is kept in memory."""

    def __init__(self, options: Options, store: Store, *, clock: Clock | None = None) -> None:
        self._options = options
        self._store = store
        self._metrics = Metrics()
        self._upstreams = Upstreams(options)
        self._sessions = OpenSessions(store, options, sinks=(self._metrics.sink,), clock=clock)
        self._turns = GatewayTurns(self._sessions, options)
        self._parking = IdlePrefetch(options)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lowwater-gateway")
        self._secret = store.secret()
        self._under_way = 0
        self._metrics.under_way.set_function(lambda: self._under_way)
        self._admission = Admission(options)
        self._metrics.held_bytes.set_function(lambda: self._admission.held_bytes)
        self._lanes: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._bills = Bills(self._turns, self._metrics, self._in_thread)

    @property
    def header_seconds(self) -> float:
        """How long a client may take to send the head of a request."""
        return self._options.header_seconds

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
        await self._bills.close()
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
        entered = enter(scope, self._options.capability)
        scope = entered.scope
        line = LogLine(method=scope["method"], path=scope["path"], began=time.perf_counter())
        answering = AnswerSender(receive, send, line, stalled_seconds=self._options.stalled_seconds)
        self._under_way += 1
        try:
            await self._admitted(entered, answering, line)
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

    async def _admitted(self, entered: Entered, answering: AnswerSender, line: LogLine) -> None:
        scope = entered.scope
        headers = by_name(list(scope["headers"]))
        answering.anthropic = is_anthropic(scope["path"], headers)
        refuse_web_pages(scope, headers, self._options)
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
        refuse_unless_opened(entered)
        refuse_unless_admitted(headers, self._options)
        address = (scope.get("client") or ("",))[0]
        client = share_owner(headers, secret=self._secret, address=address)
        with self._admission.arriving(client, address) as arriving:
            came = await read_request(
                scope,
                answering.receive,
                arriving,
                most_bytes=self._options.most_bytes,
                seconds=self._options.body_seconds,
            )
            line.request_bytes = len(came.body)
            with self._admission.working(arriving):
                asked = await self._read(came, arriving, answering)
                if isinstance(asked, ClientRequest):
                    await self._conversation(came, asked, client, answering, line)
                    return
                arriving.shrink(len(came.body))
                if asked is not None:
                    line.did, line.why = "passed-on", asked.why
                await self._untouched(came, answering)

    async def _read(
        self, came: Came, arriving: Arriving, answering: AnswerSender
    ) -> ClientRequest | UnreadRequest | None:
        """Return the conversation that a request asks to go on with, or why it is passed on; None if it is none."""
        if came.method != "POST" or came.path not in FORMATS:
            return None
        if len(came.body) < _LARGE and not came.coding:
            return self._taken_apart(came, [came.body])
        return await answering.unless_gone(self._unpacked_and_read(came, arriving))

    async def _unpacked_and_read(self, came: Came, arriving: Arriving) -> ClientRequest | UnreadRequest:
        """Read a body beside the event loop, in one of its client's threads; each piece that is unpacked takes its memory first."""
        try:
            pieces = await self._unpacked(came, arriving) if came.coding else [came.body]
        except Unpackable:
            return UnreadRequest(why="compressed in a way that cannot be read here")
        return await self._reading(arriving.client, self._taken_apart, came, pieces)

    async def _unpacked(self, came: Came, arriving: Arriving) -> list[bytes]:
        coming = unpacked(came.body, came.coding)
        pieces: list[bytes] = []
        size = 0
        while piece := await self._reading(arriving.client, next, coming, b""):
            size += len(piece)
            if size > self._options.most_bytes:
                raise too_large(self._options.most_bytes)
            arriving.swell(size)
            pieces.append(piece)
        return pieces

    async def _reading(self, client: str, call: Callable[..., T], *arguments: object) -> T:
        try:
            return await self._in_lane(client, call, *arguments)
        except TimeoutError:
            raise Refused(503, "this gateway is too busy to read the request", retry_after=2) from None

    def _taken_apart(self, came: Came, pieces: list[bytes]) -> ClientRequest | UnreadRequest:
        plain = b"".join(pieces)
        pieces.clear()
        return read_client_request(came.path, plain, came.headers, most_messages=self._options.most_messages)

    async def _untouched(self, came: Came, answering: AnswerSender) -> None:
        base_url = self._upstreams.base_url(came.path, came.headers)
        response = await answering.unless_gone(
            self._upstreams.send(came.method, base_url, came.target, forwarded(came.raw_headers), came.body)
        )
        await relay(response, answering)

    async def _conversation(
        self, came: Came, asked: ClientRequest, client: str, answering: AnswerSender, line: LogLine
    ) -> None:
        place = Place(
            tenant=tenant_of(
                came.headers,
                secret=self._secret,
                fixed=self._options.tenant,
                trusts_tokens=self._options.trusts_tokens,
            ),
            base_url=self._upstreams.base_url(came.path, came.headers),
        )
        base_url = place.base_url
        line.model, line.tenant, line.streams = asked.model, place.tenant[:8], asked.streams
        if asked.counts_only:
            line.did = "counted"
            await self._counting(came, asked, place, answering, line, client=client)
            return
        turn = await self._begun(asked, place, client, answering, line)
        line.prepared = time.perf_counter() - line.began
        if turn is None:
            line.did, line.why = "passed-on", line.outcome
            await self._unprepared(came, asked, place, answering, line)
            return
        _tell(line, turn, asked)
        ask = partial(self._ask, came, asked, base_url)
        sent = await self._sent(turn, ask, answering, line)
        # What was refused may have been compacted and sent once more.
        _tell(line, sent.turn, asked)
        if sent.said is not None:
            await relay_read(sent.response, sent.said, answering)
            return
        turn = sent.turn
        if not sent.is_broken:
            await self._accepted(turn, line)
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

    async def _unprepared(
        self, came: Came, asked: ClientRequest, place: Place, answering: AnswerSender, line: LogLine
    ) -> None:
        """Send a request as it came because the store could not be asked for it; what it costs is recorded later."""
        if not line.outcome.startswith(_STORE_FAILED):
            await self._untouched(came, answering)
            return
        response = await answering.unless_gone(self._ask(came, asked, place.base_url, asked.body))
        if response.status >= 300:
            await relay(response, answering)
            return

        async def keep(answer: bytes | None) -> None:
            if answer is not None and is_utf8(answer):
                self._bills.keep(Bill(answer=answer, asked=asked, place=place))

        await relay_answer(response, answering, format=asked.format, record=keep)

    async def _ask(
        self, came: Came, asked: ClientRequest, base_url: str, body: bytes
    ) -> aiohttp.ClientResponse:
        """Send a client's request with this body, and with the betas that it needs where it is not the client's own.

        Where it is, it leaves in the very bytes in which it came, compressed ones too.
        """
        is_own = body is asked.body
        betas = () if is_own else betas_of_body(body)
        headers = forwarded(
            came.raw_headers, readable=True, betas=betas, is_plain=bool(came.coding) and not is_own
        )
        sent = came.body if is_own else body
        return await self._upstreams.send(came.method, base_url, came.target, headers, sent)

    async def _sent(self, turn: Turn, ask: Ask, answering: AnswerSender, line: LogLine) -> "_Sent":
        """Send a turn; if the provider says that it is too long, compact and send once more."""
        for is_last in (False, True):
            response = await answering.unless_gone(ask(turn.body))
            opening = Opening()
            said = await answering.unless_gone(peeked(response)) if response.status >= 300 else None
            if said is None:
                opening = await answering.unless_gone(opening_of(response, turn.asked.format))
            told = said if said is not None else opening.broken.encode()
            again = None if is_last else await self._overflowed(max(400, response.status), told, turn, line)
            if again is None:
                break
            response.close()
            turn = again
        return _Sent(
            turn=turn,
            response=response,
            said=said,
            before=opening.chunks,
            is_broken=bool(opening.broken),
        )

    def _conversing(
        self, turn: Turn, answering: AnswerSender, ask: Ask, record: Record
    ) -> RecallConversation:
        recall = partial(self._recalled, turn)
        return RecallConversation(
            answering, format=turn.asked.format, body=turn.body, ask=ask, recall=recall, record=record
        )

    async def _recalled(self, turn: Turn, calls: Sequence[RecallCall]) -> list[str]:
        """Return what a model's recall calls bring back; where the store cannot be read the model is told, and goes on."""
        try:
            return await asyncio.wait_for(self._in_thread(self._turns.recalled, turn, calls), _STORE_SECONDS)
        except Exception as error:  # noqa: BLE001 - an answer that was paid for is not lost for what it asked
            _log.error("a recall that failed: %s", where(error))
            return [_NOT_RECALLED] * len(calls)

    async def _begun(
        self, asked: ClientRequest, place: Place, client: str, answering: AnswerSender, line: LogLine
    ) -> Turn | None:
        """Return the turn; None if the request has to go on as it came.

        What was compacted before cannot go on as it came: it might not fit, and would cost its cache.
        """
        try:
            return await answering.unless_gone(self._prepared(asked, place, client))
        except (StoreFailed, TimeoutError) as error:
            line.outcome = f"{_STORE_FAILED}: {type(error).__name__}"
        except Gone:
            raise
        except LowwaterError as error:
            line.outcome = f"passed on: {type(error).__name__}"
            return None
        except Exception as error:  # noqa: BLE001 - a defect here must not cost a client its answer
            _defect(error, line)
        if await self._is_compacted(asked, place, line):
            raise Refused(503, "this gateway cannot go on with it at the moment", retry_after=2)
        return None

    async def _prepared(self, asked: ClientRequest, place: Place, client: str) -> Turn:
        """Begin a turn in one of the client's threads; the work stops soon after nobody waits for it any more."""
        return await self._in_lane(client, self._turns.begin, asked, place, first=self._bills.caught_up)

    async def _in_lane(
        self,
        client: str,
        call: Callable[..., T],
        *arguments: object,
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """Do some work in one of a client's threads, which is taken until the work ends, whoever still waits for it."""
        lane = self._lanes.get(client)
        if lane is None:
            lane = self._lanes[client] = asyncio.Semaphore(_THREADS_EACH)
        thread, wanted = _Thread(lane), _Wanted()
        await lane.acquire()
        work: Future[T] | None = None
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                if first is not None:
                    await first()
                work = self._threads.submit(wanted.run, call, *arguments)
                work.add_done_callback(thread.free_from_thread)
                return await asyncio.wrap_future(work)
        except BaseException as error:
            # A store that hangs may hold its thread for long: the client's next request shall find that out for itself.
            if work is None or isinstance(error, TimeoutError):
                thread.free()
            raise
        finally:
            wanted.is_over = True

    async def _is_compacted(self, asked: ClientRequest, place: Place, line: LogLine) -> bool:
        try:
            return await self._in_thread(self._turns.is_compacted, asked, place)
        except Exception as error:  # noqa: BLE001 - what cannot be read was never compacted
            _defect(error, line)
            return False

    async def _counting(
        self,
        came: Came,
        asked: ClientRequest,
        place: Place,
        answering: AnswerSender,
        line: LogLine,
        *,
        client: str,
    ) -> None:
        try:
            body = await answering.unless_gone(self._in_lane(client, self._turns.counted, asked, place))
        except Gone:
            raise
        except (LowwaterError, TimeoutError) as error:
            line.outcome = f"passed on: {type(error).__name__}"
            body = asked.body
        except Exception as error:  # noqa: BLE001 - the provider may count what we cannot
            _defect(error, line)
            body = asked.body
        is_own = body is asked.body
        headers = forwarded(came.raw_headers, is_plain=bool(came.coding) and not is_own)
        response = await answering.unless_gone(
            self._upstreams.send(
                came.method, place.base_url, came.target, headers, came.body if is_own else body
            )
        )
        await relay(response, answering)

    async def _overflowed(self, status: int, said: bytes, turn: Turn, line: LogLine) -> Turn | None:
        """Return a smaller turn if the provider says that the prompt is too long or has too many images; None for any other refusal."""
        if not (is_overflow(status, said) or is_image_refusal(status, said)):
            return None
        line.overflowed = True
        try:
            return await self._in_thread(self._turns.again, turn, said.decode(errors="replace"))
        except LowwaterError:
            return None
        except Exception as error:  # noqa: BLE001 - the client gets the provider's refusal
            _defect(error, line)
            return None

    async def _accepted(self, turn: Turn, line: LogLine) -> None:
        """Keep what the client sent: before the provider's answer begins, nothing of a request is stored."""
        try:
            await asyncio.wait_for(self._in_thread(self._turns.accepted, turn), _RECORD_SECONDS)
        except (LowwaterError, TimeoutError) as error:
            line.outcome = f"not recorded: {type(error).__name__}"
        except Exception as error:  # noqa: BLE001 - what the provider said is passed on all the same
            _defect(error, line)

    async def _record(
        self,
        turn: Turn,
        line: LogLine,
        parking: "asyncio.Task[None] | None",
        answer: bytes | None,
        others: Sequence[Usage] = (),
    ) -> None:
        """Record an answer; whatever goes wrong, the client gets it. Its end waits for a summary that is being written.

        Where there is none (None), the client may have gone, and nothing is waited for. What the store does not take now is
        kept until it does.
        """
        if answer is not None and not is_utf8(answer):
            line.outcome, answer = "not recorded: not UTF-8", None
        recording = asyncio.ensure_future(self._in_thread(self._turns.end, turn, answer, others))
        bill = None
        if answer is not None:
            bill = Bill(answer=answer, turn=turn, others=tuple(others), asked=turn.asked)
        await asyncio.wait({recording}, timeout=_RECORD_SECONDS)
        if not recording.done():
            line.outcome = "not recorded: TimeoutError"
            if bill is not None:
                self._bills.follow(bill, recording)
        elif error := recording.exception():
            self._not_recorded(error, bill, line)
        if answer is not None:
            await self._parking.waited(parking)

    def _not_recorded(self, error: BaseException, bill: Bill | None, line: LogLine) -> None:
        if isinstance(error, StoreFailed) and bill is not None:
            self._bills.keep(bill)
        if isinstance(error, LowwaterError):
            line.outcome = f"not recorded: {type(error).__name__}"
        elif isinstance(error, Exception):
            _defect(error, line)

    async def _health(self) -> tuple[int, bytes]:
        try:
            await asyncio.wait_for(self._in_thread(self._store.secret), 5)
        except (LowwaterError, TimeoutError):
            return 503, b'{"status":"unhealthy","store":"unusable"}'
        return 200, b'{"status":"ok","store":"ok"}'

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


def _tell(line: LogLine, turn: Turn, asked: ClientRequest) -> None:
    """Note what is sent for a client's request."""
    line.session, line.changed, line.tokens = turn.session.name, turn.is_changed, turn.request.tokens
    is_own = turn.body is asked.body
    line.did = "changed" if turn.is_changed else "unchanged" if is_own else "recall-added"
    line.decision = turn.request.decision.because.code if turn.request.decision else ""


def _defect(error: Exception, line: LogLine) -> None:
    """Note a defect of our own that the client need not suffer from."""
    line.outcome = f"defect: {type(error).__name__}"
    _log.error("a defect in the gateway: %s", where(error))
