"""One request's turn in the core: found, prepared, and after the answer recorded; bills that come late."""

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
from lowwater.core.recall.recalled import offers_recall
from lowwater.core.reconcile import likeness
from lowwater.core.turns.arrival import Incoming
from lowwater.core.turns.state import State
from lowwater.errors import BadInput, LowwaterError, StoreFailed
from lowwater.gateway.client_request import (
    ClientRequest,
    asks_for_summary,
    beside_question,
    lines_in,
    lines_of,
    outgoing,
)
from lowwater.gateway.observability import Metrics, where
from lowwater.gateway.open_sessions import OpenSessions
from lowwater.gateway.options import Options
from lowwater.gateway.recall import RecallCall, with_recall
from lowwater.gateway.session_lookup import (
    LookupKey,
    MessageCache,
    ReadMessage,
    agent_fingerprint,
    beside,
    chain_of,
    keys_of,
    named,
    unanswered,
)
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.session.turn_input import TurnInput

_CHANGED = 20_000
"""Lists that are remembered as changed."""


_TOO_MANY_BYTES = "request_too_large"


class Place(Struct, frozen=True, kw_only=True):
    """Whose request it is, and which provider it is for."""

    tenant: str
    base_url: str


class ReadAlready(TurnInput, frozen=True, kw_only=True):
    """A client's request whose messages were decoded before."""

    asked: ClientRequest
    read: tuple[ReadMessage, ...]

    def incoming(self, state: State) -> Incoming:  # noqa: ARG002 - the path told the format
        """Return it as values."""
        asked, tools = self.asked, unmark_content(self.asked.tools)
        return Incoming(
            messages=tuple(read.message for read in self.read),
            format=asked.format,
            assumed=asked.format,
            system=unmark_content(asked.system),
            tools=tools,
            max_tokens=asked.max_tokens,
            offers_recall=offers_recall(tools),
            parameters=asked.fields.get("thinking", b"") + b"\0" + asked.fields.get("tool_choice", b""),
        )


class Pending:
    """What a request brings to its session: kept once its provider accepts it, and only once."""

    def __init__(self, keep: Callable[[], None]) -> None:
        self._keep = keep
        self._lock = Lock()
        self.is_kept = False

    def keep(self) -> None:
        """Keep it, unless it was; what fails may be tried again."""
        with self._lock:
            if not self.is_kept:
                self._keep()
                self.is_kept = True


class Turn(Struct, frozen=True, kw_only=True):
    """A request on its way: what leaves, and where its answer belongs."""

    asked: ClientRequest
    sought: LookupKey
    session: Session
    request: PreparedRequest
    body: bytes
    pending: Pending
    is_begun: bool = False
    """Whether the session is a new one."""
    unasked: bytes = b""
    """The key of the list without the client's own question for a summary, which is no part of it; empty if it asks none."""

    asks_apart: bool = False
    """The client asks for a summary of a conversation that is not before it but inside the question."""

    @property
    def is_changed(self) -> bool:
        """Whether something else than the client's own bytes leaves."""
        return self.body is not self.asked.body


