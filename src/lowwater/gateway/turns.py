"""One client request as a turn of its session, from finding the session to recording the answer.

Answers that the store refuses at first wait in a queue (`RecordingQueue`) until it takes them.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.formats.cache_marks import unmark_content
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.refusals import context_length_in, refuses_images
from lowwater.core.messages import Message
from lowwater.core.reconcile import likeness
from lowwater.core.tools import offers_recall
from lowwater.core.turns.arrival import Incoming
from lowwater.core.turns.state import State
from lowwater.errors import BadInput, LowwaterError, StoreFailed
from lowwater.gateway.client_request import (
    ClientRequest,
    asks_for_summary,
    edge_line_keys,
    line_keys,
    outgoing_body,
    results_beside_question,
)
from lowwater.gateway.observability import GatewayMetrics, error_location
from lowwater.gateway.open_sessions import OpenSessions, Terms
from lowwater.gateway.options import SHADOW_TENANT, GatewayOptions, Marking
from lowwater.gateway.recall import RecallCall, with_recall
from lowwater.gateway.session_lookup import (
    LookupKey,
    MessageCache,
    ReadMessage,
    agent_fingerprint,
    chain_keys,
    hint_key,
    prefix_keys,
    side_summary_key,
    unanswered_key,
)
from lowwater.gateway.shadow import record_shadow_answer, record_shadow_side_answer
from lowwater.session.internals import internals
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.session.turn_input import TurnInput
from lowwater.settings import CacheTtl

_log = logging.getLogger("lowwater.gateway")

_MOST_CHANGED = 20_000
"""Changed lists that are remembered."""
_TOO_MANY_BYTES = "request_too_large"
"""Anthropic's error type for a body above its limit in bytes, which says nothing about tokens."""
_MOST_WAITING = 2_000
_MOST_WAITING_BYTES = 128 * 1024 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
"""Seconds between attempts to record what waits; the pause doubles each time."""
_CLOSING_SECONDS = 5.0
"""How long the gateway waits for the store when it shuts down."""

InThread = Callable[..., Awaitable[None]]
"""Runs a blocking call in a worker thread."""


class RequestContext(Struct, frozen=True, kw_only=True):
    """The tenant that a request belongs to and the provider it goes to."""

    tenant: str
    base_url: str
    client_pays: bool = False
    """Whether summaries may be written on the client's credential."""
    marking: Marking = "client"
    """Who places the cache marks."""
    is_untouched: bool = False
    """Whether the client wants this one request sent as it is."""

    keeps_warm: bool = False
    """Whether the request's credential may be used in pauses."""

    def terms(self, client_request: ClientRequest) -> Terms:
        """Return the terms of a request's session."""
        return Terms(
            tenant=self.tenant,
            model=client_request.model,
            base_url=self.base_url,
            client_pays=self.client_pays,
            cache_ttl=self._cache_ttl(client_request),
        )

    def _cache_ttl(self, client_request: ClientRequest) -> CacheTtl | None:
        if self.marking == "client":
            return client_request.marked_lifetime
        # Where prefixes are kept warm, the short lifetime costs less than the long one (bench/README.md, "Pauses").
        return "5m" if self.keeps_warm and client_request.format == "anthropic" else None


class DecodedInput(TurnInput, frozen=True, kw_only=True):
    """A client's request whose messages are decoded already."""

    client_request: ClientRequest
    read: tuple[ReadMessage, ...]

    def incoming(self, state: State) -> Incoming:  # noqa: ARG002 - the format follows from the path, not from the state
        """Return the request as the core takes it."""
        request, tools = self.client_request, unmark_content(self.client_request.tools)
        return Incoming(
            messages=tuple(read.message for read in self.read),
            format=request.format,
            assumed=request.format,
            system=unmark_content(request.system),
            tools=tools,
            max_tokens=request.max_tokens,
            offers_recall=offers_recall(tools),
            parameters=request.fields.get("thinking", b"") + b"\0" + request.fields.get("tool_choice", b""),
        )


