"""Answers that the store did not take when they came: kept in memory, and recorded as soon as it does."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_response
from lowwater.errors import LowwaterError, StoreFailed
from lowwater.gateway.asked import Asked
from lowwater.gateway.logs import where
from lowwater.gateway.metrics import Metrics
from lowwater.gateway.turns import Place, Turn, Turns

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
    asked: Asked
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

    def __init__(self, turns: Turns, metrics: Metrics, in_thread: InThread) -> None:
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