class GatewayTurns:
    """What the gateway asks of the core."""

    def __init__(self, sessions: OpenSessions, options: Options) -> None:
        self._sessions = sessions
        self._options = options
        self._remembering = MessageCache(options.remembered_bytes)
        self._changed: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        """Lists that did not leave as they came, the newest last."""

    def begin(self, asked: ClientRequest, place: Place) -> Turn:
        """Find the session and prepare the request; any LowwaterError means that it goes on as it came."""
        if self._options.recall:
            asked = with_recall(asked)
        read, sought = self._read(asked, place.tenant)
        belongs = self._sessions.session_for(sought, model=asked.model, base_url=place.base_url)
        session = belongs.session
        brought = ReadAlready(asked=asked, read=tuple(read))
        unasked = _unasked(read)
        if unasked:
            request = session.shown(brought)
            body = outgoing(asked, request, marking=self._options.marks)
            pending = _without_question(session, brought, unasked)
        else:
            offered = session.offer_turn(brought)
            request = offered.request
            body = outgoing(asked, request, marking=self._options.marks)
            pending = Pending(partial(session.accept_turn, offered, body=body))
        self._note(sought, request)
        return Turn(
            asked=asked,
            sought=sought,
            session=session,
            request=request,
            body=body,
            pending=pending,
            is_begun=belongs.is_begun,
            asks_apart=not unasked and not asked.tools and asks_for_summary(read[-1].message),
            unasked=keys_of(unasked)[-1] if unasked else b"",
        )

    def is_compacted(self, asked: ClientRequest, place: Place) -> bool:
        """Return whether a list goes on one that did not leave as it came; the store is not asked."""
        try:
            _, sought = self._read(asked, place.tenant)
        except BadInput:
            return False
        return any((place.tenant, key) in self._changed for key in sought.keys)

    def again(self, turn: Turn, said: str) -> Turn | None:
        """Learn the real limit from a provider's refusal, or drop older images, and prepare once more; None if nothing else would be sent."""
        asked, session = turn.asked, turn.session
        fewer_images = refuses_images(said)
        if not fewer_images:
            tokens = _limit_in(said, turn)
            if tokens is None:
                return None
            session.refused_beyond(tokens)
        read, _ = self._read(asked, turn.sought.tenant)
        brought = ReadAlready(asked=asked, read=tuple(read))
        offered = session.offer_turn(brought, fewer_images=fewer_images)
        body = outgoing(asked, offered.request, marking=self._options.marks)
        if body == turn.body:
            return None
        self._note(turn.sought, offered.request)
        if turn.unasked:
            pending = _without_question(session, brought, _unasked(read))
        else:
            pending = Pending(partial(session.accept_turn, offered, body=body))
        return replace(turn, request=offered.request, body=body, pending=pending)

    def accepted(self, turn: Turn) -> None:
        """Keep what the client sent, now that its provider has begun to answer."""
        turn.pending.keep()

    def counted(self, asked: ClientRequest, place: Place) -> bytes:
        """Return the body by which to count: what would really be sent, compacted if it would be; nothing is kept."""
        if self._options.recall:
            asked = with_recall(asked)
        read, sought = self._read(asked, place.tenant)
        session = self._sessions.like(sought, model=asked.model, base_url=place.base_url)
        brought = ReadAlready(asked=asked, read=tuple(read))
        request = session.shown(brought) if _unasked(read) else session.foreseen(brought)
        return outgoing(asked, request, marking=self._options.marks)

    def catch_up(self, asked: ClientRequest, place: Place, answer: bytes) -> None:
        """Record the answer to a request that went on as it came while the store could not be asked."""
        read, sought = self._read(asked, place.tenant)
        belongs = self._sessions.session_for(sought, model=asked.model, base_url=place.base_url)
        session, unasked = belongs.session, _unasked(read)
        brought = ReadAlready(asked=asked, read=tuple(read))
        kept = replace(brought, read=tuple(unasked)) if unasked else brought
        if not belongs.is_begun and self._sessions.has_gone_on(session, keys_of(kept.read)):
            # Another turn came first: to bring the older list now would take back what is newer.
            session.record_side_call(answer)
            return
        turn = Turn(
            asked=asked,
            sought=sought,
            session=session,
            request=session.shown(brought),
            body=asked.body,
            pending=Pending(partial(session.bring, kept)),
            is_begun=belongs.is_begun,
            unasked=keys_of(unasked)[-1] if unasked else b"",
        )
        self.end(turn, answer)

    def end(self, turn: Turn, answer: bytes | None, others: Sequence[Usage] = ()) -> None:
        """Record the answer, if there is a whole one, and note what the session was seen with; `others` led to it.

        Of a request that its provider did not accept nothing is kept. The answer comes last, and whole or not at all: where
        the store fails, all of it may be done again.
        """
        if answer is None and not turn.pending.is_kept:
            return
        turn.pending.keep()
        further: list[bytes] = []
        if answer is None and _is_first(turn):
            further.append(unanswered(turn.sought.keys[-1]))
        elif answer is not None:
            message = decode_response(answer).message
            if turn.unasked:
                # The list without the client's question goes on as well as one that begins with the summary.
                further += [turn.unasked, *lines_of(message.text)]
            else:
                further += _behind(turn, message)
                if turn.asked.hint and turn.asked.tools:
                    further.append(named(turn.asked.hint))
                if turn.asks_apart and not turn.asked.hint:
                    further += [beside(line) for line in lines_of(message.text)]
        self._sessions.record_fingerprint(turn.sought, turn.session, *further)
        if answer is not None and turn.asks_apart:
            self._sessions.leave_summary(turn.sought, lines_of(message.text))
        if answer is not None and turn.unasked:
            turn.session.record_side_call(answer, others=others)
        elif answer is not None:
            turn.session.record(answer, others=others)

    def recalled(self, turn: Turn, calls: Sequence[RecallCall]) -> list[str]:
        """Return what a model's recall calls bring back."""
        tools = turn.session.recall_tools()
        return [tools.handle(call.name, call.arguments) for call in calls]

    def _note(self, sought: LookupKey, request: PreparedRequest) -> None:
        """Remember a list that does not leave as it came."""
        if not request.whole:
            self._changed[sought.tenant, sought.keys[-1]] = None
        while len(self._changed) > _CHANGED:
            self._changed.popitem(last=False)

    def _read(self, asked: ClientRequest, tenant: str) -> tuple[list[ReadMessage], LookupKey]:
        read = self._remembering.read(asked.raws, asked.format)
        if not read:
            raise BadInput("the list of messages is empty")
        sought = LookupKey(
            tenant=tenant,
            keys=keys_of(read),
            hint=asked.hint,
            guise=agent_fingerprint(unmark_content(asked.system), unmark_content(asked.tools)),
            lines=lines_in([each.message for each in read]),
        )
        return read, sought