class DeferredWrite:
    """What a request adds to its session, written once and only after the provider has accepted the request."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._lock = Lock()
        self.is_committed = False

    def commit(self) -> None:
        """Write it unless that is done already; after a failure it may be tried again."""
        with self._lock:
            if not self.is_committed:
                self._write()
                self.is_committed = True


class GatewayTurn(Struct, frozen=True, kw_only=True):
    """A request under way: the body to send, and the session that its answer belongs to."""

    client_request: ClientRequest
    lookup: LookupKey
    session: Session
    request: PreparedRequest
    body: bytes
    deferred: DeferredWrite
    marking: Marking = "client"
    """Who places the cache marks."""
    is_new: bool = False
    """Whether the session was created for this request."""
    key_before_question: bytes = b""
    """The key of the list without the client's own question for a summary, which the session does not get; empty without one."""
    prepared_tools: bytes = b""
    """In shadow mode, the tools that the session's own request has."""
    is_untouched: bool = False
    """Whether it is sent as it is because the client wanted that."""
    has_inline_conversation: bool = False
    """The client asks for a summary of a conversation that is quoted inside the question instead of preceding it."""

    @property
    def is_changed(self) -> bool:
        """Whether the body to send differs from the client's."""
        return self.body is not self.client_request.body


class GatewayTurns:
    """Runs the turns of all clients; every method blocks and may be called from any thread."""

    def __init__(self, sessions: OpenSessions, options: GatewayOptions) -> None:
        self._sessions = sessions
        self._options = options
        self._message_cache = MessageCache(options.remembered_bytes)
        self._changed: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        """Tenant and key of lists that were not sent as they came, newest last."""

    def begin(self, client_request: ClientRequest, context: RequestContext) -> GatewayTurn:
        """Find the session and prepare the request; on a LowwaterError the request is to be forwarded unchanged.

        In shadow mode the body to send is the client's own, whatever was prepared; of a request that is to be left untouched,
        nothing else is prepared.
        """
        own_request, is_shadow = client_request, self._options.shadow
        if self._options.recall and not context.is_untouched:
            client_request = with_recall(client_request)
        read, lookup = self._read(client_request, context.tenant)
        opened = self._sessions.session_for(lookup, context.terms(client_request))
        session = opened.session
        turn_input = DecodedInput(client_request=client_request, read=tuple(read))
        before_question = _before_question(read)
        if context.is_untouched:
            request, body = internals(session).uncompacted_request(turn_input), client_request.body
            deferred = _write_of(session, turn_input, before_question or read)
        elif before_question:
            request = internals(session).uncompacted_request(turn_input)
            body = outgoing_body(client_request, request, marking=context.marking)
            deferred = _write_of(session, turn_input, before_question)
        else:
            offered = internals(session).offer_turn(turn_input)
            request = offered.request
            body = outgoing_body(client_request, request, marking=context.marking)
            deferred = DeferredWrite(partial(internals(session).accept_turn, offered, body=body))
        if not is_shadow and not context.is_untouched:
            self._remember_changed(lookup, request)
        return GatewayTurn(
            client_request=own_request if is_shadow else client_request,
            lookup=lookup,
            session=session,
            request=request,
            body=own_request.body if is_shadow else body,
            prepared_tools=client_request.tools if is_shadow else b"",
            deferred=deferred,
            marking=context.marking,
            is_new=opened.is_new,
            is_untouched=context.is_untouched,
            has_inline_conversation=not before_question
            and not client_request.tools
            and asks_for_summary(read[-1].message),
            key_before_question=prefix_keys(before_question)[-1] if before_question else b"",
        )

    def continues_changed(self, client_request: ClientRequest, context: RequestContext) -> bool:
        """Return whether a list continues one that was not sent as it came; this does not use the store."""
        try:
            _, lookup = self._read(client_request, context.tenant)
        except BadInput:
            return False
        return any((context.tenant, key) in self._changed for key in lookup.keys)

    def retry_smaller(self, turn: GatewayTurn, refusal: str) -> GatewayTurn | None:
        """Prepare a turn again after the provider refused its prompt as too long or its images as too many.

        The session learns the real limit from the refusal. None if the body would be the same.
        """
        client_request, session = turn.client_request, turn.session
        fewer_images = refuses_images(refusal)
        if not fewer_images:
            tokens = _limit_in(refusal, turn)
            if tokens is None:
                return None
            internals(session).learn_prompt_limit(tokens)
        read, _ = self._read(client_request, turn.lookup.tenant)
        turn_input = DecodedInput(client_request=client_request, read=tuple(read))
        offered = internals(session).offer_turn(turn_input, fewer_images=fewer_images)
        body = outgoing_body(client_request, offered.request, marking=turn.marking)
        if body == turn.body:
            return None
        self._remember_changed(turn.lookup, offered.request)
        if turn.key_before_question:
            deferred = _write_of(session, turn_input, _before_question(read))
        else:
            deferred = DeferredWrite(partial(internals(session).accept_turn, offered, body=body))
        return replace(turn, request=offered.request, body=body, deferred=deferred)

    def accept(self, turn: GatewayTurn) -> None:
        """Store what the client sent, now that its provider has begun to answer."""
        turn.deferred.commit()

    def body_for_counting(self, client_request: ClientRequest, context: RequestContext) -> bytes:
        """Return the body that would really be sent, compacted if it would be, for a token count; nothing is stored."""
        if self._options.recall:
            client_request = with_recall(client_request)
        read, lookup = self._read(client_request, context.tenant)
        session = self._sessions.preview_session(lookup, context.terms(client_request))
        turn_input = DecodedInput(client_request=client_request, read=tuple(read))
        request = (
            internals(session).uncompacted_request(turn_input)
            if _before_question(read)
            else internals(session).preview_request(turn_input)
        )
        return outgoing_body(client_request, request, marking=context.marking)

    def catch_up(self, client_request: ClientRequest, context: RequestContext, answer: bytes) -> None:
        """Record the answer to a request that was forwarded unchanged because the store could not be reached."""
        read, lookup = self._read(client_request, context.tenant)
        opened = self._sessions.session_for(lookup, context.terms(client_request))
        session, before_question = opened.session, _before_question(read)
        turn_input = DecodedInput(client_request=client_request, read=tuple(read))
        stored = replace(turn_input, read=tuple(before_question)) if before_question else turn_input
        if not opened.is_new and self._sessions.has_moved_past(session, prefix_keys(stored.read)):
            # A later turn is stored already: bringing the older list now would rewind it.
            if self._options.shadow:
                record_shadow_side_answer(session, answer, ())
            else:
                internals(session).record_side_call(answer)
            return
        turn = GatewayTurn(
            client_request=client_request,
            lookup=lookup,
            session=session,
            request=internals(session).uncompacted_request(turn_input),
            body=client_request.body,
            deferred=DeferredWrite(partial(internals(session).sync_turn_input, stored)),
            is_new=opened.is_new,
            key_before_question=prefix_keys(before_question)[-1] if before_question else b"",
        )
        self.end(turn, answer)

    def end(self, turn: GatewayTurn, answer: bytes | None, others: Sequence[Usage] = ()) -> None:
        """Record the answer and the keys by which the session is found next time.

        `answer` is None if there was no complete one; then nothing is stored of a request that the provider did not accept.
        `others` is the usage of earlier calls for the same answer. The answer is written last and as a whole, so that all of
        this can be repeated if the store fails.
        """
        if answer is None and not turn.deferred.is_committed:
            return
        turn.deferred.commit()
        further: list[bytes] = []
        if answer is None and _is_first(turn):
            further.append(unanswered_key(turn.lookup.keys[-1]))
        elif answer is not None:
            message = decode_response(answer).message
            if turn.key_before_question:
                # The client may continue with the list before its question, or with one that begins with the summary.
                further += [turn.key_before_question, *line_keys(message.text)]
            else:
                further += _keys_with_answer(turn, message)
                if turn.client_request.hint and turn.client_request.tools:
                    further.append(hint_key(turn.client_request.hint))
                if turn.has_inline_conversation and not turn.client_request.hint:
                    further += [side_summary_key(line) for line in line_keys(message.text)]
        self._sessions.record_fingerprint(turn.lookup, turn.session, *further)
        if answer is not None and turn.has_inline_conversation:
            self._sessions.record_summary(turn.lookup, line_keys(message.text))
        if answer is not None:
            self._record_answer(turn, answer, others)

    def _record_answer(self, turn: GatewayTurn, answer: bytes, others: Sequence[Usage]) -> None:
        is_beside = bool(turn.key_before_question)
        if self._options.shadow and is_beside:
            record_shadow_side_answer(turn.session, answer, others)
        elif self._options.shadow:
            own_tools = turn.client_request.tools
            record_shadow_answer(
                turn.session,
                answer,
                others,
                added_tools=turn.prepared_tools or own_tools,
                own_tools=own_tools,
            )
        elif is_beside:
            internals(turn.session).record_side_call(answer, others=others)
        elif turn.is_untouched:
            internals(turn.session).record_untouched(answer, others=others)
        else:
            turn.session.record(answer, others=others)

    def recall(self, turn: GatewayTurn, calls: Sequence[RecallCall]) -> list[str]:
        """Return the results of a model's recall calls."""
        tools = turn.session.recall_tools()
        return [tools.handle(call.name, call.arguments) for call in calls]

    def _read(self, client_request: ClientRequest, tenant: str) -> tuple[list[ReadMessage], LookupKey]:
        read = self._message_cache.read(client_request.raws, client_request.format)
        if not read:
            raise BadInput("the list of messages is empty")
        lookup = LookupKey(
            tenant=f"{SHADOW_TENANT}{tenant}" if self._options.shadow else tenant,
            keys=prefix_keys(read),
            hint=client_request.hint,
            agent=agent_fingerprint(
                unmark_content(client_request.system), unmark_content(client_request.tools)
            ),
            lines=edge_line_keys([each.message for each in read]),
        )
        return read, lookup

    def _remember_changed(self, lookup: LookupKey, request: PreparedRequest) -> None:
        """Remember a list that is not sent as it came."""
        if not request.is_unchanged:
            self._changed[lookup.tenant, lookup.keys[-1]] = None
        while len(self._changed) > _MOST_CHANGED:
            self._changed.popitem(last=False)