def _behind(turn: Turn, answer: Message) -> list[bytes]:
    """Return the key of the list with its answer."""
    return chain_of([likeness(answer)], turn.sought.keys[-1])


def _without_question(session: Session, brought: ReadAlready, unasked: Sequence[ReadMessage]) -> Pending:
    """Return what a list with the client's own question for a summary at its end brings: all but the question."""
    return Pending(partial(session.bring, replace(brought, read=tuple(unasked))))


def _is_first(turn: Turn) -> bool:
    """Return whether nothing of a session was ever answered, or at least not by itself."""
    return turn.is_begun or not turn.session.status().totals.turns


def _limit_in(said: str, turn: Turn) -> int | None:
    """Return the limit that a refusal tells of; None if the prompt cannot have been beyond it.

    An error may repeat a client's own words, and a limit in bytes is none in tokens.
    """
    tokens, limit = turn.request.tokens, context_length_in(said)
    if limit is not None:
        return limit if limit <= 2 * (tokens + (turn.asked.max_tokens or 0)) else None
    if _TOO_MANY_BYTES in said and tokens < turn.session.status().context // 2:
        return None
    return max(1, round(0.9 * tokens))


def _unasked(read: Sequence[ReadMessage]) -> list[ReadMessage]:
    """Return a list without the client's own question for a summary at its end; nothing if it asks none, or nothing else.

    Claude Code may have its system say something behind the question.
    """
    newest = next((at for at in reversed(range(len(read))) if read[at].message.role != "system"), None)
    if newest is None or not asks_for_summary(read[newest].message):
        return []
    beside = beside_question(read[newest].message)
    last = [] if beside is None else [ReadMessage(message=beside, likeness=likeness(beside))]
    return [*read[:newest], *last]


_log = logging.getLogger("lowwater.gateway")

_MOST = 2_000
_MOST_BYTES = 128 * 1024 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_AT_LAST = 5.0
"""Seconds that the end of the gateway may wait for the store."""

InThread = Callable[..., Awaitable[None]]


class Bill(Struct, frozen=True, kw_only=True, eq=False):
    """An answer that is to be recorded: of a turn, or of a request that went on while the store could not be asked."""

    answer: bytes
    asked: ClientRequest
    turn: Turn | None = None
    others: tuple[Usage, ...] = ()
    place: Place | None = None
    """Where the request went, if there is no turn."""

    @property
    def bytes(self) -> int:
        """The memory it takes, about."""
        return len(self.answer) + len(self.asked.body)