def _before_question(read: Sequence[ReadMessage]) -> list[ReadMessage]:
    """Return a list without the client's own question for a summary at its end; empty if it has none, or nothing else.

    Claude Code may append a system message after the question.
    """
    newest = next((at for at in reversed(range(len(read))) if read[at].message.role != "system"), None)
    if newest is None or not asks_for_summary(read[newest].message):
        return []
    results = results_beside_question(read[newest].message)
    last = [] if results is None else [ReadMessage(message=results, likeness=likeness(results))]
    return [*read[:newest], *last]


def _write_of(
    session: Session, turn_input: DecodedInput, before_question: Sequence[ReadMessage]
) -> DeferredWrite:
    """Return the write for a list that ends with the client's question for a summary: everything but the question."""
    return DeferredWrite(
        partial(internals(session).sync_turn_input, replace(turn_input, read=tuple(before_question)))
    )


def _limit_in(refusal: str, turn: GatewayTurn) -> int | None:
    """Return the context length that a refusal implies; None if the prompt cannot have exceeded it.

    An error message may quote the client's own text, so that an implausible number is ignored; and a limit in bytes says
    nothing about tokens.
    """
    tokens, limit = turn.request.tokens, context_length_in(refusal)
    if limit is not None:
        return limit if limit <= 2 * (tokens + (turn.client_request.max_tokens or 0)) else None
    if _TOO_MANY_BYTES in refusal and tokens < turn.session.status().context // 2:
        return None
    return max(1, round(0.9 * tokens))