class Bills:
    """Keeps what could not be recorded, in order; what has to be given up is counted and logged with its figures."""

    def __init__(self, turns: GatewayTurns, metrics: Metrics, in_thread: InThread) -> None:
        self._turns = turns
        self._metrics = metrics
        self._in_thread = in_thread
        self._waiting: deque[Bill] = deque()
        self._bytes = 0
        self._not_before = 0.0
        self._under_way: Bill | None = None
        """The one that is being recorded: it waits no longer, and comes back if the store fails."""
        self._writing: asyncio.Task[bool] | None = None
        self._task: asyncio.Task[None] | None = None
        metrics.bills_waiting.set_function(lambda: self._left)

    def keep(self, bill: Bill) -> None:
        """Keep an answer until the store takes it."""
        self._waiting.append(bill)
        self._bytes += bill.bytes
        self._lose_too_many()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._try_again())

    def follow(self, bill: Bill, recording: "asyncio.Future[None]") -> None:
        """Keep an answer if the recording of it that is still under way fails."""
        recording.add_done_callback(partial(self._followed, bill))

    @property
    def _left(self) -> int:
        """How many are not recorded yet."""
        return len(self._waiting) + (self._under_way is not None)

    async def caught_up(self) -> None:
        """Record what waits before another turn begins, so that turns are recorded in order; a store that is away is not waited for."""
        if self._left and asyncio.get_running_loop().time() >= self._not_before:
            await self.write()

    async def write(self) -> bool:
        """Record what waits, the oldest first, or wait until whoever does so has; return whether nothing waits any more.

        Whoever waits may give up at any time: what was begun is recorded all the same, and once.
        """
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return await asyncio.shield(self._writing)

    async def _write(self) -> bool:
        while self._waiting:
            bill = self._under_way = self._taken()
            try:
                await self._in_thread(self._record, bill)
            except StoreFailed:
                self._put_back(bill)
                self._not_before = asyncio.get_running_loop().time() + _FIRST_PAUSE
                return False
            except asyncio.CancelledError:
                self._put_back(bill)
                raise
            except Exception as error:  # noqa: BLE001 - one that cannot be recorded holds no other up
                self._lose(bill, type(error).__name__)
                _log.error("an answer that cannot be recorded: %s", where(error))
            else:
                self._metrics.bills.labels(became="late").inc()
            finally:
                self._under_way = None
        return True

    async def close(self) -> None:
        """Try once more, and give up what is left."""
        await _cancelled(self._task)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.write(), _AT_LAST)
        await _cancelled(self._writing)
        while self._waiting:
            self._lose(self._taken(), "the gateway ends")

    async def _try_again(self) -> None:
        pause = _FIRST_PAUSE
        while self._left:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            await self.write()

    def _record(self, bill: Bill) -> None:
        if bill.turn is not None:
            self._turns.end(bill.turn, bill.answer, bill.others)
        elif bill.place is not None:
            self._turns.catch_up(bill.asked, bill.place, bill.answer)

    def _followed(self, bill: Bill, recording: "asyncio.Future[None]") -> None:
        if not recording.cancelled() and isinstance(recording.exception(), StoreFailed):
            self.keep(bill)

    def _taken(self) -> Bill:
        bill = self._waiting.popleft()
        self._bytes -= bill.bytes
        return bill

    def _put_back(self, bill: Bill) -> None:
        self._waiting.appendleft(bill)
        self._bytes += bill.bytes
        self._lose_too_many()

    def _lose_too_many(self) -> None:
        while self._waiting and (len(self._waiting) > _MOST or self._bytes > _MOST_BYTES):
            self._lose(self._taken(), "there are too many")

    def _lose(self, bill: Bill, why: str) -> None:
        self._metrics.bills.labels(became="lost").inc()
        session = bill.turn.session.name if bill.turn is not None else "-"
        _log.error(
            "an answer was not recorded, %s: model %s, session %s, %s",
            why,
            bill.asked.model[:100],
            session,
            _figures(bill.answer, bill.others),
        )


async def _cancelled(task: "asyncio.Task[Any] | None") -> None:
    """End a task, if there is one."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _figures(answer: bytes, others: Sequence[Usage]) -> str:
    """Return what an answer consumed, in words for a log."""
    try:
        usage = decode_response(answer).usage
    except (LowwaterError, ValueError, ArithmeticError):
        usage = None
    if usage is None:
        return "usage unknown"
    more = f" and {len(others)} calls before it" if others else ""
    return f"{usage.prompt} tokens in and {usage.output} out{more}"