def _is_first(turn: GatewayTurn) -> bool:
    """Return whether the session has no recorded answer of its own yet."""
    return turn.is_new or not turn.session.status().totals.turns


def _keys_with_answer(turn: GatewayTurn, answer: Message) -> list[bytes]:
    """Return the key of the list with its answer, as the client will send it next time."""
    return chain_keys([likeness(answer)], turn.lookup.keys[-1])


class UnrecordedAnswer(Struct, frozen=True, kw_only=True, eq=False):
    """An answer still to be recorded: of a turn, or of a request that was forwarded without one."""

    answer: bytes
    client_request: ClientRequest
    turn: GatewayTurn | None = None
    others: tuple[Usage, ...] = ()
    context: RequestContext | None = None
    """Tenant and provider of the request, if there is no turn."""

    @property
    def bytes(self) -> int:
        """Roughly the memory it takes."""
        return len(self.answer) + len(self.client_request.body)


class RecordingQueue:
    """Keeps answers that could not be recorded, oldest first, until the store takes them.

    What has to be given up is counted and logged with its usage.
    """

    def __init__(self, turns: GatewayTurns, metrics: GatewayMetrics, in_thread: InThread) -> None:
        self._turns = turns
        self._metrics = metrics
        self._in_thread = in_thread
        self._waiting: deque[UnrecordedAnswer] = deque()
        self._bytes = 0
        self._not_before = 0.0
        self._under_way: UnrecordedAnswer | None = None
        """The one being recorded: it is not in the queue, and returns to it if the store fails."""
        self._draining: asyncio.Task[bool] | None = None
        self._retrying: asyncio.Task[None] | None = None
        metrics.bills_waiting.set_function(lambda: self._left)

    def enqueue(self, unrecorded: UnrecordedAnswer) -> None:
        """Keep an answer until the store takes it."""
        self._waiting.append(unrecorded)
        self._bytes += unrecorded.bytes
        self._drop_excess()
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.create_task(self._retry())

    def enqueue_on_failure(self, unrecorded: UnrecordedAnswer, recording: "asyncio.Future[None]") -> None:
        """Keep an answer if the store fails in the recording of it that is still running."""
        recording.add_done_callback(partial(self._recording_done, unrecorded))

    async def drain_if_due(self) -> None:
        """Record what waits before another turn begins, so that turns are stored in order.

        Does nothing for a while after the store has failed.
        """
        if self._left and asyncio.get_running_loop().time() >= self._not_before:
            await self.drain()

    async def drain(self) -> bool:
        """Record what waits, oldest first, joining a drain that is running; return whether the queue is empty.

        The caller may be cancelled at any time: the drain goes on, and nothing is recorded twice.
        """
        if self._draining is None or self._draining.done():
            self._draining = asyncio.create_task(self._drain())
        return await asyncio.shield(self._draining)

    async def close(self) -> None:
        """Try once more, then give up what is left."""
        await _cancel(self._retrying)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.drain(), _CLOSING_SECONDS)
        await _cancel(self._draining)
        while self._waiting:
            self._drop(self._pop(), "the gateway ends")

    @property
    def _left(self) -> int:
        """How many are not recorded yet."""
        return len(self._waiting) + (self._under_way is not None)

    async def _retry(self) -> None:
        pause = _FIRST_PAUSE
        while self._left:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            await self.drain()

    async def _drain(self) -> bool:
        while self._waiting:
            unrecorded = self._under_way = self._pop()
            try:
                await self._in_thread(self._record, unrecorded)
            except StoreFailed:
                self._put_back(unrecorded)
                self._not_before = asyncio.get_running_loop().time() + _FIRST_PAUSE
                return False
            except asyncio.CancelledError:
                self._put_back(unrecorded)
                raise
            except Exception as error:  # noqa: BLE001 - one that cannot be recorded must not block the others
                self._drop(unrecorded, type(error).__name__)
                _log.error("an answer that cannot be recorded: %s", error_location(error))
            else:
                self._metrics.bills.labels(became="late").inc()
            finally:
                self._under_way = None
        return True

    def _record(self, unrecorded: UnrecordedAnswer) -> None:
        if unrecorded.turn is not None:
            self._turns.end(unrecorded.turn, unrecorded.answer, unrecorded.others)
        elif unrecorded.context is not None:
            self._turns.catch_up(unrecorded.client_request, unrecorded.context, unrecorded.answer)

    def _recording_done(self, unrecorded: UnrecordedAnswer, recording: "asyncio.Future[None]") -> None:
        if not recording.cancelled() and isinstance(recording.exception(), StoreFailed):
            self.enqueue(unrecorded)

    def _pop(self) -> UnrecordedAnswer:
        unrecorded = self._waiting.popleft()
        self._bytes -= unrecorded.bytes
        return unrecorded

    def _put_back(self, unrecorded: UnrecordedAnswer) -> None:
        self._waiting.appendleft(unrecorded)
        self._bytes += unrecorded.bytes
        self._drop_excess()

    def _drop_excess(self) -> None:
        while self._waiting and (len(self._waiting) > _MOST_WAITING or self._bytes > _MOST_WAITING_BYTES):
            self._drop(self._pop(), "there are too many")

    def _drop(self, unrecorded: UnrecordedAnswer, why: str) -> None:
        self._metrics.bills.labels(became="lost").inc()
        session = unrecorded.turn.session.name if unrecorded.turn is not None else "-"
        _log.error(
            "an answer was not recorded, %s: model %s, session %s, %s",
            why,
            unrecorded.client_request.model[:100],
            session,
            _describe_usage(unrecorded.answer, unrecorded.others),
        )


async def _cancel(task: "asyncio.Task[Any] | None") -> None:
    """Cancel a task, if there is one, and wait for its end."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _describe_usage(answer: bytes, others: Sequence[Usage]) -> str:
    """Return the usage of an answer in words, for the log."""
    try:
        usage = decode_response(answer).usage
    except (LowwaterError, ValueError, ArithmeticError):
        usage = None
    if usage is None:
        return "usage unknown"
    more = f" and {len(others)} calls before it" if others else ""
    return f"{usage.prompt} tokens in and {usage.output} out{more}"
